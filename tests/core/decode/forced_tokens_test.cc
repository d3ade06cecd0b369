// Forced tokens and a drafter's guess at the same step: the longer is taken,
// nobody is credited for what was certain, and no token changes.

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "fucina/decode/generator.h"
#include "gtest/gtest.h"
#include "tests/core/decode/table_decoder.h"

namespace fucina {
namespace {

using testing::kVocab;
using testing::TableDecoder;

constexpr int kPeriod = 7;
constexpr int kForcedOf = 3;

// Of every seven tokens the first three are forced, the others free.
class Spans : public Constraint {
 public:
  absl::Status Mask(std::span<float> logits) override {
    if (!Forced(at)) return absl::OkStatus();
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (static_cast<TokenId>(i) != Token(at)) {
        logits[i] = -std::numeric_limits<float>::infinity();
      }
    }
    return absl::OkStatus();
  }
  absl::Status Accept(TokenId /*token*/) override {
    ++at;
    return absl::OkStatus();
  }
  absl::Status Reset() override {
    at = 0;
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<Constraint>> Clone() const override {
    return std::make_unique<Spans>();
  }
  int ForcedTokens(std::span<TokenId> tokens) override {
    int count = 0;
    while (count < static_cast<int>(tokens.size()) && Forced(at + count)) {
      tokens[static_cast<std::size_t>(count)] = Token(at + count);
      ++count;
    }
    return count;
  }
  int ValidPrefix(std::span<const TokenId> tokens) override {
    int count = 0;
    for (const TokenId token : tokens) {
      if (Forced(at + count) && token != Token(at + count)) break;
      ++count;
    }
    return count;
  }
  bool IsComplete() override { return at % kPeriod == 0; }

  static bool Forced(int position) { return position % kPeriod < kForcedOf; }
  static TokenId Token(int position) {
    return static_cast<TokenId>(position * 5 % kVocab);
  }
  int at = 0;
};

// The same and no look-ahead: what the mask alone makes.
class QuietSpans : public Spans {
 public:
  int ForcedTokens(std::span<TokenId> /*tokens*/) override { return 0; }
};

// Knows the reply, or everything but what comes behind a forced span, and keeps
// what it is told.
class Guesser : public Drafter {
 public:
  enum class Mode { kRight, kWrongBehind, kSilent };
  Guesser(std::vector<TokenId> reply, Mode mode)
      : reply_(std::move(reply)), mode_(mode) {}
  int Propose(std::span<const TokenId> context,
              std::span<TokenId> draft) override {
    if (mode_ == Mode::kSilent) return 0;
    int count = 0;
    for (std::size_t i = context.size();
         i < reply_.size() && count < static_cast<int>(draft.size()); ++i) {
      TokenId token = reply_[i];
      if (mode_ == Mode::kWrongBehind) token = (token + 1) % kVocab;
      draft[static_cast<std::size_t>(count++)] = token;
    }
    return count;
  }
  void Cut(int count) override { cuts.push_back(count); }
  void Commit(std::span<const TokenId> /*tokens*/) override {}
  void Rewind(int /*length*/) override {}
  std::vector<int> cuts;

 private:
  std::vector<TokenId> reply_;
  Mode mode_;
};

struct Outcome {
  std::vector<TokenId> history;
  GenerationStats stats;
};

Outcome Generate(Constraint& constraint, Drafter* drafter, bool sampled) {
  const TableDecoder decoder;
  const auto state = decoder.NewState(200).value();
  Sampler sampler({.temperature = sampled ? 1.0 : 0.0, .seed = 5}, kVocab);
  SpeculationGateOptions gate;
  gate.always_on = true;
  Sequence sequence(decoder, {.state = state.get(),
                              .sampler = &sampler,
                              .drafter = drafter,
                              .constraint = &constraint,
                              .gate = gate});
  const std::vector<TokenId> prompt = {1, 2, 3};
  const absl::Status status = Generator(decoder).Generate(
      sequence, prompt, {.max_tokens = 70}, [](TokenId) { return true; });
  EXPECT_TRUE(status.ok()) << status;
  return {{sequence.history().begin(), sequence.history().end()},
          sequence.stats()};
}

TEST(ForcedTokens, ChangeNoTokenWithOrWithoutADrafter) {
  for (const bool sampled : {false, true}) {
    QuietSpans quiet;
    const Outcome plain = Generate(quiet, nullptr, sampled);
    EXPECT_EQ(plain.stats.drafted, 0);
    Spans spans;
    const Outcome forced = Generate(spans, nullptr, sampled);
    EXPECT_EQ(forced.history, plain.history);
    EXPECT_EQ(forced.stats.forced, forced.stats.drafted);
    EXPECT_EQ(forced.stats.accepted, forced.stats.drafted);
    EXPECT_EQ(forced.stats.forced_accepted, forced.stats.forced);
    // 70 tokens, 30 of them forced; the first comes from the prompt.
    EXPECT_LT(forced.stats.forwards, 45);
    for (const auto mode : {Guesser::Mode::kRight, Guesser::Mode::kWrongBehind,
                            Guesser::Mode::kSilent}) {
      Guesser guesser(plain.history, mode);
      Spans again;
      const Outcome both = Generate(again, &guesser, sampled);
      EXPECT_EQ(both.history, plain.history) << static_cast<int>(mode);
      EXPECT_EQ(both.stats.masks.count(), 70);
    }
  }
}

TEST(ForcedTokens, ALongerGuessGoesOnBehindThem) {
  QuietSpans quiet;
  const Outcome plain = Generate(quiet, nullptr, false);
  Spans spans;
  const Outcome forced = Generate(spans, nullptr, false);
  Guesser guesser(plain.history, Guesser::Mode::kRight);
  Spans again;
  const Outcome both = Generate(again, &guesser, false);
  EXPECT_LT(both.stats.forwards, forced.stats.forwards / 3);
  EXPECT_EQ(both.stats.accepted, both.stats.drafted);
}

TEST(ForcedTokens, WinOverAGuessThatContradictsThem) {
  QuietSpans quiet;
  const Outcome plain = Generate(quiet, nullptr, false);
  Guesser guesser(plain.history, Guesser::Mode::kWrongBehind);
  Spans spans;
  const Outcome both = Generate(spans, &guesser, false);
  // The drafter hears that none of its draft was used.
  EXPECT_GT(std::count(guesser.cuts.begin(), guesser.cuts.end(), 0), 0);
  EXPECT_GT(both.stats.forced, 15);
  // What was right was forced, and nothing of it the drafter's.
  EXPECT_EQ(both.stats.forced_accepted, both.stats.forced);
  EXPECT_EQ(both.stats.accepted, both.stats.forced_accepted);
}

}  // namespace
}  // namespace fucina
