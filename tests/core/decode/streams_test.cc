// Sequences in lockstep: whatever runs beside a sequence, its tokens and the
// bits of its logits are those of the sequence alone.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fucina/decode/generator.h"
#include "fucina/gguf/gguf_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/decode/table_decoder.h"
#include "tests/core/runner/loaded_model.h"
#include "tests/core/runner/model_variants.h"

namespace fucina {
namespace {

using ::testing::ElementsAre;
using testing::kVocab;
using testing::LoadedModel;
using testing::ReferenceGreedy;
using testing::TableDecoder;

// Allows everything and remembers the bits of every row that was sampled from.
class Recorder : public Constraint {
 public:
  absl::Status Mask(std::span<float> logits) override {
    for (const float logit : logits) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &logit, sizeof(bits));
      hash = (hash ^ bits) * 0x100000001B3U;
    }
    return absl::OkStatus();
  }
  absl::Status Accept(TokenId) override { return absl::OkStatus(); }
  absl::Status Reset() override {
    hash = 0;
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<Constraint>> Clone() const override {
    return std::make_unique<Recorder>();
  }
  std::uint64_t hash = 0;
};

// Proposes the token that followed the last one before: often wrong.
class EchoDrafter : public Drafter {
 public:
  int Propose(std::span<const TokenId> context,
              std::span<TokenId> draft) override {
    for (std::size_t i = context.size() - 1; i-- > 0;) {
      if (context[i] != context.back()) continue;
      const std::size_t count =
          std::min({draft.size(), context.size() - 1 - i, std::size_t{3}});
      std::copy_n(context.begin() + static_cast<std::ptrdiff_t>(i) + 1, count,
                  draft.begin());
      return static_cast<int>(count);
    }
    return 0;
  }
  void Commit(std::span<const TokenId>) override {}
  void Rewind(int) override {}
};

// Everything one stream owns; request i is the same in every batch.
struct Request {
  Request(const Decoder& decoder, std::uint32_t i, bool sampled, bool drafting)
      : prompt(testing::RandomTokens(i, 1 + static_cast<int>(i * 7 % 23),
                                     decoder.info().vocab_size)),
        state(decoder.NewState(96).value()),
        sampler({.temperature = sampled ? 0.5 + 0.1 * (i % 7) : 0,
                 .top_k = i % 3 == 0 ? 20 : 0,
                 .repeat_penalty = i % 2 == 0 ? 1.1 : 1,
                 .seed = 1000 + i},
                decoder.info().vocab_size),
        sequence(decoder,
                 {.state = state.get(),
                  .sampler = &sampler,
                  .drafter = drafting && i % 2 == 0 ? &drafter : nullptr,
                  .constraint = &recorder}) {}

  Stream AsStream(std::uint32_t i) {
    Stream stream = {.sequence = &sequence, .prompt = prompt};
    stream.limits.max_tokens = 3 + static_cast<int>(i * 5 % 17);
    stream.limits.prefill_chunk = 1 + static_cast<int>(i % 9);
    return stream;
  }

  std::vector<TokenId> prompt;
  std::unique_ptr<DecodeState> state;
  Sampler sampler;
  EchoDrafter drafter;
  Recorder recorder;
  Sequence sequence;
};

struct Result {
  std::vector<TokenId> history;
  std::uint64_t logits = 0;
  bool operator==(const Result&) const = default;
};

std::vector<Result> RunTogether(const Decoder& decoder,
                                const std::vector<std::uint32_t>& which,
                                bool sampled, bool drafting) {
  std::vector<std::unique_ptr<Request>> requests;
  std::vector<Stream> streams;
  for (const std::uint32_t i : which) {
    requests.push_back(
        std::make_unique<Request>(decoder, i, sampled, drafting));
    streams.push_back(requests.back()->AsStream(i));
  }
  Generator(decoder).Generate(streams);
  std::vector<Result> results;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    EXPECT_TRUE(streams[i].status.ok()) << streams[i].status;
    const Sequence& sequence = requests[i]->sequence;
    EXPECT_EQ(sequence.stats().new_tokens, streams[i].limits.max_tokens);
    EXPECT_EQ(requests[i]->state->length() + 1,
              static_cast<int>(sequence.history().size()));
    results.push_back({{sequence.history().begin(), sequence.history().end()},
                       // Rows of refuted drafts are never sampled from.
                       requests[i]->recorder.hash});
  }
  return results;
}

// 40 requests, alone and in batches of every size with ever other company.
void ExpectIndependent(const Decoder& decoder, const std::string& name) {
  constexpr std::uint32_t kRequests = 41;
  for (const bool sampled : {false, true}) {
    std::vector<Result> alone;
    for (std::uint32_t i = 0; i < kRequests; ++i) {
      alone.push_back(RunTogether(decoder, {i}, sampled, false)[0]);
    }
    std::mt19937 random(7);
    for (const std::size_t n : {2U, 3U, 4U, 7U, 8U, 40U, 41U}) {
      for (const bool drafting : {false, true}) {
        std::vector<std::uint32_t> order(kRequests);
        for (std::uint32_t i = 0; i < kRequests; ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), random);
        order.resize(n);
        const std::vector<Result> together =
            RunTogether(decoder, order, sampled, drafting);
        for (std::size_t j = 0; j < n; ++j) {
          EXPECT_EQ(together[j], alone[order[j]])
              << name << (sampled ? " sampled" : " greedy")
              << (drafting ? " with drafts" : "") << ", request " << order[j]
              << " among " << n;
        }
      }
    }
  }
}

TEST(Streams, TokensOfAtlasDoNotDependOnCompany) {
  const auto file = GgufFile::Open(std::string(FUCINA_SOURCE_DIR) +
                                   "/models/atlas-6m-q8_0.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto descriptor = Descriptor::FromGguf(**file, testing::kQwen3);
  ASSERT_TRUE(descriptor.ok()) << descriptor.status();
  ThreadPool pool(2);
  const auto runner = Runner::Load(**file, *descriptor, pool, {});
  ASSERT_TRUE(runner.ok()) << runner.status();
  ExpectIndependent(**runner, "atlas");
}

TEST(Streams, TokensOfAMixtureDoNotDependOnCompany) {
  testing::TinyModelSpec spec = testing::SeededFixture("M");
  spec.num_experts = 16;
  spec.num_experts_used = 4;
  spec.weight_scale = 2;
  LoadedModel fused(spec, {}, 2);
  ExpectIndependent(fused.runner(), "mixture");
  LoadedModel plain(spec, {.block_style = BlockStyle::kHostReference}, 2);
  ExpectIndependent(plain.runner(), "mixture, host_reference");
}

TEST(Streams, ShareTheirForwards) {
  LoadedModel model(testing::SeededFixture("D"), {}, 1);
  PhaseTimes times;
  model.runner().set_phase_times(&times);
  RunTogether(model.runner(), {0, 1, 2, 3}, false, false);
  model.runner().set_phase_times(nullptr);
  // Chunks of prompts of 1, 8, 15 and 22 tokens, then as many forwards as the
  // longest reply of 18 tokens needs.
  EXPECT_EQ(times.num_forwards, 1 + 4 + 5 + 6 + 17);
}

// Three streams of different prompts and lengths over one decoder.
struct Trio {
  explicit Trio(const TableDecoder& decoder) {
    for (std::size_t i = 0; i < 3; ++i) {
      states.push_back(decoder.NewState(20).value());
      samplers.push_back(std::make_unique<Sampler>(SamplerConfig{}, kVocab));
      sequences.push_back(std::make_unique<Sequence>(
          decoder, SequenceParts{.state = states[i].get(),
                                 .sampler = samplers[i].get()}));
      streams.push_back(
          {.sequence = sequences[i].get(),
           .prompt = prompts[i],
           .limits = {.max_tokens = 4 + 2 * static_cast<int>(i)}});
    }
  }
  std::vector<TokenId> History(std::size_t i) const {
    return {sequences[i]->history().begin(), sequences[i]->history().end()};
  }
  std::vector<std::vector<TokenId>> prompts = {{1, 2, 3}, {4}, {5, 6}};
  std::vector<std::unique_ptr<DecodeState>> states;
  std::vector<std::unique_ptr<Sampler>> samplers;
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<Stream> streams;
};

TEST(Streams, LeaveWhenTheyEnd) {
  const TableDecoder decoder;
  Trio trio(decoder);
  std::vector<TokenId> heard;
  trio.streams[2].sink = [&](TokenId token) {
    heard.push_back(token);
    return heard.size() < 6;
  };
  Generator(decoder).Generate(trio.streams);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(trio.streams[i].status.ok()) << trio.streams[i].status;
    const int count = i == 2 ? 6 : 4 + 2 * static_cast<int>(i);
    EXPECT_EQ(trio.History(i), ReferenceGreedy(trio.prompts[i], count));
  }
  EXPECT_EQ(trio.sequences[2]->finish_reason(), FinishReason::kSink);
  const std::vector<TokenId> third = trio.History(2);
  EXPECT_EQ(heard, std::vector<TokenId>(third.begin() + 2, third.end()));
  EXPECT_THAT(decoder.widths, ElementsAre(1, 1, 1, 3, 3, 3, 2, 2));
  EXPECT_EQ(trio.sequences[0]->stats().forwards, 3);
}

TEST(Streams, OneThatFailsLeavesTheOthersAlone) {
  TableDecoder decoder;
  Trio trio(decoder);
  decoder.fail_at = 3;
  decoder.fail_for = trio.states[1].get();
  trio.streams[2].limits.max_tokens = 0;
  Generator(decoder).Generate(trio.streams);
  EXPECT_TRUE(trio.streams[0].status.ok()) << trio.streams[0].status;
  EXPECT_EQ(trio.History(0), ReferenceGreedy(trio.prompts[0], 4));
  EXPECT_EQ(trio.streams[1].status.message(), "injected");
  EXPECT_EQ(trio.History(1), ReferenceGreedy(trio.prompts[1], 3));
  EXPECT_EQ(trio.states[1]->length(), 3);
  EXPECT_EQ(trio.streams[2].status.message(),
            "max_tokens: expected at least 1, found 0");
  // The one that failed is usable again.
  decoder.fail_at = -1;
  Generator(decoder).Generate(std::span(trio.streams).subspan(1, 1));
  EXPECT_EQ(trio.History(1), ReferenceGreedy(trio.prompts[1], 6));
}

TEST(Streams, CancelEndsAll) {
  const TableDecoder decoder;
  Trio trio(decoder);
  std::atomic<bool> cancel = false;
  for (Stream& stream : trio.streams) stream.limits.cancel = &cancel;
  int heard = 0;
  trio.streams[1].sink = [&](TokenId) {
    cancel = ++heard == 3;
    return true;
  };
  Generator(decoder).Generate(trio.streams);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(trio.streams[i].status.ok());
    EXPECT_EQ(trio.sequences[i]->finish_reason(), FinishReason::kCancelled);
    EXPECT_EQ(trio.sequences[i]->stats().new_tokens, 3);
  }
}

TEST(StreamsDeathTest, AStateInTwoStreamsIsACallersError) {
  const TableDecoder decoder;
  Trio trio(decoder);
  trio.streams[1].sequence = trio.streams[0].sequence;
  EXPECT_DEATH(Generator(decoder).Generate(trio.streams),
               "one state in two streams");
}

TEST(StreamsDeathTest, AConstraintInTwoStreamsIsACallersError) {
  const TableDecoder decoder;
  Recorder shared;
  std::vector<std::unique_ptr<DecodeState>> states;
  std::vector<std::unique_ptr<Sampler>> samplers;
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<Stream> streams;
  const std::vector<TokenId> prompt = {1, 2};
  for (int i = 0; i < 2; ++i) {
    states.push_back(decoder.NewState(20).value());
    samplers.push_back(
        std::make_unique<Sampler>(SamplerConfig{}, decoder.info().vocab_size));
    sequences.push_back(std::make_unique<Sequence>(
        decoder, SequenceParts{.state = states.back().get(),
                               .sampler = samplers.back().get(),
                               .constraint = &shared}));
    streams.push_back({.sequence = sequences.back().get(), .prompt = prompt});
    streams.back().limits.max_tokens = 2;
  }
  EXPECT_DEATH(Generator(decoder).Generate(streams),
               "one constraint in two streams");
}

}  // namespace
}  // namespace fucina
