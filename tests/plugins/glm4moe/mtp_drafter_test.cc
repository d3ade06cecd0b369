#include "plugins/glm4moe/mtp_drafter.h"

#include <map>
#include <string>

#include "fucina/decode/generator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/glm4moe/loaded_glm.h"

namespace fucina {
namespace {

using glm4moe::MtpDrafter;
using glm4moe::MtpDrafterKind;
using ::testing::HasSubstr;
using testing::LoadedGlm;
using testing::SeededFixture;

constexpr int kVocab = 64;

absl::StatusOr<std::unique_ptr<Drafter>> MakeDrafter(
    const Decoder& decoder, const std::map<std::string, std::string>& values) {
  const DrafterKind& kind = MtpDrafterKind();
  return kind.make(decoder, Options::Make(kind.options, values).value());
}

std::vector<TokenId> RandomTokens(std::uint32_t seed, int count) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    tokens.push_back(static_cast<TokenId>((seed >> 16) % kVocab));
  }
  return tokens;
}

// Drafts at every step, whatever it costs on this machine.
SpeculationGateOptions AlwaysOn() {
  SpeculationGateOptions options;
  options.always_on = true;
  return options;
}

struct Reply {
  std::vector<TokenId> history;
  GenerationStats stats;
};

// One sequence and its parts; goes on from turn to turn.
struct Conversation {
  Conversation(const Decoder& decoder, double temperature, Drafter* drafter)
      : model(decoder),
        state(decoder.NewState(200).value()),
        sampler({.temperature = temperature,
                 .repeat_penalty = temperature > 0 ? 1.2 : 1,
                 .seed = 7},
                kVocab),
        sequence(decoder, {.state = state.get(),
                           .sampler = &sampler,
                           .drafter = drafter,
                           .gate = AlwaysOn()}) {}

  Reply Generate(const std::vector<TokenId>& prompt, int tokens) {
    const absl::Status status = Generator(model).Generate(
        sequence, prompt, {.max_tokens = tokens}, [](TokenId) { return true; });
    EXPECT_TRUE(status.ok()) << status;
    return {{sequence.history().begin(), sequence.history().end()},
            sequence.stats()};
  }

  const Decoder& model;
  std::unique_ptr<DecodeState> state;
  Sampler sampler;
  Sequence sequence;
};

// The bar of the whole matter: whatever the depth, the threads and the sampler,
// the tokens are those of plain decoding.
TEST(MtpDrafter, NeverChangesTheTokens) {
  int accepted = 0;
  for (int threads = 1; threads <= 4; ++threads) {
    LoadedGlm model(SeededFixture(threads % 2 == 0 ? "G" : "Gq"), {}, threads);
    ASSERT_TRUE(model.decoder.ok()) << model.decoder.status();
    for (std::uint32_t p = 0; p < 50; ++p) {
      const std::vector<TokenId> prompt =
          RandomTokens(p, 1 + static_cast<int>(p) % 17);
      for (const double temperature : {0.0, 0.9}) {
        Conversation plain(model.glm(), temperature, nullptr);
        const Reply expected = plain.Generate(prompt, 16);
        for (int depth = 1; depth <= 8; ++depth) {
          const auto drafter =
              MakeDrafter(model.glm(),
                          {{"depth", std::to_string(depth)}, {"p_min", "0"}})
                  .value();
          Conversation drafted(model.glm(), temperature, drafter.get());
          const Reply found = drafted.Generate(prompt, 16);
          ASSERT_EQ(found.history, expected.history)
              << "prompt " << p << " depth " << depth << " threads " << threads;
          EXPECT_GT(found.stats.drafted, 0);
          accepted += found.stats.accepted;
        }
      }
    }
  }
  EXPECT_GT(accepted, 0);
}

// The published guesses of the fixtures, through the tap of real forwards.
TEST(MtpDrafter, GuessesAsPublished) {
  LoadedGlm model(SeededFixture("G"), {{"cache_type", "f32"}});
  const auto drafter =
      MakeDrafter(model.glm(), {{"depth", "2"}, {"p_min", "0"}}).value();
  const auto state = model.glm().NewState(16).value();
  const std::vector<TokenId> prompt = {5, 61, 2, 33, 17};
  // In two chunks: rows come before the tokens that follow them.
  for (const auto& [first, count] : {std::pair{0, 3}, std::pair{3, 2}}) {
    const auto chunk = std::span(prompt).subspan(first, count);
    SequenceStep step = {
        .tokens = chunk, .state = state.get(), .tap = drafter->tap()};
    ASSERT_TRUE(model.glm().Forward({&step, 1}).ok());
    drafter->Commit(chunk);
  }
  const TokenId next = 32;
  drafter->Commit({&next, 1});
  std::vector<TokenId> context = prompt;
  context.push_back(next);
  std::vector<TokenId> draft(8);
  ASSERT_EQ(drafter->Propose(context, draft), 2);
  EXPECT_EQ(draft[0], 44);
  EXPECT_EQ(draft[1], 31);
}

// What it proposes depends on what was committed, not on how it came about.
TEST(MtpDrafter, TurnsAndRejectedDraftsLeaveNoTrace) {
  LoadedGlm model(SeededFixture("Gq"));
  const auto proposal = [&](Drafter& drafter,
                            std::span<const TokenId> context) {
    std::vector<TokenId> draft(8);
    draft.resize(static_cast<std::size_t>(drafter.Propose(context, draft)));
    return draft;
  };
  const std::map<std::string, std::string> values = {{"depth", "3"},
                                                     {"p_min", "0"}};
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    const auto drafter = MakeDrafter(model.glm(), values).value();
    Conversation talk(model.glm(), 0, drafter.get());
    Reply run = talk.Generate(RandomTokens(seed, 9), 12);
    std::vector<TokenId> prompt = run.history;
    for (const TokenId token : RandomTokens(seed + 100, 5)) {
      prompt.push_back(token);
    }
    run = talk.Generate(prompt, 12);

    const auto fresh = MakeDrafter(model.glm(), values).value();
    Conversation once(model.glm(), 0, fresh.get());
    const std::span<const TokenId> all = run.history;
    // Up to the newest token, which no forward has seen yet.
    once.Generate({all.begin(), all.end() - 1}, 1);
    ASSERT_EQ(once.sequence.history().back(), all.back());
    const std::vector<TokenId> draft = proposal(*drafter, all);
    EXPECT_EQ(draft.size(), 3U) << seed;
    EXPECT_EQ(draft, proposal(*fresh, all)) << seed;
    // The question alone changes nothing either.
    EXPECT_EQ(draft, proposal(*drafter, all)) << seed;
  }
}

TEST(MtpDrafter, GoesOnWhenHistoryIsRenderedAnew) {
  LoadedGlm model(SeededFixture("G"));
  const auto drafter =
      MakeDrafter(model.glm(), {{"depth", "2"}, {"p_min", "0"}}).value();
  Conversation drafted(model.glm(), 0, drafter.get());
  Conversation plain(model.glm(), 0, nullptr);
  std::vector<TokenId> prompt = RandomTokens(3, 20);
  for (int turn = 0; turn < 6; ++turn) {
    const Reply expected = plain.Generate(prompt, 10);
    const Reply found = drafted.Generate(prompt, 10);
    ASSERT_EQ(found.history, expected.history);
    EXPECT_GT(found.stats.drafted, 0) << turn;
    prompt = expected.history;
    // Cut in the reply, in the prompt, to almost nothing.
    prompt.resize(turn == 4 ? 1 : prompt.size() - 2 * turn);
    prompt.push_back(static_cast<TokenId>(turn));
  }
}

TEST(MtpDrafter, StopsAfterAnUnlikelyGuess) {
  LoadedGlm model(SeededFixture("G"));
  for (const auto& [p_min, most] : {std::pair{"0", 8}, std::pair{"1", 1}}) {
    const auto drafter =
        MakeDrafter(model.glm(), {{"depth", "8"}, {"p_min", p_min}}).value();
    Conversation talk(model.glm(), 0, drafter.get());
    const Reply run = talk.Generate(RandomTokens(1, 8), 40);
    EXPECT_EQ(run.stats.drafted > run.stats.forwards, most > 1) << p_min;
    const auto& mtp = static_cast<const MtpDrafter&>(*drafter);
    EXPECT_GT(mtp.guesses(), 0);
    EXPECT_LE(mtp.hits(), mtp.guesses());
  }
}

TEST(MtpDrafter, LongPromptsAreFedAsTheyAreRead) {
  testing::TinyModelSpec spec = SeededFixture("G");
  spec.context_length = 2000;
  LoadedGlm model(spec);
  const auto drafter =
      MakeDrafter(model.glm(), {{"depth", "1"}, {"p_min", "0"}}).value();
  const auto state = model.glm().NewState(1600).value();
  Sampler sampler({}, kVocab);
  Sequence sequence(model.glm(), {.state = state.get(),
                                  .sampler = &sampler,
                                  .drafter = drafter.get(),
                                  .gate = AlwaysOn()});
  const auto prompt = RandomTokens(11, 1500);
  ASSERT_TRUE(Generator(model.glm())
                  .Generate(sequence, prompt,
                            {.max_tokens = 20, .prefill_chunk = 300},
                            [](TokenId) { return true; })
                  .ok());
  EXPECT_GT(sequence.stats().drafted, 0);
}

// More tokens than the layer's own cache holds: it begins anew.
TEST(MtpDrafter, ContextsBeyondTheTrainedOneStillDraft) {
  testing::TinyModelSpec spec = SeededFixture("G");
  spec.context_length = 24;
  LoadedGlm model(spec);
  const auto drafter =
      MakeDrafter(model.glm(), {{"depth", "2"}, {"p_min", "0"}}).value();
  Conversation drafted(model.glm(), 0, drafter.get());
  Conversation plain(model.glm(), 0, nullptr);
  const Reply found = drafted.Generate(RandomTokens(5, 10), 80);
  EXPECT_EQ(found.history, plain.Generate(RandomTokens(5, 10), 80).history);
  EXPECT_GT(found.stats.drafted, 40);
}

TEST(MtpDrafter, RefusesWhatItCannotServe) {
  LoadedGlm model(SeededFixture("G"));
  for (const char* depth : {"0", "9"}) {
    const absl::Status status =
        MakeDrafter(model.glm(), {{"depth", depth}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), std::string("option 'depth': expected 1 to 8, "
                                            "found ") +
                                    depth);
  }
  EXPECT_EQ(MakeDrafter(model.glm(), {{"p_min", "1.5"}}).status().message(),
            "option 'p_min': expected 0 to 1, found 1.5");
  testing::TinyModelSpec without = SeededFixture("G");
  without.num_nextn_layers = 0;
  LoadedGlm plain(without);
  EXPECT_THAT(std::string(MakeDrafter(plain.glm(), {}).status().message()),
              HasSubstr("has no prediction layer"));
}

}  // namespace
}  // namespace fucina
