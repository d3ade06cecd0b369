#ifndef FUCINA_TESTS_PLUGINS_SPEC_SPEC_RUN_H_
#define FUCINA_TESTS_PLUGINS_SPEC_SPEC_RUN_H_

// One sequence with and without a drafter, and everything that could differ
// afterwards: tokens, rows of the cache, logits, the place of the random
// numbers.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fucina/contract/checked_forward.h"
#include "fucina/decode/generator.h"
#include "fucina/decode/sampler.h"
#include "fucina/model/kv_cache.h"
#include "fucina/runner/runner.h"
#include "gtest/gtest.h"
#include "registry/pipeline.h"

namespace fucina::testing {

inline std::unique_ptr<Pipeline> BuildOrFail(PipelineConfig config) {
  auto built = BuildPipeline(std::move(config), PipelineDepth::kDecoder);
  EXPECT_TRUE(built.ok()) << built.status();
  return built.ok() ? *std::move(built) : nullptr;
}

// The rows of the tokens that the state holds, keys before values, layer by
// layer: what later tokens can see and nothing else.
inline std::string CommittedRows(DecodeState& state) {
  const KvCache* const cache = CacheOf(state);
  std::string bytes;
  if (cache == nullptr) {
    ADD_FAILURE() << "the state has no cache";
    return bytes;
  }
  for (int layer = 0; layer < cache->geometry().num_layers; ++layer) {
    const ops::KvRows rows = cache->layer(layer);
    const std::size_t element = rows.shape.element_bytes();
    const auto head_dim = static_cast<std::size_t>(rows.shape.head_dim);
    const auto append = [&](const std::byte* base, std::size_t index) {
      bytes.append(reinterpret_cast<const char*>(base) + index * element,
                   element);
    };
    for (int position = 0; position < state.length(); ++position) {
      const int run = position / rows.shape.run_positions();
      const auto at =
          static_cast<std::size_t>(position % rows.shape.run_positions());
      for (int head = 0; head < rows.shape.num_kv_heads; ++head) {
        for (std::size_t c = 0; c < head_dim; ++c) {
          append(rows.keys(run, head),
                 (at / ops::kKvLanes * head_dim + c) * ops::kKvLanes +
                     at % ops::kKvLanes);
        }
        for (std::size_t c = 0; c < head_dim; ++c) {
          append(rows.values(run, head),
                 at * static_cast<std::size_t>(rows.shape.value_stride()) + c);
        }
      }
    }
  }
  return bytes;
}

// Drafts what `answer`, the plain run, holds next, spoilt in one of many ways.
class ScriptedDrafter : public Drafter {
 public:
  enum class Script {
    kPerfect,
    kGarbage,      // every token is wrong
    kAlternating,  // every other one is
    kSilent,
    kTooLong,    // claims more tokens than there is room for
    kNegative,   // claims fewer than none
    kInvalid,    // ids outside the vocabulary
    kUnderhand,  // an answer of random length, then an id that is invalid
  };
  static constexpr Script kAll[] = {Script::kPerfect,     Script::kGarbage,
                                    Script::kAlternating, Script::kSilent,
                                    Script::kTooLong,     Script::kNegative,
                                    Script::kInvalid,     Script::kUnderhand};

  ScriptedDrafter(Script script, std::span<const TokenId> answer,
                  int vocab_size)
      : script_(script), answer_(answer), vocab_size_(vocab_size) {}

  int Propose(std::span<const TokenId> context,
              std::span<TokenId> draft) override {
    int count = 0;
    for (std::size_t i = context.size();
         i < answer_.size() && count < static_cast<int>(draft.size()); ++i) {
      draft[static_cast<std::size_t>(count++)] = Spoilt(i);
    }
    switch (script_) {
      case Script::kSilent:
        return 0;
      case Script::kTooLong:
        return std::numeric_limits<int>::max();
      case Script::kNegative:
        return -3;
      default:
        return count;
    }
  }
  void Commit(std::span<const TokenId>) override {}
  void Rewind(int) override {}

 private:
  TokenId Spoilt(std::size_t i) const {
    const TokenId right = answer_[i];
    const TokenId wrong = (right + 1) % vocab_size_;
    switch (script_) {
      case Script::kGarbage:
        return wrong;
      case Script::kAlternating:
        return i % 2 == 0 ? right : wrong;
      case Script::kInvalid:
        return i % 3 == 0   ? -1
               : i % 3 == 1 ? vocab_size_
                            : std::numeric_limits<TokenId>::min();
      case Script::kUnderhand:
        return i % 5 == 4 ? vocab_size_ + 7 : right;
      default:
        return right;
    }
  }

  Script script_;
  std::span<const TokenId> answer_;
  int vocab_size_;
};

struct Written {
  std::vector<TokenId> history;
  FinishReason reason = FinishReason::kLength;
  std::string rows;         // of the cache
  std::vector<float> next;  // the logits behind the newest token
  TokenId drawn = -1;       // what the sampler makes of them
  GenerationStats stats;
};

// What a run ended with, whatever was drafted in between.
inline void ExpectSame(const Written& found, const Written& expected) {
  ASSERT_EQ(found.history, expected.history);
  EXPECT_EQ(found.reason, expected.reason);
  EXPECT_FALSE(expected.rows.empty());
  EXPECT_TRUE(found.rows == expected.rows) << "rows of the cache differ";
  ASSERT_EQ(found.next.size(), expected.next.size());
  EXPECT_EQ(std::memcmp(found.next.data(), expected.next.data(),
                        found.next.size() * sizeof(float)),
            0)
      << "logits differ";
  EXPECT_EQ(found.drawn, expected.drawn) << "a draw too many or too few";
}

struct Wanted {
  std::vector<TokenId> prompt;
  SamplerConfig sampling = {};
  int tokens = 24;
  int width = 8;                    // drafted tokens per forward
  std::vector<TokenId> stops = {};  // each ends the reply
  int sink_tokens = 0;              // the sink stops after so many; 0: never
  bool gate = false;                // drafts only where it pays
};

inline Written Write(const Decoder& decoder, const Wanted& wanted,
                     Drafter* drafter) {
  Written written;
  const auto state =
      decoder.NewState(static_cast<int>(wanted.prompt.size()) + wanted.tokens +
                       (wanted.tokens % 3 == 0 ? 0 : 2));
  if (!state.ok()) {
    ADD_FAILURE() << state.status();
    return written;
  }
  Sampler sampler(wanted.sampling, decoder.info().vocab_size);
  SequenceParts parts = {
      .state = state->get(), .sampler = &sampler, .drafter = drafter};
  parts.gate.always_on = !wanted.gate;
  parts.gate.max_draft = wanted.width;
  Sequence sequence(decoder, parts);
  GenerationLimits limits = {.max_tokens = wanted.tokens,
                             .stop_tokens = wanted.stops};
  int heard = 0;
  const absl::Status status = Generator(decoder).Generate(
      sequence, wanted.prompt, limits, [&](TokenId) {
        ++heard;
        return heard != wanted.sink_tokens;
      });
  EXPECT_TRUE(status.ok()) << status;
  written.history.assign(sequence.history().begin(), sequence.history().end());
  written.reason = sequence.finish_reason();
  written.stats = sequence.stats();
  // The newest token is committed and not in the state yet.
  EXPECT_EQ((*state)->length() + 1, static_cast<int>(written.history.size()));
  written.rows = CommittedRows(**state);
  SequenceStep step = {
      .tokens = std::span<const TokenId>(written.history).last(1),
      .state = state->get()};
  const absl::Status forward = CheckedForward(decoder, step);
  EXPECT_TRUE(forward.ok()) << forward;
  if (!forward.ok()) return written;
  written.next.assign(step.logits.row_f32(0),
                      step.logits.row_f32(0) + step.logits.row_size());
  std::vector<float> logits = written.next;
  written.drawn = sampler.Sample(logits, written.history).value_or(-2);
  return written;
}

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_PLUGINS_SPEC_SPEC_RUN_H_
