// Drafts change no token, no row of the cache and no draw: small random models
// of every family, with drafters from perfect to malicious, compared with the
// same run without one.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fucina/diag/log.h"
#include "gtest/gtest.h"
#include "tests/plugins/spec/spec_run.h"
#include "tests/registry/scratch_dir.h"
#include "tests/tiny_models/tiny_models.h"

namespace fucina {
namespace {

using testing::BuildOrFail;
using testing::ExpectSame;
using testing::ScriptedDrafter;
using testing::SeededFixture;
using testing::TinyModelSpec;
using testing::TinyWeightTypes;
using testing::Wanted;
using testing::Write;
using testing::Written;
using Script = ScriptedDrafter::Script;

constexpr const char* kKinds[] = {"suffix", "recycling", "cascade"};

// A family's random model, with weights that make replies wander.
TinyModelSpec Random(absl::string_view fixture, DType dtype) {
  TinyModelSpec spec = SeededFixture(fixture);
  spec.weight_scale = 4;
  spec.types = TinyWeightTypes::All(dtype);
  return spec;
}

std::vector<TokenId> RandomPrompt(std::uint32_t seed) {
  std::vector<TokenId> tokens;
  const int count = 1 + static_cast<int>(seed * 7 % 40);
  for (int i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    tokens.push_back(static_cast<TokenId>((seed >> 16) % 64));
  }
  // Every other prompt repeats itself, so that text is there to draft from.
  if (count % 2 == 0) {
    const std::vector<TokenId> once = tokens;
    tokens.insert(tokens.end(), once.begin(), once.end());
  }
  return tokens;
}

std::vector<SamplerConfig> Samplings(std::uint64_t seed) {
  return {{.temperature = 0},
          {.temperature = 0.8,
           .top_k = 20,
           .top_p = 0.95,
           .min_p = 0.02,
           .repeat_penalty = 1.2,
           .frequency_penalty = 0.1,
           .presence_penalty = 0.1,
           .penalty_window = 16,
           .seed = seed}};
}

class SpecLossless : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Pipeline> Load(DType dtype, const std::string& cache_type,
                                 int threads) {
    const std::string path = dir_.File("m.gguf");
    // The prediction layer that a GLM model does not use is no news here.
    SetLogLevel(LogLevel::kError);
    EXPECT_TRUE(testing::WriteTinyModel(Random(GetParam(), dtype), path).ok());
    PipelineConfig config;
    config.model = path;
    config.threads = threads;
    config.cache_type = cache_type;
    return BuildOrFail(std::move(config));
  }

  std::unique_ptr<Drafter> Make(const Pipeline& pipeline,
                                const std::string& kind) {
    const auto found = pipeline.registry->FindDrafter(kind);
    EXPECT_TRUE(found.ok()) << found.status();
    const DrafterKind& descriptor = (*found)->descriptor;
    auto made = descriptor.make(*pipeline.decoder,
                                Options::Make(descriptor.options, {}).value());
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }

  // Every drafter there is, against the plain run.
  void Compare(const Pipeline& pipeline, const Wanted& wanted, int& accepted,
               int& rejected) {
    const Decoder& decoder = *pipeline.decoder;
    const int vocab_size = decoder.info().vocab_size;
    const Written plain = Write(decoder, wanted, nullptr);
    ASSERT_EQ(plain.stats.drafted, 0);
    const auto compare = [&](const std::string& name, Drafter& drafter) {
      SCOPED_TRACE(name);
      const Written found = Write(decoder, wanted, &drafter);
      ExpectSame(found, plain);
      accepted += found.stats.accepted;
      rejected += found.stats.drafted - found.stats.accepted;
    };
    for (const Script script : ScriptedDrafter::kAll) {
      ScriptedDrafter drafter(script, plain.history, vocab_size);
      compare(absl::StrCat("script ", static_cast<int>(script)), drafter);
    }
    for (const char* kind : kKinds) {
      const auto drafter = Make(pipeline, kind);
      compare(kind, *drafter);
    }
  }

  ScratchDir dir_;
};

// Threads, storage of keys and values, weights, sampling, prompts: whatever the
// drafter says.
TEST_P(SpecLossless, NoDrafterChangesWhatIsWritten) {
  int accepted = 0;
  int rejected = 0;
  std::uint32_t seed = 0;
  for (const DType dtype : {DType::kF32, DType::kQ8_0}) {
    for (const char* cache_type : {"f16", "f32"}) {
      for (int threads = 1; threads <= 4; ++threads) {
        const auto pipeline = Load(dtype, cache_type, threads);
        ASSERT_NE(pipeline, nullptr);
        for (int prompt = 0; prompt < 6; ++prompt) {
          ++seed;
          for (const SamplerConfig& sampling : Samplings(seed)) {
            SCOPED_TRACE(absl::StrCat(cache_type, " threads ", threads,
                                      " seed ", seed, " temperature ",
                                      sampling.temperature));
            Compare(*pipeline,
                    {.prompt = RandomPrompt(seed),
                     .sampling = sampling,
                     .tokens = 20 + static_cast<int>(seed % 5),
                     .width = 1 + static_cast<int>(seed % 16)},
                    accepted, rejected);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(rejected, 1000);
}

TEST_P(SpecLossless, EveryWidthWritesTheSame) {
  const auto pipeline = Load(DType::kQ8_0, "f16", 2);
  ASSERT_NE(pipeline, nullptr);
  int accepted = 0;
  int rejected = 0;
  for (int width = 1; width <= 16; ++width) {
    for (const SamplerConfig& sampling : Samplings(3)) {
      SCOPED_TRACE(absl::StrCat("width ", width));
      Compare(*pipeline,
              {.prompt = RandomPrompt(11),
               .sampling = sampling,
               .tokens = 40,
               .width = width},
              accepted, rejected);
      if (HasFatalFailure()) return;
    }
  }
}

// The gate decides about time only, also while it turns drafting off and on.
TEST_P(SpecLossless, TheGateChangesNothing) {
  const auto pipeline = Load(DType::kQ8_0, "f16", 2);
  ASSERT_NE(pipeline, nullptr);
  int accepted = 0;
  int rejected = 0;
  for (const SamplerConfig& sampling : Samplings(5)) {
    Compare(*pipeline,
            {.prompt = RandomPrompt(5),
             .sampling = sampling,
             .tokens = 120,
             .gate = true},
            accepted, rejected);
  }
}

// The end of a reply at every place of a draft: a stop token, a sink that has
// heard enough, the last token asked for, a full context.
TEST_P(SpecLossless, RepliesEndInsideADraftAsWithoutOne) {
  const auto pipeline = Load(DType::kF32, "f16", 1);
  ASSERT_NE(pipeline, nullptr);
  const Decoder& decoder = *pipeline->decoder;
  const int vocab_size = decoder.info().vocab_size;
  for (const SamplerConfig& sampling : Samplings(9)) {
    const Wanted base = {.prompt = RandomPrompt(4),
                         .sampling = sampling,
                         .tokens = 20,
                         .width = 6};
    const Written whole = Write(decoder, base, nullptr);
    for (int end = 1; end < 20; ++end) {
      Wanted stopped = base;
      stopped.stops = {whole.history[base.prompt.size() +
                                     static_cast<std::size_t>(end) - 1]};
      Wanted heard = base;
      heard.sink_tokens = end;
      Wanted budget = base;
      budget.tokens = end;
      for (const Wanted& wanted : {stopped, heard, budget}) {
        const Written plain = Write(decoder, wanted, nullptr);
        for (const Script script : {Script::kPerfect, Script::kAlternating}) {
          SCOPED_TRACE(
              absl::StrCat("end ", end, " script ", static_cast<int>(script)));
          ScriptedDrafter drafter(script, whole.history, vocab_size);
          ExpectSame(Write(decoder, wanted, &drafter), plain);
        }
      }
    }
  }
}

// A conversation: each turn begins with what the last one left, also when the
// history is cut, and the drafter must not remember what was taken back.
TEST_P(SpecLossless, TurnsGoOnAsWithoutDrafts) {
  const auto pipeline = Load(DType::kQ8_0, "f16", 2);
  ASSERT_NE(pipeline, nullptr);
  const Decoder& decoder = *pipeline->decoder;
  for (const SamplerConfig& sampling : Samplings(21)) {
    for (const char* kind : kKinds) {
      const auto drafter = Make(*pipeline, kind);
      struct Side {
        std::unique_ptr<DecodeState> state;
        std::unique_ptr<Sampler> sampler;
        std::unique_ptr<Sequence> sequence;
      };
      Side sides[2];
      for (Side& side : sides) {
        side.state = decoder.NewState(250).value();
        side.sampler =
            std::make_unique<Sampler>(sampling, decoder.info().vocab_size);
        SequenceParts parts = {
            .state = side.state.get(),
            .sampler = side.sampler.get(),
            .drafter = &side == &sides[0] ? nullptr : drafter.get()};
        parts.gate.always_on = true;
        side.sequence = std::make_unique<Sequence>(decoder, parts);
      }
      std::vector<TokenId> prompt = RandomPrompt(30);
      int drafted = 0;
      for (int turn = 0; turn < 6; ++turn) {
        SCOPED_TRACE(absl::StrCat(kind, " turn ", turn));
        for (Side& side : sides) {
          ASSERT_TRUE(Generator(decoder)
                          .Generate(*side.sequence, prompt, {.max_tokens = 20},
                                    [](TokenId) { return true; })
                          .ok());
        }
        const auto plain = sides[0].sequence->history();
        const auto found = sides[1].sequence->history();
        ASSERT_EQ(std::vector<TokenId>(found.begin(), found.end()),
                  std::vector<TokenId>(plain.begin(), plain.end()));
        EXPECT_TRUE(testing::CommittedRows(*sides[1].state) ==
                    testing::CommittedRows(*sides[0].state));
        drafted += sides[1].sequence->stats().drafted;
        prompt.assign(plain.begin(), plain.end());
        prompt.resize(turn == 3 ? 2 : prompt.size() - turn);
        prompt.push_back(static_cast<TokenId>(turn));
      }
      EXPECT_GT(drafted, 0) << kind;
    }
  }
}

// A cancel that comes while drafts are verified leaves committed tokens only.
TEST_P(SpecLossless, ACancelledReplyCanBeContinued) {
  const auto pipeline = Load(DType::kF32, "f16", 1);
  ASSERT_NE(pipeline, nullptr);
  const Decoder& decoder = *pipeline->decoder;
  const Wanted base = {.prompt = RandomPrompt(8), .tokens = 30};
  const Written whole = Write(decoder, base, nullptr);
  for (int after = 1; after < 29; ++after) {
    ScriptedDrafter drafter(Script::kAlternating, whole.history,
                            decoder.info().vocab_size);
    const auto state = decoder.NewState(100).value();
    Sampler sampler({}, decoder.info().vocab_size);
    SequenceParts parts = {
        .state = state.get(), .sampler = &sampler, .drafter = &drafter};
    parts.gate.always_on = true;
    Sequence sequence(decoder, parts);
    std::atomic<bool> cancel = false;
    int heard = 0;
    ASSERT_TRUE(Generator(decoder)
                    .Generate(sequence, base.prompt,
                              {.max_tokens = 30, .cancel = &cancel},
                              [&](TokenId) {
                                cancel = ++heard >= after;
                                return true;
                              })
                    .ok());
    EXPECT_EQ(sequence.finish_reason(), FinishReason::kCancelled) << after;
    ASSERT_EQ(state->length() + 1, static_cast<int>(sequence.history().size()));
    // On from there, as the run that nobody cancelled.
    const std::vector<TokenId> so_far(sequence.history().begin(),
                                      sequence.history().end());
    const int left = static_cast<int>(whole.history.size() - so_far.size());
    ASSERT_GT(left, 0);
    ASSERT_TRUE(Generator(decoder)
                    .Generate(sequence, so_far, {.max_tokens = left},
                              [](TokenId) { return true; })
                    .ok());
    EXPECT_EQ(std::vector<TokenId>(sequence.history().begin(),
                                   sequence.history().end()),
              whole.history)
        << after;
    EXPECT_TRUE(testing::CommittedRows(*state) == whole.rows) << after;
  }
}

// Streams in lockstep, each with its own drafter: rows of verifications lie
// next to rows of other sequences.
TEST_P(SpecLossless, StreamsWithDraftersWriteWhatEachWritesAlone) {
  const auto pipeline = Load(DType::kQ8_0, "f16", 2);
  ASSERT_NE(pipeline, nullptr);
  const Decoder& decoder = *pipeline->decoder;
  constexpr int kStreams = 5;
  struct Part {
    std::vector<TokenId> prompt;
    std::unique_ptr<DecodeState> state;
    std::unique_ptr<Sampler> sampler;
    std::unique_ptr<Drafter> drafter;
    std::unique_ptr<Sequence> sequence;
  };
  std::vector<Part> parts(kStreams);
  std::vector<Stream> streams;
  std::vector<Written> expected;
  int index = 0;
  for (Part& part : parts) {
    const auto seed = static_cast<std::uint32_t>(40 + index);
    const Wanted wanted = {.prompt = RandomPrompt(seed),
                           .sampling = Samplings(seed)[index % 2],
                           .tokens = 20 + 7 * index};
    expected.push_back(Write(decoder, wanted, nullptr));
    part.prompt = wanted.prompt;
    part.state = decoder.NewState(200).value();
    part.sampler =
        std::make_unique<Sampler>(wanted.sampling, decoder.info().vocab_size);
    if (index == 0) {
      part.drafter = std::make_unique<ScriptedDrafter>(
          Script::kAlternating, expected.back().history,
          decoder.info().vocab_size);
    } else if (index < 4) {
      part.drafter = Make(*pipeline, kKinds[index - 1]);
    }
    SequenceParts sequence = {.state = part.state.get(),
                              .sampler = part.sampler.get(),
                              .drafter = part.drafter.get()};
    sequence.gate.always_on = true;
    sequence.gate.max_draft = 1 + 4 * index;
    part.sequence = std::make_unique<Sequence>(decoder, sequence);
    streams.push_back({.sequence = part.sequence.get(),
                       .prompt = part.prompt,
                       .limits = {.max_tokens = wanted.tokens}});
    ++index;
  }
  Generator(decoder).Generate(streams);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    ASSERT_TRUE(streams[i].status.ok()) << streams[i].status;
    const auto found = parts[i].sequence->history();
    EXPECT_EQ(std::vector<TokenId>(found.begin(), found.end()),
              expected[i].history)
        << i;
    EXPECT_TRUE(testing::CommittedRows(*parts[i].state) == expected[i].rows)
        << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SpecLossless,
                         ::testing::Values("D", "M", "Gq"));

}  // namespace
}  // namespace fucina
