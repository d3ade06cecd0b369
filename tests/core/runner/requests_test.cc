// What a step may ask for beyond tokens: extra embeddings, adapters, a tap.

#include <cmath>
#include <cstring>
#include <deque>
#include <optional>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/runner/loaded_model.h"
#include "tests/core/runner/model_variants.h"

namespace fucina {
namespace {

using ::testing::HasSubstr;
using testing::LoadedModel;
using testing::LogitsOf;
using testing::RandomTokens;
using testing::Row;
using testing::Rows;
using testing::SeededFixture;

constexpr BlockStyle kStyles[] = {BlockStyle::kFused,
                                  BlockStyle::kHostReference};

bool SameBits(const Rows& a, const Rows& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t r = 0; r < a.size(); ++r) {
    if (a[r].size() != b[r].size() ||
        std::memcmp(a[r].data(), b[r].data(), a[r].size() * 4) != 0) {
      return false;
    }
  }
  return true;
}

TEST(SuffixEmbeddings, EmbeddingRowsAreAsGoodAsTokens) {
  for (BlockStyle style : kStyles) {
    LoadedModel model(SeededFixture("D"), {.block_style = style});
    const auto tokens = RandomTokens(1, 9, 64);
    const Rows expected = model.All(tokens);
    const Tensor table =
        GgufFile::View(*model.file().FindTensor("token_embd.weight"));
    for (int suffix : {1, 4, 9}) {
      std::vector<float> rows;
      for (int i = 9 - suffix; i < 9; ++i) {
        const float* row = table.row_f32(tokens[i]);
        rows.insert(rows.end(), row, row + 32);
      }
      const auto state = model.NewState();
      SequenceStep step = {
          .tokens = std::span(tokens).first(9 - suffix),
          .state = state.get(),
          .suffix_embeddings = Tensor(DType::kF32, {suffix, 32}, rows.data()),
          .rows = LogitRows::kAll};
      ASSERT_TRUE(model.runner().Forward({&step, 1}).ok());
      EXPECT_EQ(state->length(), 9);
      EXPECT_TRUE(SameBits(LogitsOf(step), expected)) << suffix;
    }
  }
}

// --- taps -------------------------------------------------------------------

class Recorder final : public LayerTap {
 public:
  void OnLayer(int layer, int position, const Tensor& residual) override {
    positions.push_back(position);
    layers.push_back(layer);
    EXPECT_EQ(residual.dtype(), DType::kF32);
    Rows copy;
    for (std::int64_t r = 0; r < residual.num_rows(); ++r) {
      const float* row = residual.row_f32(r);
      copy.emplace_back(row, row + residual.row_size());
    }
    rows.push_back(copy);
  }
  std::vector<int> layers;
  std::vector<int> positions;
  std::vector<Rows> rows;  // by call
};

TEST(Tap, SeesEveryLayerOnceAndChangesNothing) {
  for (BlockStyle style : kStyles) {
    for (const char* fixture : {"D", "Gq"}) {
      LoadedModel model(SeededFixture(fixture), {.block_style = style});
      const auto tokens = RandomTokens(2, 11, 64);
      const Rows expected = model.All(tokens);
      for (LogitRows wanted :
           {LogitRows::kNone, LogitRows::kLast, LogitRows::kAll}) {
        const auto state = model.NewState();
        const auto untapped = model.NewState();
        Recorder tap;
        SequenceStep batch[] = {
            {.tokens = std::span(tokens).first(5), .state = untapped.get()},
            {.tokens = tokens,
             .state = state.get(),
             .rows = wanted,
             .tap = &tap}};
        ASSERT_TRUE(model.runner().Forward(batch).ok());
        EXPECT_THAT(tap.layers, ::testing::ElementsAre(0, 1));
        EXPECT_THAT(tap.positions, ::testing::ElementsAre(0, 0));
        for (const Rows& rows : tap.rows) {
          ASSERT_EQ(rows.size(), 11U);
          EXPECT_EQ(rows[0].size(), 32U);
        }
        EXPECT_TRUE(SameBits(LogitsOf(batch[0]), {expected[4]}));
        const Rows rows = LogitsOf(batch[1]);
        if (wanted == LogitRows::kLast) {
          EXPECT_TRUE(SameBits(rows, {expected.back()}));
        }
        if (wanted == LogitRows::kAll) {
          EXPECT_TRUE(SameBits(rows, expected));
        }

        // One token at a time shows the same residuals.
        Recorder single;
        const auto again = model.NewState();
        for (const TokenId& token : tokens) {
          SequenceStep step = {.tokens = {&token, 1},
                               .state = again.get(),
                               .rows = LogitRows::kNone,
                               .tap = &single};
          ASSERT_TRUE(model.runner().Forward({&step, 1}).ok());
        }
        for (std::size_t i = 0; i < tokens.size(); ++i) {
          for (int layer = 0; layer < 2; ++layer) {
            EXPECT_EQ(single.positions[2 * i + layer], static_cast<int>(i));
            EXPECT_TRUE(
                SameBits(single.rows[2 * i + layer], {tap.rows[layer][i]}));
          }
        }
      }
    }
  }
}

class PartTap final : public LayerTap {
 public:
  PartTap(int layer, TapRows rows) : layer_(layer), rows_(rows) {}
  TapRows Wants(int layer) const override {
    return layer == layer_ ? rows_ : TapRows::kNone;
  }
  void OnLayer(int layer, int position, const Tensor& residual) override {
    seen.OnLayer(layer, position, residual);
  }
  Recorder seen;

 private:
  const int layer_;
  const TapRows rows_;
};

TEST(Tap, SeesOnlyWhatItWants) {
  for (BlockStyle style : kStyles) {
    LoadedModel model(SeededFixture("D"), {.block_style = style});
    const auto tokens = RandomTokens(2, 11, 64);
    const Rows expected = model.All(tokens);
    const auto forward = [&](LayerTap& tap, LogitRows wanted) {
      const auto state = model.NewState();
      SequenceStep step = {
          .tokens = tokens, .state = state.get(), .rows = wanted, .tap = &tap};
      EXPECT_TRUE(model.runner().Forward({&step, 1}).ok());
      return LogitsOf(step);
    };
    Recorder every;
    forward(every, LogitRows::kAll);
    for (LogitRows wanted :
         {LogitRows::kNone, LogitRows::kLast, LogitRows::kAll}) {
      for (int layer = 0; layer < 2; ++layer) {
        for (TapRows rows : {TapRows::kLast, TapRows::kAll}) {
          PartTap tap(layer, rows);
          const Rows logits = forward(tap, wanted);
          EXPECT_TRUE(SameBits(logits, wanted == LogitRows::kAll ? expected
                                       : wanted == LogitRows::kLast
                                           ? Rows{expected.back()}
                                           : Rows{}));
          const Rows& all = every.rows[layer];
          EXPECT_THAT(tap.seen.layers, ::testing::ElementsAre(layer));
          EXPECT_THAT(tap.seen.positions,
                      ::testing::ElementsAre(rows == TapRows::kAll ? 0 : 10));
          EXPECT_TRUE(SameBits(tap.seen.rows[0],
                               rows == TapRows::kAll ? all : Rows{all.back()}));
        }
      }
    }
  }
}

TEST(Tap, SeesALongInputWhole) {
  testing::TinyModelSpec spec = SeededFixture("D");
  LoadedModel model(spec, {.block_style = BlockStyle::kFused});
  const auto tokens = RandomTokens(3, 700, 64);
  const auto state = model.NewState(800);
  const auto other = model.NewState(800);
  Recorder tap;
  SequenceStep batch[] = {
      {.tokens = tokens, .state = other.get()},
      {.tokens = tokens, .state = state.get(), .tap = &tap}};
  ASSERT_TRUE(model.runner().Forward(batch).ok());
  EXPECT_THAT(tap.layers, ::testing::ElementsAre(0, 1));
  EXPECT_EQ(tap.rows[0].size(), 700U);
  EXPECT_TRUE(SameBits(LogitsOf(batch[0]), LogitsOf(batch[1])));
}

// --- adapters ---------------------------------------------------------------

// Random pairs at some sites, and the memory behind them.
struct OwnedAdapter {
  OwnedAdapter(const DecoderInfo& info, std::uint32_t seed, float size,
               std::span<const LinearSite> sites) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> draw(-size, size);
    set.layers.resize(static_cast<std::size_t>(info.num_layers));
    for (auto& layer : set.layers) {
      for (LinearSite site : sites) {
        const std::size_t index = static_cast<std::size_t>(site);
        const SiteShape shape = info.sites[index];
        const std::int64_t rank = 1 + static_cast<std::int64_t>(random() % 4);
        auto& a = memory.emplace_back(shape.out * rank);
        auto& b = memory.emplace_back(rank * shape.in);
        for (float& value : a) value = draw(random);
        for (float& value : b) value = draw(random);
        layer[index] =
            LowRank{.a = Tensor(DType::kF32, {shape.out, rank}, a.data()),
                    .b = Tensor(DType::kF32, {rank, shape.in}, b.data()),
                    .scale = 0.5F};
      }
    }
  }
  std::deque<std::vector<float>> memory;
  AdapterSet set;
};

constexpr LinearSite kAllSites[] = {
    LinearSite::kQ,    LinearSite::kK,  LinearSite::kV,   LinearSite::kO,
    LinearSite::kGate, LinearSite::kUp, LinearSite::kDown};

Rows With(LoadedModel& model, const AdapterSet* adapter,
          std::span<const TokenId> tokens) {
  const auto state = model.NewState();
  SequenceStep step = {.tokens = tokens,
                       .state = state.get(),
                       .rows = LogitRows::kAll,
                       .adapter = adapter};
  const absl::Status status = model.runner().Forward({&step, 1});
  EXPECT_TRUE(status.ok()) << status;
  return LogitsOf(step);
}

// The file of `spec` with W + scale A B in place of each adapted W.
testing::OwnedFile Merged(const testing::TinyModelSpec& spec,
                          const AdapterSet& adapter) {
  constexpr const char* kNames[] = {"attn_q",      "attn_k",   "attn_v",
                                    "attn_output", "ffn_gate", "ffn_up",
                                    "ffn_down"};
  testing::OwnedFile base(testing::TinyModelBytes(spec));
  testing::FileEdit edit(spec);
  for (std::size_t layer = 0; layer < adapter.layers.size(); ++layer) {
    for (int site = 0; site < kNumLinearSites; ++site) {
      const auto& pair = adapter.layers[layer][site];
      if (!pair.has_value()) continue;
      const std::string name =
          "blk." + std::to_string(layer) + "." + kNames[site] + ".weight";
      const Tensor w = GgufFile::View(*base.file->FindTensor(name));
      std::vector<float> sum;
      for (std::int64_t i = 0; i < w.dim(0); ++i) {
        for (std::int64_t j = 0; j < w.dim(1); ++j) {
          double delta = 0;
          for (std::int64_t k = 0; k < pair->a.dim(1); ++k) {
            delta += double{pair->a.row_f32(i)[k]} * pair->b.row_f32(k)[j];
          }
          sum.push_back(
              static_cast<float>(w.row_f32(i)[j] + pair->scale * delta));
        }
      }
      edit.Tensor(name,
                  {static_cast<std::uint64_t>(w.dim(1)),
                   static_cast<std::uint64_t>(w.dim(0))},
                  sum);
    }
  }
  return edit.Make();
}

TEST(Adapter, EqualsTheMergedWeights) {
  testing::TinyModelSpec spec = SeededFixture("D");
  const auto tokens = RandomTokens(4, 12, 64);
  for (BlockStyle style : kStyles) {
    const RunnerOptions options = {.block_style = style,
                                   .cache_type = DType::kF32};
    LoadedModel model(spec, options);
    const OwnedAdapter adapter(model.runner().info(), 5, 0.2F, kAllSites);
    LoadedModel merged(Merged(spec, adapter.set), options);
    const Rows expected = merged.All(tokens);
    const Rows rows = With(model, &adapter.set, tokens);
    const Rows base = model.All(tokens);
    double moved = 0;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (std::size_t i = 0; i < rows[r].size(); ++i) {
        EXPECT_NEAR(rows[r][i], expected[r][i], 2e-5) << r << " " << i;
        moved = std::max<double>(moved, std::abs(rows[r][i] - base[r][i]));
      }
    }
    EXPECT_GT(moved, 0.05);  // the adapter does something
  }
}

TEST(Adapter, ZeroEqualsNone) {
  for (BlockStyle style : kStyles) {
    LoadedModel model(SeededFixture("D"), {.block_style = style});
    const OwnedAdapter zero(model.runner().info(), 6, 0, kAllSites);
    const AdapterSet empty;
    const auto tokens = RandomTokens(7, 12, 64);
    const Rows expected = model.All(tokens);
    EXPECT_TRUE(SameBits(With(model, &zero.set, tokens), expected));
    EXPECT_TRUE(SameBits(With(model, &empty, tokens), expected));
  }
}

TEST(Adapter, EachSequenceOfABatchHasItsOwn) {
  testing::TinyModelSpec quantized = SeededFixture("D");
  quantized.types = testing::TinyWeightTypes::All(DType::kQ8_0);
  for (const testing::TinyModelSpec& spec : {SeededFixture("D"), quantized}) {
    for (BlockStyle style : kStyles) {
      LoadedModel model(spec, {.block_style = style}, 2);
      const OwnedAdapter first(model.runner().info(), 8, 0.2F, kAllSites);
      const LinearSite few[] = {LinearSite::kV, LinearSite::kUp};
      const OwnedAdapter second(model.runner().info(), 9, 0.3F, few);
      const AdapterSet* adapters[] = {&first.set, nullptr, &second.set,
                                      &first.set, nullptr, &second.set};
      std::vector<std::unique_ptr<DecodeState>> states;
      std::vector<std::vector<TokenId>> tokens;
      std::vector<SequenceStep> batch;
      for (int i = 0; i < 6; ++i) {
        states.push_back(model.NewState());
        tokens.push_back(RandomTokens(20 + i, 3 + 2 * i, 64));
      }
      for (int i = 0; i < 6; ++i) {
        batch.push_back({.tokens = tokens[i],
                         .state = states[i].get(),
                         .rows = LogitRows::kAll,
                         .adapter = adapters[i]});
      }
      ASSERT_TRUE(model.runner().Forward(batch).ok());
      for (int i = 0; i < 6; ++i) {
        EXPECT_TRUE(
            SameBits(LogitsOf(batch[i]), With(model, adapters[i], tokens[i])))
            << i;
      }
    }
  }
}

TEST(Adapter, WrongShapesAreRefusedByName) {
  LoadedModel model(SeededFixture("D"), {});
  const DecoderInfo& info = model.runner().info();
  const auto tokens = RandomTokens(10, 3, 64);
  const auto state = model.NewState();
  const auto run = [&](const AdapterSet& adapter) {
    SequenceStep step = {
        .tokens = tokens, .state = state.get(), .adapter = &adapter};
    return model.runner().Forward({&step, 1});
  };
  const LinearSite q[] = {LinearSite::kQ};
  OwnedAdapter wrong(info, 11, 0.1F, q);
  std::swap(wrong.set.layers[1][0]->a, wrong.set.layers[1][0]->b);
  absl::Status status = run(wrong.set);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(HasSubstr("layer 1 site 'q'"),
                               HasSubstr("expected f32 [128, rank]"),
                               HasSubstr("[rank, 32]")));
  OwnedAdapter deep(info, 12, 0.1F, q);
  deep.set.layers.resize(3);
  status = run(deep.set);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("made for 3 layers, the model has 2"));
  EXPECT_EQ(state->length(), 0);
}

TEST(Adapter, AMixtureOffersNoFeedForwardSites) {
  LoadedModel model(SeededFixture("M"), {});
  const DecoderInfo& info = model.runner().info();
  EXPECT_EQ(info.sites[static_cast<int>(LinearSite::kQ)].out, 128);
  EXPECT_EQ(info.sites[static_cast<int>(LinearSite::kGate)].out, 0);
  LoadedModel dense(SeededFixture("D"), {});
  const LinearSite gate[] = {LinearSite::kGate};
  const OwnedAdapter adapter(dense.runner().info(), 13, 0.1F, gate);
  const auto tokens = RandomTokens(14, 3, 64);
  const auto state = model.NewState();
  SequenceStep step = {
      .tokens = tokens, .state = state.get(), .adapter = &adapter.set};
  const absl::Status status = model.runner().Forward({&step, 1});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(HasSubstr("'gate'"), HasSubstr("'qwen3moe'")));
}

}  // namespace
}  // namespace fucina
