// Only the clock changes: however a sequence is cut, batched, threaded, undone
// and repeated, and at whatever kernel level, its logits have the same bits.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "fucina/decode/generator.h"
#include "fucina/decode/sampler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/runner/loaded_model.h"
#include "tests/core/runner/model_variants.h"

namespace fucina {
namespace {

using testing::Argmax;
using testing::LoadedModel;
using testing::LogitsOf;
using testing::PlainVariants;
using testing::QuantizedVariants;
using testing::RandomTokens;
using testing::Row;
using testing::Rows;
using testing::Variant;

RunnerOptions OptionsOf(const Variant& variant) {
  return {.block_style = variant.style, .cache_type = variant.cache_type};
}

bool SameBits(const Row& a, const Row& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}
bool SameBits(const Rows& a, const Rows& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Row& x, const Row& y) { return SameBits(x, y); });
}

// The tokens one at a time, alone: what every other way must equal.
Rows OneByOne(LoadedModel& model, std::span<const TokenId> tokens) {
  const auto state = model.NewState(1024);
  Rows rows;
  for (const TokenId& token : tokens) {
    rows.push_back(model.Forward(*state, {&token, 1})[0]);
  }
  return rows;
}

Rows InPieces(LoadedModel& model, std::span<const TokenId> tokens,
              const std::vector<int>& pieces) {
  const auto state = model.NewState(1024);
  Rows rows;
  std::size_t at = 0;
  for (std::size_t i = 0; at < tokens.size(); ++i) {
    const std::size_t n =
        std::min<std::size_t>(pieces[i % pieces.size()], tokens.size() - at);
    for (Row& row :
         model.Forward(*state, tokens.subspan(at, n), LogitRows::kAll)) {
      rows.push_back(std::move(row));
    }
    at += n;
  }
  EXPECT_EQ(state->length(), static_cast<int>(tokens.size()));
  return rows;
}

class Properties : public ::testing::TestWithParam<Variant> {};

TEST_P(Properties, AnyCutGivesTheSameRows) {
  LoadedModel model(GetParam().spec, OptionsOf(GetParam()));
  const auto tokens = RandomTokens(1, 70, GetParam().spec.vocab_size);
  const Rows expected = OneByOne(model, tokens);
  for (const std::vector<int>& pieces :
       std::vector<std::vector<int>>{{70}, {7}, {1, 64}, {13, 2, 1, 40}}) {
    EXPECT_TRUE(SameBits(InPieces(model, tokens, pieces), expected));
  }
  // The last row alone is the last of all.
  const auto state = model.NewState();
  EXPECT_TRUE(SameBits(model.Forward(*state, tokens)[0], expected.back()));
}

TEST_P(Properties, AForwardMayAskForNoRows) {
  LoadedModel model(GetParam().spec, OptionsOf(GetParam()));
  const auto tokens = RandomTokens(2, 20, GetParam().spec.vocab_size);
  const Rows expected = OneByOne(model, tokens);
  const auto state = model.NewState();
  EXPECT_TRUE(
      model.Forward(*state, std::span(tokens).first(19), LogitRows::kNone)
          .empty());
  EXPECT_EQ(state->length(), 19);
  EXPECT_TRUE(SameBits(model.Forward(*state, std::span(tokens).last(1))[0],
                       expected.back()));
}

TEST_P(Properties, TruncateAndReplayLeavesNoTrace) {
  LoadedModel model(GetParam().spec, OptionsOf(GetParam()));
  const auto tokens = RandomTokens(3, 30, GetParam().spec.vocab_size);
  const auto garbage = RandomTokens(4, 17, GetParam().spec.vocab_size);
  const Rows expected = OneByOne(model, tokens);
  const auto state = model.NewState();
  model.Forward(*state, std::span(tokens).first(24));
  for (int keep : {20, 9, 0}) {
    ASSERT_TRUE(state->Truncate(keep).ok());
    model.Forward(*state, garbage, LogitRows::kAll);
    ASSERT_TRUE(state->Truncate(keep).ok());
    const Rows rows =
        model.Forward(*state, std::span(tokens).subspan(keep), LogitRows::kAll);
    EXPECT_TRUE(SameBits(rows, Rows(expected.begin() + keep, expected.end())));
  }
}

// Streams of different lengths, stepped together with spans of 1, 3 and 2
// tokens, in one order and in another.
TEST_P(Properties, ABatchEqualsItsStreamsAlone) {
  LoadedModel model(GetParam().spec, OptionsOf(GetParam()));
  const int vocab = GetParam().spec.vocab_size;
  constexpr int kStreams = 5;
  const int prefix[kStreams] = {1, 33, 8, 64, 2};
  const int span[kStreams] = {1, 3, 2, 1, 5};
  std::vector<std::vector<TokenId>> tokens;
  std::vector<Rows> expected;
  for (int i = 0; i < kStreams; ++i) {
    tokens.push_back(RandomTokens(10 + i, prefix[i] + 2 * span[i], vocab));
    expected.push_back(OneByOne(model, tokens.back()));
  }
  std::vector<int> order = {0, 1, 2, 3, 4};
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<DecodeState>> states;
    for (int i = 0; i < kStreams; ++i) {
      states.push_back(model.NewState());
      model.Forward(*states[i], std::span(tokens[i]).first(prefix[i]),
                    LogitRows::kNone);
    }
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<SequenceStep> batch;
      for (int i : order) {
        batch.push_back({.tokens = std::span(tokens[i]).subspan(
                             prefix[i] + turn * span[i], span[i]),
                         .state = states[i].get(),
                         .rows = i == 2 ? LogitRows::kLast : LogitRows::kAll});
      }
      ASSERT_TRUE(model.runner().Forward(batch).ok());
      for (int k = 0; k < kStreams; ++k) {
        const int i = order[k];
        const auto end = expected[i].begin() + prefix[i] + (turn + 1) * span[i];
        const Rows rows = LogitsOf(batch[k]);
        EXPECT_TRUE(SameBits(
            rows, Rows(end - static_cast<std::ptrdiff_t>(rows.size()), end)))
            << "stream " << i << " turn " << turn;
        EXPECT_EQ(rows.size(), i == 2 ? 1U : static_cast<std::size_t>(span[i]));
      }
    }
    std::rotate(order.begin(), order.begin() + 2, order.end());
  }
}

TEST_P(Properties, ThreadsDoNotMatter) {
  const auto tokens = RandomTokens(5, 40, GetParam().spec.vocab_size);
  LoadedModel one(GetParam().spec, OptionsOf(GetParam()), 1);
  const Rows expected = one.All(tokens);
  for (int threads : {2, 4, 7}) {
    LoadedModel model(GetParam().spec, OptionsOf(GetParam()), threads);
    EXPECT_TRUE(SameBits(model.All(tokens), expected)) << threads;
    EXPECT_TRUE(SameBits(OneByOne(model, tokens), expected)) << threads;
  }
}

TEST_P(Properties, KernelLevelsGiveTheSameBits) {
  const auto tokens = RandomTokens(6, 40, GetParam().spec.vocab_size);
  Rows expected;
  for (KernelLevel level : testing::SupportedLevels()) {
    RunnerOptions options = OptionsOf(GetParam());
    options.kernel_level = level;
    LoadedModel model(GetParam().spec, options, 2);
    EXPECT_EQ(model.runner().kernel_level(), level);
    const Rows rows = model.All(tokens);
    if (expected.empty()) expected = rows;
    EXPECT_TRUE(SameBits(rows, expected)) << Name(level);
    EXPECT_TRUE(SameBits(OneByOne(model, tokens), expected)) << Name(level);
  }
}

TEST_P(Properties, ErrorsLeaveStatesAsTheyWere) {
  LoadedModel model(GetParam().spec, OptionsOf(GetParam()));
  LoadedModel other(GetParam().spec, OptionsOf(GetParam()));
  const int vocab = GetParam().spec.vocab_size;
  const auto tokens = RandomTokens(7, 12, vocab);
  const Rows expected = OneByOne(model, tokens);
  const auto a = model.NewState(12);
  const auto b = model.NewState(64);
  const auto foreign = other.NewState(64);
  model.Forward(*a, std::span(tokens).first(10));
  model.Forward(*b, std::span(tokens).first(10));

  const std::span<const TokenId> two = std::span(tokens).subspan(10, 2);
  const TokenId negative[] = {1, -1};
  const TokenId outside[] = {1, vocab};
  const std::vector<TokenId> three = {1, 2, 3};
  std::vector<float> rows(vocab);
  const Tensor wrong_width(DType::kF32, {1, 7}, rows.data());
  struct Case {
    std::vector<SequenceStep> batch;
    absl::StatusCode code;
    const char* says;
  };
  const std::vector<Case> cases = {
      {{}, absl::StatusCode::kInvalidArgument, "no steps"},
      {{{.tokens = two, .state = b.get()}, {.tokens = {}, .state = a.get()}},
       absl::StatusCode::kInvalidArgument,
       "step 1 has no tokens"},
      {{{.tokens = two, .state = b.get()},
        {.tokens = negative, .state = a.get()}},
       absl::StatusCode::kInvalidArgument,
       "step 1: token -1 is outside [0, "},
      {{{.tokens = outside, .state = a.get()}},
       absl::StatusCode::kInvalidArgument,
       "is outside [0, "},
      {{{.tokens = two, .state = b.get()}, {.tokens = three, .state = a.get()}},
       absl::StatusCode::kOutOfRange,
       "step 1: 3 tokens after 10 do not fit a state of 12"},
      {{{.tokens = two, .state = a.get()}, {.tokens = two, .state = a.get()}},
       absl::StatusCode::kInvalidArgument,
       "one state occurs twice"},
      {{{.tokens = two, .state = b.get()},
        {.tokens = two, .state = foreign.get()}},
       absl::StatusCode::kInvalidArgument,
       "step 1 has a state that another decoder made"},
      {{{.tokens = two, .state = nullptr}},
       absl::StatusCode::kInvalidArgument,
       "step 0 has no state"},
      {{{.tokens = two, .state = b.get(), .suffix_embeddings = wrong_width}},
       absl::StatusCode::kInvalidArgument,
       "suffix_embeddings are f32 [1, 7]; expected f32 [n, "},
  };
  for (Case c : cases) {
    const absl::Status status = model.runner().Forward(c.batch);
    EXPECT_EQ(status.code(), c.code) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(c.says));
    EXPECT_EQ(a->length(), 10);
    EXPECT_EQ(b->length(), 10);
    EXPECT_EQ(foreign->length(), 0);
  }
  const Rows last(expected.begin() + 10, expected.end());
  EXPECT_TRUE(SameBits(model.Forward(*a, two, LogitRows::kAll), last));
  EXPECT_TRUE(SameBits(model.Forward(*b, two, LogitRows::kAll), last));
}

INSTANTIATE_TEST_SUITE_P(Plain, Properties,
                         ::testing::ValuesIn(PlainVariants()),
                         [](const auto& test) { return test.param.name; });

// Encoding a model takes longer than running it.
const std::string& BytesOf(const Variant& variant) {
  static std::map<std::string, std::string> bytes;
  std::string& found = bytes[variant.name];
  if (found.empty()) found = testing::TinyModelBytes(variant.spec);
  return found;
}

LoadedModel Load(const Variant& variant, const RunnerOptions& options,
                 int num_threads) {
  return LoadedModel(testing::OwnedFile(BytesOf(variant)), options,
                     num_threads);
}

// For each weight format: cuts, a batch of strangers, threads and levels.
class WeightFormats : public ::testing::TestWithParam<Variant> {};

TEST_P(WeightFormats, CutsBatchesThreadsAndLevelsDoNotMatter) {
  const Variant& variant = GetParam();
  const auto tokens = RandomTokens(8, 30, variant.spec.vocab_size);
  const auto others = RandomTokens(9, 12, variant.spec.vocab_size);
  Rows expected;
  int threads = 1;
  for (KernelLevel level : testing::SupportedLevels()) {
    RunnerOptions options = OptionsOf(variant);
    options.kernel_level = level;
    LoadedModel model = Load(variant, options, threads++);
    const Rows rows = model.All(tokens);
    if (expected.empty()) expected = OneByOne(model, tokens);
    EXPECT_TRUE(SameBits(rows, expected)) << Name(level);

    const auto state = model.NewState();
    const auto other = model.NewState();
    model.Forward(*state, std::span(tokens).first(20));
    SequenceStep batch[] = {
        {.tokens = others, .state = other.get(), .rows = LogitRows::kAll},
        {.tokens = std::span(tokens).subspan(20),
         .state = state.get(),
         .rows = LogitRows::kAll}};
    ASSERT_TRUE(model.runner().Forward(batch).ok());
    EXPECT_TRUE(SameBits(LogitsOf(batch[1]),
                         Rows(expected.begin() + 20, expected.end())))
        << Name(level);
  }
}

INSTANTIATE_TEST_SUITE_P(All, WeightFormats,
                         ::testing::ValuesIn(QuantizedVariants()),
                         [](const auto& test) { return test.param.name; });

// The fast path rounds activations for integer weights; against the reference
// of the same weights the logits stay close, and for float weights closer. All
// experts are used: near a tie another choice would be as good and far away.
TEST_P(WeightFormats, StayCloseToTheReference) {
  Variant variant = GetParam();
  if (variant.spec.architecture == "qwen3moe") {
    variant.spec.num_experts_used = variant.spec.num_experts;
    variant.name += "_all";
  }
  const auto tokens = RandomTokens(11, 16, variant.spec.vocab_size);
  RunnerOptions options = OptionsOf(variant);
  options.cache_type = DType::kF32;
  const Rows fused = Load(variant, options, 2).All(tokens);
  options.block_style = BlockStyle::kHostReference;
  const Rows reference = Load(variant, options, 2).All(tokens);
  const DType dtype = variant.spec.types.attention;
  const bool plain =
      dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
  for (std::size_t r = 0; r < fused.size(); ++r) {
    double dot = 0;
    double aa = 0;
    double bb = 0;
    for (std::size_t i = 0; i < fused[r].size(); ++i) {
      dot += double{fused[r][i]} * reference[r][i];
      aa += double{fused[r][i]} * fused[r][i];
      bb += double{reference[r][i]} * reference[r][i];
    }
    EXPECT_GE(dot / std::sqrt(aa * bb), plain ? 0.9999999 : 0.998) << r;
  }
}

// More rows than one piece holds, and a context over several runs of the cache.
TEST(LongInput, IsCutInsideWithoutATrace) {
  testing::TinyModelSpec spec = testing::SeededFixture("D");
  spec.hidden_size = 16;
  spec.num_heads = 2;
  spec.num_kv_heads = 1;
  spec.head_dim = 8;
  spec.ffn_size = 16;
  LoadedModel model(spec, {.block_style = BlockStyle::kFused}, 2);
  const auto tokens = RandomTokens(12, 1300, spec.vocab_size);
  const auto step_by_step = model.NewState(1400);
  Rows expected;
  for (const TokenId& token : tokens) {
    expected.push_back(model.Forward(*step_by_step, {&token, 1})[0]);
  }
  const auto whole = model.NewState(1400);
  EXPECT_TRUE(
      SameBits(model.Forward(*whole, tokens, LogitRows::kAll), expected));
  for (int piece : {7, 64, 512, 600}) {
    const auto state = model.NewState(1400);
    Row last;
    for (std::size_t at = 0; at < tokens.size(); at += piece) {
      const auto part = std::span(tokens).subspan(
          at, std::min<std::size_t>(piece, tokens.size() - at));
      last = model.Forward(*state, part)[0];
    }
    EXPECT_TRUE(SameBits(last, expected.back())) << piece;
  }
}

// CTX-3: the prompt's chunks, with the generator that cuts them. The bits of
// the prompt's logits and the ids that follow are those of one token at a time.
TEST(LongInput, TensOfThousandsOfTokensInChunksOfAnySize) {
  testing::TinyModelSpec spec = testing::SeededFixture("D");
  spec.vocab_size = 32;
  spec.hidden_size = 8;
  // Rows without logits are not carried through the last layer: two others.
  spec.num_layers = 3;
  spec.num_heads = 1;
  spec.num_kv_heads = 1;
  spec.head_dim = 8;
  spec.ffn_size = 8;
  spec.context_length = 32768;
  spec.weight_scale = 8;
  LoadedModel model(spec, {.block_style = BlockStyle::kFused}, 2);
  constexpr int kPrompt = 20011;  // a prime: the last chunk is never whole
  const auto prompt = RandomTokens(14, kPrompt, spec.vocab_size);
  Row expected_row;
  std::vector<TokenId> expected_ids;
  for (const int chunk : {1, 7, 64, 512, 4096, kPrompt}) {
    const auto state = model.NewState(kPrompt + 16);
    Sampler sampler({.temperature = 1, .seed = 5}, spec.vocab_size);
    Sequence sequence(model.runner(),
                      {.state = state.get(), .sampler = &sampler});
    Row row;
    const std::function<void(std::span<const float>)> look =
        [&](std::span<const float> logits) {
          row.assign(logits.begin(), logits.end());
        };
    std::vector<TokenId> ids;
    const absl::Status status = Generator(model.runner())
                                    .Generate(sequence, prompt,
                                              {.max_tokens = 12,
                                               .prefill_chunk = chunk,
                                               .on_prompt_logits = &look},
                                              [&](TokenId token) {
                                                ids.push_back(token);
                                                return true;
                                              });
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(row.size(), 32U);
    ASSERT_EQ(ids.size(), 12U);
    EXPECT_EQ(state->length(), kPrompt + 11);
    if (chunk == 1) {
      expected_row = row;
      expected_ids = ids;
    }
    EXPECT_TRUE(SameBits(row, expected_row)) << chunk;
    EXPECT_EQ(ids, expected_ids) << chunk;
  }
}

// SAMP-4: a request among 1, 3, 7 and 40 others of other lengths, decoded in
// lockstep, gets the logits bit for bit that it gets alone: the same draws and
// the same probabilities.
TEST(Lockstep, ARequestDoesNotFeelItsNeighbours) {
  for (const char* fixture : {"Dy", "M"}) {
    testing::TinyModelSpec spec = testing::SeededFixture(fixture);
    spec.context_length = 1024;
    spec.weight_scale = 4;
    LoadedModel model(spec, {.block_style = BlockStyle::kFused}, 2);
    constexpr int kSteps = 12;
    const auto prompt = RandomTokens(15, 21, spec.vocab_size);
    // Alone, drawing each token from its own logits.
    Rows alone;
    std::vector<TokenId> ids;
    {
      const auto state = model.NewState();
      Sampler sampler({.temperature = 1, .seed = 3}, spec.vocab_size);
      Row row = model.Forward(*state, prompt)[0];
      for (int i = 0; i < kSteps; ++i) {
        alone.push_back(row);
        ids.push_back(sampler.Sample(row, {}).value());
        row = model.Forward(*state, {&ids.back(), 1})[0];
      }
    }
    for (const int others : {1, 3, 7, 40}) {
      const int count = others + 1;
      const int mine = others / 2;
      std::vector<std::unique_ptr<DecodeState>> states;
      std::vector<std::vector<TokenId>> inputs;
      for (int i = 0; i < count; ++i) {
        states.push_back(model.NewState());
        inputs.push_back(i == mine ? prompt
                                   : RandomTokens(100 + i, 1 + (i * 37) % 90,
                                                  spec.vocab_size));
      }
      Sampler sampler({.temperature = 1, .seed = 3}, spec.vocab_size);
      for (int step = 0; step < kSteps; ++step) {
        std::vector<SequenceStep> batch;
        for (int i = 0; i < count; ++i) {
          batch.push_back({.tokens = inputs[i], .state = states[i].get()});
        }
        ASSERT_TRUE(model.runner().Forward(batch).ok());
        for (int i = 0; i < count; ++i) {
          Row row = LogitsOf(batch[i])[0];
          if (i != mine) {
            inputs[i] = {Argmax(row)};
            continue;
          }
          EXPECT_TRUE(SameBits(row, alone[step])) << fixture << others;
          inputs[i] = {sampler.Sample(row, {}).value()};
          EXPECT_EQ(inputs[i][0], ids[step]) << fixture << others;
        }
      }
    }
  }
}

TEST(Threads, TwoMayRunForwardsOfTheirOwnStates) {
  LoadedModel model(testing::SeededFixture("M"),
                    {.block_style = BlockStyle::kFused}, 2);
  const auto tokens = RandomTokens(13, 50, 64);
  const Rows expected = OneByOne(model, tokens);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 4; ++round) {
        if (!SameBits(OneByOne(model, tokens), expected)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace fucina
