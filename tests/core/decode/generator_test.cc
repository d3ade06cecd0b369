#include "fucina/decode/generator.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/decode/table_decoder.h"

namespace fucina {
namespace {

using testing::kVocab;
using testing::LogitsAfter;
using testing::ReferenceGreedy;
using testing::TableDecoder;
using testing::TableState;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Proposes what `oracle` says the sequence will be; `mistake_every` n > 0 puts
// a wrong token in every n-th place, 1 makes every draft garbage.
class ScriptDrafter : public Drafter {
 public:
  ScriptDrafter(std::vector<TokenId> oracle, int mistake_every)
      : oracle_(std::move(oracle)), mistake_every_(mistake_every) {}
  int Propose(std::span<const TokenId> context,
              std::span<TokenId> draft) override {
    int count = 0;
    for (std::size_t i = context.size();
         i < oracle_.size() && count < static_cast<int>(draft.size()); ++i) {
      TokenId token = oracle_[i];
      if (mistake_every_ > 0 && i % mistake_every_ == 0) {
        token = (token + 1) % kVocab;
      }
      draft[count++] = token;
    }
    return count;
  }
  void Commit(std::span<const TokenId> tokens) override {
    committed.insert(committed.end(), tokens.begin(), tokens.end());
  }
  void Rewind(int length) override {
    ASSERT_LE(length, static_cast<int>(committed.size()));
    committed.resize(static_cast<std::size_t>(length));
  }
  std::vector<TokenId> committed;

 private:
  std::vector<TokenId> oracle_;
  int mistake_every_;
};

// Allows only ids of the wanted parity and counts its calls.
class ParityConstraint : public Constraint {
 public:
  absl::Status Mask(std::span<float> logits) override {
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (i % 2 != accepted.size() % 2) {
        logits[i] = -std::numeric_limits<float>::infinity();
      }
    }
    return absl::OkStatus();
  }
  absl::Status Accept(TokenId token) override {
    if (static_cast<int>(accepted.size()) == fail_after) {
      return absl::InternalError("constraint broke");
    }
    accepted.push_back(token);
    return absl::OkStatus();
  }
  absl::Status Reset() override {
    accepted.clear();
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<Constraint>> Clone() const override {
    return std::make_unique<ParityConstraint>();
  }
  int ValidPrefix(std::span<const TokenId> tokens) override {
    int count = 0;
    for (const TokenId token : tokens) {
      if (token % 2 != static_cast<int>((accepted.size() + count) % 2)) break;
      ++count;
    }
    return count;
  }
  std::vector<TokenId> accepted;
  int fail_after = -1;
};

// Writes `value` instead of minus infinity.
class BrokenMask : public ParityConstraint {
 public:
  explicit BrokenMask(float value) : value_(value) {}
  absl::Status Mask(std::span<float> logits) override {
    logits[0] = value_;
    return absl::OkStatus();
  }

 private:
  float value_;
};

// Counts as no honest plugin counts.
class BadCounts : public ParityConstraint {
 public:
  absl::Status Mask(std::span<float>) override { return absl::OkStatus(); }
  int ForcedTokens(std::span<TokenId>) override { return forced; }
  int ValidPrefix(std::span<const TokenId>) override { return valid; }
  int forced = 0;
  int valid = 0;
};

class BadDrafter : public Drafter {
 public:
  int Propose(std::span<const TokenId>, std::span<TokenId> draft) override {
    std::fill(draft.begin(), draft.end(), token);
    return count;
  }
  void Commit(std::span<const TokenId>) override {}
  void Rewind(int) override {}
  int count = 0;
  TokenId token = 0;
};

struct Outcome {
  absl::Status status;
  std::vector<TokenId> history;
  std::vector<TokenId> emitted;
  std::vector<TokenId> state_tokens;
  GenerationStats stats;
  FinishReason reason;
};

struct Scenario {
  std::vector<TokenId> prompt = {1, 2, 3};
  int capacity = 200;
  SamplerConfig sampling = {};
  GenerationLimits limits = {.max_tokens = 40};
  Drafter* drafter = nullptr;
  Constraint* constraint = nullptr;
  std::vector<TokenId> never = {};
  std::function<bool(TokenId)> sink = [](TokenId) { return true; };
  SpeculationGateOptions gate = {.always_on = true};
};

Outcome Generate(const TableDecoder& decoder, const Scenario& options) {
  auto state = decoder.NewState(options.capacity).value();
  Sampler sampler(options.sampling, kVocab);
  Sequence sequence(decoder, {.state = state.get(),
                              .sampler = &sampler,
                              .drafter = options.drafter,
                              .constraint = options.constraint,
                              .never_sampled = options.never,
                              .gate = options.gate});
  Outcome run;
  run.status = Generator(decoder).Generate(sequence, options.prompt,
                                           options.limits, [&](TokenId token) {
                                             run.emitted.push_back(token);
                                             return options.sink(token);
                                           });
  run.history.assign(sequence.history().begin(), sequence.history().end());
  run.state_tokens = static_cast<TableState&>(*state).tokens;
  run.stats = sequence.stats();
  run.reason = sequence.finish_reason();
  return run;
}

TEST(Generator, GreedyEqualsTheReferenceLoop) {
  const TableDecoder decoder;
  const Outcome run = Generate(decoder, {});
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(run.history, ReferenceGreedy({1, 2, 3}, 40));
  EXPECT_EQ(run.reason, FinishReason::kLength);
  EXPECT_EQ(run.stats.new_tokens, 40);
  EXPECT_EQ(run.stats.forwards, 39);
  EXPECT_EQ(run.stats.prompt_tokens, 3);
  EXPECT_EQ(run.state_tokens.size(), 42U);
}

TEST(Generator, PrefillChunksDoNotMatter) {
  const TableDecoder decoder;
  Scenario options;
  for (int i = 0; i < 100; ++i) options.prompt.push_back(i * 7 % kVocab);
  const Outcome whole = Generate(decoder, options);
  for (const int chunk : {1, 7, 64, 512}) {
    options.limits.prefill_chunk = chunk;
    EXPECT_EQ(Generate(decoder, options).history, whole.history) << chunk;
  }
}

TEST(Generator, DraftingNeverChangesTheTokens) {
  const TableDecoder decoder;
  for (const double temperature : {0.0, 0.8}) {
    for (const bool constrained : {false, true}) {
      for (std::uint64_t seed = 0; seed < 25; ++seed) {
        Scenario options;
        options.prompt = {static_cast<TokenId>(seed % kVocab), 5};
        options.sampling = {
            .temperature = temperature, .repeat_penalty = 1.3, .seed = seed};
        ParityConstraint constraint;
        if (constrained) options.constraint = &constraint;
        const Outcome plain = Generate(decoder, options);
        ASSERT_TRUE(plain.status.ok()) << plain.status;
        for (const int mistake_every : {0, 1, 2, 3, 7}) {
          ScriptDrafter drafter(plain.history, mistake_every);
          options.drafter = &drafter;
          const Outcome drafted = Generate(decoder, options);
          ASSERT_TRUE(drafted.status.ok()) << drafted.status;
          EXPECT_EQ(drafted.history, plain.history);
          EXPECT_EQ(drafted.emitted, plain.emitted);
          EXPECT_EQ(drafted.state_tokens, plain.state_tokens);
          EXPECT_EQ(drafter.committed, plain.history);
          if (constrained) {
            EXPECT_EQ(constraint.accepted, plain.emitted);
          }
          if (mistake_every == 0) {
            EXPECT_LT(drafted.stats.forwards, plain.stats.forwards / 4);
          }
          options.drafter = nullptr;
        }
      }
    }
  }
}

// Hears which of its drafts were verified.
class CutDrafter : public ScriptDrafter {
 public:
  using ScriptDrafter::ScriptDrafter;
  int Propose(std::span<const TokenId> context,
              std::span<TokenId> draft) override {
    last_ = ScriptDrafter::Propose(context, draft);
    verified += last_;
    return last_;
  }
  void Cut(int count) override {
    EXPECT_GE(count, 0);
    EXPECT_LT(count, last_);
    verified += count - last_;
    last_ = count;
  }
  int verified = 0;

 private:
  int last_ = 0;
};

// What the gate makes of the clock changes no token, and the drafter is told
// of each draft how much of it counts.
TEST(Generator, TheGateNeverChangesTheTokens) {
  const TableDecoder decoder;
  int refusals = 0;
  for (const double temperature : {0.0, 0.8}) {
    for (std::uint64_t seed = 0; seed < 25; ++seed) {
      Scenario options;
      options.gate = {};
      options.gate.loss_allowance = 0.5;
      options.prompt = {static_cast<TokenId>(seed % kVocab), 5};
      options.limits.max_tokens = 150;
      options.sampling = {.temperature = temperature, .seed = seed};
      const Outcome plain = Generate(decoder, options);
      ASSERT_TRUE(plain.status.ok()) << plain.status;
      for (const int mistake_every : {0, 1, 2, 3, 7}) {
        CutDrafter drafter(plain.history, mistake_every);
        options.drafter = &drafter;
        const Outcome drafted = Generate(decoder, options);
        ASSERT_TRUE(drafted.status.ok()) << drafted.status;
        EXPECT_EQ(drafted.history, plain.history);
        EXPECT_EQ(drafted.state_tokens, plain.state_tokens);
        EXPECT_EQ(drafter.committed, plain.history);
        EXPECT_EQ(drafter.verified, drafted.stats.drafted);
        refusals += drafted.stats.gate_refusals;
        options.drafter = nullptr;
      }
    }
  }
  EXPECT_GT(refusals, 0);
}

TEST(Generator, StopTokenEndsTheReplyAlsoInsideADraft) {
  const TableDecoder decoder;
  const std::vector<TokenId> all = ReferenceGreedy({1, 2, 3}, 40);
  const std::vector<TokenId> stops = {all[12]};
  const auto end = std::find(all.begin() + 3, all.end(), all[12]);
  Scenario options;
  options.limits.stop_tokens = stops;
  for (const bool draft : {false, true}) {
    ScriptDrafter drafter(all, 0);
    if (draft) options.drafter = &drafter;
    const Outcome run = Generate(decoder, options);
    EXPECT_EQ(run.reason, FinishReason::kStopToken);
    EXPECT_EQ(run.history, std::vector<TokenId>(all.begin(), end + 1));
    EXPECT_EQ(run.state_tokens.size(), run.history.size() - 1);
  }
}

TEST(Generator, SinkAndCancelStopBetweenTokens) {
  const TableDecoder decoder;
  Scenario options;
  int count = 0;
  options.sink = [&](TokenId) { return ++count < 5; };
  Outcome run = Generate(decoder, options);
  EXPECT_EQ(run.reason, FinishReason::kSink);
  EXPECT_EQ(run.emitted.size(), 5U);

  std::atomic<bool> cancel = false;
  options.limits.cancel = &cancel;
  options.sink = [&](TokenId) {
    cancel = true;
    return true;
  };
  run = Generate(decoder, options);
  EXPECT_EQ(run.reason, FinishReason::kCancelled);
  EXPECT_EQ(run.emitted.size(), 1U);

  run = Generate(decoder, options);  // raised before the prefill
  EXPECT_EQ(run.reason, FinishReason::kCancelled);
  EXPECT_TRUE(run.history.empty());
  EXPECT_TRUE(run.status.ok());
}

TEST(Generator, ContextEndsTheReply) {
  const TableDecoder decoder;
  Scenario options;
  options.capacity = 10;
  ScriptDrafter drafter(ReferenceGreedy({1, 2, 3}, 40), 0);
  for (Drafter* const used :
       {static_cast<Drafter*>(nullptr), static_cast<Drafter*>(&drafter)}) {
    options.drafter = used;
    const Outcome run = Generate(decoder, options);
    EXPECT_TRUE(run.status.ok()) << run.status;
    EXPECT_EQ(run.reason, FinishReason::kContextFull);
    EXPECT_EQ(run.history, ReferenceGreedy({1, 2, 3}, 8));
  }
}

TEST(Generator, NeverSampledTokensDoNotAppear) {
  const TableDecoder decoder;
  Scenario options;
  const std::vector<TokenId> plain = ReferenceGreedy({1, 2, 3}, 40);
  options.never = {plain[3], plain[4]};
  const Outcome run = Generate(decoder, options);
  for (const TokenId token : run.emitted) {
    EXPECT_NE(token, plain[3]);
    EXPECT_NE(token, plain[4]);
  }
}

TEST(Generator, PromptLogitsAreSeenRaw) {
  const TableDecoder decoder;
  std::vector<float> seen;
  const std::function<void(std::span<const float>)> look =
      [&](std::span<const float> logits) {
        seen.assign(logits.begin(), logits.end());
      };
  Scenario options;
  options.never = {0, 1, 2};
  options.limits.on_prompt_logits = &look;
  Generate(decoder, options);
  EXPECT_EQ(seen, LogitsAfter(std::vector<TokenId>{1, 2, 3}));
}

TEST(Generator, SecondPromptReusesTheCommonPrefix) {
  const TableDecoder decoder;
  auto state = decoder.NewState(100).value();
  Sampler sampler({}, kVocab);
  Sequence sequence(decoder, {.state = state.get(), .sampler = &sampler});
  const Generator generator(decoder);
  const auto ignore = [](TokenId) { return true; };
  std::vector<TokenId> prompt = {4, 5, 6, 7};
  ASSERT_TRUE(
      generator.Generate(sequence, prompt, {.max_tokens = 6}, ignore).ok());
  // The next turn keeps four prompt tokens and three of the reply, then
  // differs.
  prompt.assign(sequence.history().begin(), sequence.history().begin() + 7);
  prompt.push_back((sequence.history()[7] + 1) % kVocab);
  prompt.push_back(2);
  ASSERT_TRUE(
      generator.Generate(sequence, prompt, {.max_tokens = 6}, ignore).ok());
  EXPECT_EQ(sequence.stats().reused_tokens, 7);
  const std::vector<TokenId> history(sequence.history().begin(),
                                     sequence.history().end());
  EXPECT_EQ(history, ReferenceGreedy(prompt, 6));
  // The same prompt again computes its last token only.
  ASSERT_TRUE(
      generator.Generate(sequence, prompt, {.max_tokens = 1}, ignore).ok());
  EXPECT_EQ(sequence.stats().reused_tokens, 8);
}

// Turns that go on, that render history anew and that repeat a prompt: what the
// drafter holds is the history, no token twice and none that is gone.
TEST(Generator, ADrafterFollowsEveryTurn) {
  const TableDecoder decoder;
  auto state = decoder.NewState(100).value();
  Sampler sampler({}, kVocab);
  ScriptDrafter drafter({}, 0);
  Sequence sequence(
      decoder,
      {.state = state.get(), .sampler = &sampler, .drafter = &drafter});
  const Generator generator(decoder);
  const auto ignore = [](TokenId) { return true; };
  const auto turn = [&](const std::vector<TokenId>& prompt) {
    ASSERT_TRUE(
        generator.Generate(sequence, prompt, {.max_tokens = 6}, ignore).ok());
    EXPECT_THAT(drafter.committed,
                ::testing::ElementsAreArray(sequence.history()));
  };
  std::vector<TokenId> prompt = {4, 5, 6, 7};
  turn(prompt);
  prompt.assign(sequence.history().begin(), sequence.history().end());
  prompt.push_back(3);
  turn(prompt);
  prompt.resize(8);
  prompt.push_back((sequence.history()[8] + 1) % kVocab);
  turn(prompt);
  turn(prompt);
  turn({9, 9});
}

TEST(Generator, ErrorsNameTheCauseAndLeaveTheSequenceUsable) {
  TableDecoder decoder;
  auto state = decoder.NewState(20).value();
  Sampler sampler({}, kVocab);
  ParityConstraint constraint;
  Sequence sequence(decoder, {.state = state.get(), .sampler = &sampler});
  const Generator generator(decoder);
  const auto ignore = [](TokenId) { return true; };
  const auto message = [&](std::vector<TokenId> prompt, int max_tokens) {
    return std::string(
        generator.Generate(sequence, prompt, {.max_tokens = max_tokens}, ignore)
            .message());
  };
  EXPECT_EQ(message({}, 5), "empty prompt");
  EXPECT_EQ(message({1}, 0), "max_tokens: expected at least 1, found 0");
  EXPECT_EQ(message({1, 23}, 5),
            "token id 23 out of range: the model has ids 0 to 22");
  EXPECT_EQ(message({-1}, 5),
            "token id -1 out of range: the model has ids 0 to 22");
  EXPECT_EQ(message(std::vector<TokenId>(21, 1), 5),
            "the prompt has 21 tokens and the context holds 20; shorten the "
            "prompt or ask for a larger context");
  EXPECT_EQ(state->length(), 0);

  decoder.nan_at = 5;
  EXPECT_THAT(message({1, 2, 3}, 10), HasSubstr("numeric error at position 6"));
  decoder.nan_at = -1;
  EXPECT_EQ(static_cast<TableState&>(*state).tokens.size() + 1,
            sequence.history().size());

  decoder.fail_at = 6;
  EXPECT_EQ(message({1, 2, 3}, 10), "injected");
  decoder.fail_at = -1;
  EXPECT_EQ(message({1, 2, 3}, 10), "");
  const std::vector<TokenId> history(sequence.history().begin(),
                                     sequence.history().end());
  EXPECT_EQ(history, ReferenceGreedy({1, 2, 3}, 10));
}

// SAMP-1: each kind of bad number, in the prompt's row, in a decode step and in
// a row of a verified draft; greedy and sampled. Never a token from such a row.
TEST(Generator, NumbersThatAreNoLogitsEndTheReplyAtOnce) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  struct {
    const char* says;
    std::function<void(std::span<float>)> spoil;
  } const kinds[] = {
      {"the logit of token 3 is not a number",
       [=](std::span<float> row) { row[3] = nan; }},
      {"the logit of token 0 is not a number",
       [=](std::span<float> row) { row[0] = -nan; }},
      {"the logit of token 22 is infinite",
       [=](std::span<float> row) { row[22] = kInf; }},
      {"the logit of token 0 is not a number",
       [=](std::span<float> row) { std::fill(row.begin(), row.end(), nan); }},
  };
  for (const auto& kind : kinds) {
    for (const double temperature : {0.0, 1.0}) {
      Scenario options;
      options.sampling.temperature = temperature;
      const Outcome healthy = Generate(TableDecoder(), options);
      for (const int at : {3, 4, 9}) {
        for (const bool draft : {false, true}) {
          TableDecoder decoder;
          decoder.spoil = kind.spoil;
          decoder.spoil_at = at;
          ScriptDrafter drafter(healthy.history, 0);
          options.drafter = draft ? &drafter : nullptr;
          const Outcome run = Generate(decoder, options);
          EXPECT_EQ(run.status.code(), absl::StatusCode::kInternal);
          EXPECT_EQ(run.status.message(),
                    absl::StrCat("numeric error at position ", at, ": ",
                                 kind.says, "; the model file may be damaged"));
          EXPECT_EQ(run.emitted.size(), static_cast<std::size_t>(at - 3));
          EXPECT_EQ(run.history,
                    std::vector<TokenId>(healthy.history.begin(),
                                         healthy.history.begin() + at));
        }
      }
    }
  }
}

// PLUG-6.
TEST(Generator, WhatADecoderReturnsIsChecked) {
  std::vector<float> memory(4 * kVocab, 1.0F);
  const auto returns = [](const Tensor& logits) {
    return [logits](TableState&, SequenceStep& step) { step.logits = logits; };
  };
  struct {
    std::string says;
    std::function<void(TableState&, SequenceStep&)> lie;
  } const lies[] = {
      {"its logits are missing, expected f32 [1, 23]", returns(Tensor())},
      {"its logits are f32 [1, 7], expected f32 [1, 23]",
       returns(Tensor(DType::kF32, {1, 7}, memory.data()))},
      {"its logits are f32 [1, 24], expected f32 [1, 23]",
       returns(Tensor(DType::kF32, {1, 24}, memory.data()))},
      {"its logits are f32 [2, 23], expected f32 [1, 23]",
       returns(Tensor(DType::kF32, {2, kVocab}, memory.data()))},
      {"its logits are f32 [0, 23], expected f32 [1, 23]",
       returns(Tensor(DType::kF32, {0, kVocab}, memory.data()))},
      {"its logits are f32 [23], expected f32 [1, 23]",
       returns(Tensor(DType::kF32, {kVocab}, memory.data()))},
      {"its logits are f16 [1, 23], expected f32 [1, 23]",
       returns(Tensor(DType::kF16, {1, kVocab}, memory.data()))},
      {"its state holds 2 tokens after a forward, expected 3",
       [](TableState& state, SequenceStep&) { state.tokens.resize(2); }},
      {"its state holds 5 tokens after a forward, expected 3",
       [](TableState& state, SequenceStep&) { state.tokens.resize(5); }},
  };
  for (const auto& lie : lies) {
    TableDecoder decoder;
    decoder.lie = lie.lie;
    const Outcome run = Generate(decoder, {});
    EXPECT_EQ(run.status.code(), absl::StatusCode::kInternal);
    EXPECT_EQ(run.status.message(),
              absl::StrCat("the decoder of family 'table' broke the contract: ",
                           lie.says));
    EXPECT_TRUE(run.emitted.empty());
    EXPECT_TRUE(run.history.empty());
  }
  // In the middle of a reply: what was committed stays, no more is added.
  TableDecoder decoder;
  decoder.lie = lies[1].lie;
  decoder.lie_at = 6;
  const Outcome run = Generate(decoder, {});
  EXPECT_THAT(std::string(run.status.message()), HasSubstr("f32 [1, 7]"));
  EXPECT_EQ(run.history, ReferenceGreedy({1, 2, 3}, 3));
  EXPECT_EQ(run.state_tokens, ReferenceGreedy({1, 2, 3}, 2));
  // One row too few for a draft.
  ScriptDrafter drafter(ReferenceGreedy({1, 2, 3}, 40), 0);
  Scenario drafting;
  drafting.drafter = &drafter;
  EXPECT_THAT(std::string(Generate(decoder, drafting).status.message()),
              HasSubstr("its logits are f32 [1, 7], expected f32 [17, 23]"));
}

TEST(Generator, AMaskThatIsNoneFailsClosed) {
  for (const float value : {std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity()}) {
    BrokenMask constraint(value);
    Scenario options;
    options.constraint = &constraint;
    const Outcome run = Generate(TableDecoder(), options);
    EXPECT_THAT(std::string(run.status.message()),
                HasSubstr("the constraint broke the contract: after its mask, "
                          "numeric error at position 3: the logit of token 0"));
    EXPECT_TRUE(run.emitted.empty());
  }
}

TEST(Generator, CountsOutOfBoundsNeverChangeTheTokens) {
  const std::vector<TokenId> expected = ReferenceGreedy({1, 2, 3}, 40);
  for (const int count : {-5, 0, 1, 9, 1000, 1 << 30}) {
    for (const TokenId token : {-1, 0, kVocab, 1 << 30}) {
      BadDrafter drafter;
      drafter.count = count;
      drafter.token = token;
      BadCounts constraint;
      Scenario options;
      options.drafter = &drafter;
      EXPECT_EQ(Generate(TableDecoder(), options).history, expected);
      options.constraint = &constraint;
      constraint.valid = count;
      EXPECT_EQ(Generate(TableDecoder(), options).history, expected);
      constraint.forced = count;
      EXPECT_EQ(Generate(TableDecoder(), options).history, expected);
    }
  }
}

TEST(Generator, ConstraintFailureEndsTheReplyWithItsError) {
  const TableDecoder decoder;
  ParityConstraint constraint;
  constraint.fail_after = 4;
  Scenario options;
  options.constraint = &constraint;
  const Outcome run = Generate(decoder, options);
  EXPECT_EQ(run.status.message(), "constraint broke");
  EXPECT_EQ(run.emitted.size(), 4U);
}

TEST(Generator, AConstraintOfUnusedTokensFails) {
  const TableDecoder decoder;
  ParityConstraint constraint;  // an even token first
  std::vector<TokenId> never;
  for (TokenId token = 0; token < kVocab; token += 2) never.push_back(token);
  const Outcome run =
      Generate(decoder, {.constraint = &constraint, .never = never});
  EXPECT_EQ(run.status,
            absl::InternalError("constraint failed: no token that it allows "
                                "may be sampled (all tokens masked)"));
  EXPECT_TRUE(constraint.accepted.empty());
}

TEST(Generator, AllMaskedIsAnError) {
  const TableDecoder decoder;
  Scenario options;
  for (TokenId id = 0; id < kVocab; ++id) options.never.push_back(id);
  const Outcome run = Generate(decoder, options);
  EXPECT_EQ(run.status.message(), "all tokens masked");
  EXPECT_THAT(run.history, ElementsAre(1, 2, 3));
}

TEST(Generator, ProgressCountsPromptTokens) {
  const TableDecoder decoder;
  auto state = decoder.NewState(50).value();
  Sampler sampler({}, kVocab);
  Sequence sequence(decoder, {.state = state.get(), .sampler = &sampler});
  std::vector<std::string> seen;
  ASSERT_TRUE(Generator(decoder)
                  .Generate(
                      sequence, std::vector<TokenId>(10, 1),
                      {.max_tokens = 1, .prefill_chunk = 4},
                      [](TokenId) { return true; },
                      [&](int done, int total) {
                        seen.push_back(absl::StrCat(done, "/", total));
                      })
                  .ok());
  EXPECT_THAT(seen, ElementsAre("4/10", "8/10", "10/10"));
}

TEST(Generator, TruncateMakesThePromptBeReadAgain) {
  const TableDecoder decoder;
  auto state = decoder.NewState(50).value();
  Sampler sampler({}, kVocab);
  Sequence sequence(decoder, {.state = state.get(), .sampler = &sampler});
  const Generator generator(decoder);
  const auto ignore = [](TokenId) { return true; };
  const std::vector<TokenId> prompt = {4, 5, 6, 7};
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(
        generator.Generate(sequence, prompt, {.max_tokens = 6}, ignore).ok());
    EXPECT_EQ(sequence.stats().reused_tokens, i == 0 ? 0 : 2);
    const std::vector<TokenId> history(sequence.history().begin(),
                                       sequence.history().end());
    EXPECT_EQ(history, ReferenceGreedy(prompt, 6));
    ASSERT_TRUE(sequence.Truncate(2).ok());
    EXPECT_EQ(sequence.history().size(), 2U);
    EXPECT_EQ(state->length(), 2);
  }
}

}  // namespace
}  // namespace fucina
