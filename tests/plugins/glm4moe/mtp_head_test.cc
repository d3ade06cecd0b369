// The prediction layer against published numbers: computed in f64 and, for the
// first guess, by another engine (see the fixtures G and Gq).
#include "plugins/glm4moe/mtp_head.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/runner/file_edit.h"
#include "tests/core/runner/oracle_golden.h"
#include "tests/core/runner/oracle_models.h"
#include "tests/plugins/glm4moe/loaded_glm.h"

namespace fucina {
namespace {

using glm4moe::MtpHead;
using ::testing::AllOf;
using testing::Best;
using ::testing::HasSubstr;
using testing::LoadedGlm;
using testing::SeededFixture;

// Hidden rows behind the trunk's last norm.
class HiddenRows final : public LayerTap {
 public:
  explicit HiddenRows(const MtpHead& head) : head_(head) {}
  void OnLayer(int layer, int position, const Tensor& residual) override {
    if (layer + 1 != head_.trunk_layers()) return;
    EXPECT_EQ(position, 0);
    values.resize(
        static_cast<std::size_t>(residual.num_rows() * residual.row_size()));
    rows = Tensor(DType::kF32, {residual.num_rows(), residual.row_size()},
                  values.data());
    head_.NormTrunk(residual, rows);
  }
  std::vector<float> values;
  Tensor rows;

 private:
  const MtpHead& head_;
};

struct Published {
  const char* fixture;
  bool own_tensors;
  TokenId next, first, second;
  float first_logits[4];
  float second_logits[4];
};

constexpr Published kPublished[] = {
    {"G",
     false,
     32,
     44,
     31,
     {0.301326F, -0.085716F, 0.189620F, 0.002057F},
     {-0.029295F, -0.114123F, 0.528927F, 0.794942F}},
    {"G",
     true,
     32,
     49,
     26,
     {-0.453879F, -1.133903F, 0.385255F, -0.275993F},
     {-0.125573F, -0.683900F, -0.099468F, -0.619710F}},
    {"Gq",
     false,
     39,
     44,
     47,
     {0.624376F, -0.112035F, 0.578339F, -0.442954F},
     {-0.388242F, 0.199401F, 0.036947F, 0.714632F}},
    {"Gq",
     true,
     39,
     24,
     51,
     {-0.438386F, -0.652979F, 0.146743F, 0.177088F},
     {0.020493F, -0.347515F, -0.681783F, -0.622329F}}};

// The file as written, or its prediction tensors without their suffix.
std::string Spelled(const testing::TinyModelSpec& spec, bool bare) {
  testing::FileEdit edit(spec);
  if (bare) {
    for (absl::string_view name : {"eh_proj", "enorm", "hnorm", "embed_tokens",
                                   "shared_head_head", "shared_head_norm"}) {
      const std::string without = absl::StrCat("blk.2.nextn.", name);
      edit.Rename(absl::StrCat(without, ".weight"), without);
    }
  }
  return edit.Make().bytes;
}

// In either spelling (LOAD-16).
TEST(MtpHead, ComputesThePublishedGuesses) {
  const std::vector<TokenId> prompt = {5, 61, 2, 33, 17};
  for (const auto& [style, bare] :
       std::vector<std::pair<std::string, bool>>{{"fused", false},
                                                 {"fused", true},
                                                 {"host_reference", false},
                                                 {"host_reference", true}}) {
    for (const Published& expected : kPublished) {
      testing::TinyModelSpec spec = SeededFixture(expected.fixture);
      spec.nextn_own_embedding_and_head = expected.own_tensors;
      LoadedGlm model(Spelled(spec, bare),
                      {{"block_style", style}, {"cache_type", "f32"}});
      ASSERT_TRUE(model.decoder.ok()) << model.decoder.status();
      auto loaded = model.glm().Head();
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      const MtpHead& head = **loaded;

      const auto state = model.glm().NewState(16).value();
      HiddenRows tap(head);
      SequenceStep step = {.tokens = prompt, .state = state.get(), .tap = &tap};
      ASSERT_TRUE(model.glm().Forward({&step, 1}).ok());
      const TokenId next = Best({step.logits.row_f32(0), 64});
      EXPECT_EQ(next, expected.next);

      const auto memory = head.NewState(16).value();
      MtpHead::Scratch scratch = head.NewScratch().value();
      std::vector<float> h1(32);
      const std::vector<TokenId> entries = {61, 2, 33, 17, next};
      auto logits = head.Forward(entries, tap.rows, *memory, scratch, h1);
      ASSERT_TRUE(logits.ok()) << logits.status();
      EXPECT_EQ(Best(*logits), expected.first) << expected.fixture;
      for (int i = 0; i < 4; ++i) {
        EXPECT_NEAR((*logits)[i], expected.first_logits[i], 2e-5)
            << expected.fixture << " " << style << " " << i;
      }
      const TokenId first = Best(*logits);
      logits =
          head.Forward({&first, 1}, Tensor(DType::kF32, {1, 32}, h1.data()),
                       *memory, scratch, h1);
      ASSERT_TRUE(logits.ok()) << logits.status();
      EXPECT_EQ(Best(*logits), expected.second) << expected.fixture;
      for (int i = 0; i < 4; ++i) {
        EXPECT_NEAR((*logits)[i], expected.second_logits[i], 2e-5)
            << expected.fixture << " " << style << " " << i;
      }
    }
  }
}

// Against a forward in f64: every entry, on both blocks.
TEST(MtpHead, ComputesTheLogitsOfTheNumpyOracle) {
  for (const testing::OracleModel& oracle : testing::OracleModels()) {
    if (oracle.spec.architecture != "glm4moe") continue;
    const auto golden =
        testing::ReadOracleGolden(oracle.name + ".nextn", /*missing=*/1);
    for (const char* style : {"fused", "host_reference"}) {
      SCOPED_TRACE(oracle.name + " " + style);
      LoadedGlm model(oracle.spec,
                      {{"block_style", style}, {"cache_type", "f32"}});
      ASSERT_TRUE(model.decoder.ok()) << model.decoder.status();
      ASSERT_EQ(testing::Crc32(model.bytes), golden.crc);
      const auto head = model.glm().Head().value();
      const int count = static_cast<int>(golden.rows.size());
      const auto state = model.glm().NewState(count + 1).value();
      HiddenRows tap(*head);
      SequenceStep step = {
          .tokens = golden.tokens, .state = state.get(), .tap = &tap};
      ASSERT_TRUE(model.glm().Forward({&step, 1}).ok());

      const auto memory = head->NewState(count).value();
      MtpHead::Scratch scratch = head->NewScratch().value();
      std::vector<float> h1(static_cast<std::size_t>(head->hidden_size()));
      for (int i = 0; i < count; ++i) {
        const auto logits =
            head->Forward(std::span(golden.tokens).subspan(i + 1, 1),
                          tap.rows.Slice(i, 1), *memory, scratch, h1);
        ASSERT_TRUE(logits.ok()) << logits.status();
        ASSERT_EQ(logits->size(), golden.rows[i].size());
        double largest = 0;
        double worst = 0;
        for (std::size_t v = 0; v < logits->size(); ++v) {
          largest = std::max(largest, std::abs(golden.rows[i][v]));
          worst = std::max(worst, std::abs((*logits)[v] - golden.rows[i][v]));
        }
        EXPECT_LE(worst / largest, 1e-4) << i;
      }
    }
  }
}

TEST(MtpHead, EntriesOneByOneOrTogetherAreTheSameBits) {
  LoadedGlm model(SeededFixture("Gq"));
  const auto head = model.glm().Head().value();
  std::vector<float> hidden(5 * 32);
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    hidden[i] = std::sin(0.7F * static_cast<float>(i));
  }
  const std::vector<TokenId> tokens = {3, 9, 27, 18, 54};
  MtpHead::Scratch scratch = head->NewScratch().value();
  std::vector<float> h1(32);
  std::vector<float> together;
  std::vector<float> one_by_one;
  const auto whole = head->NewState(8).value();
  auto logits = head->Forward(
      tokens, Tensor(DType::kF32, {5, 32}, hidden.data()), *whole, scratch, h1);
  ASSERT_TRUE(logits.ok()) << logits.status();
  together.assign(logits->begin(), logits->end());
  const std::vector<float> last = h1;
  const auto single = head->NewState(8).value();
  for (std::size_t i = 0; i < 5; ++i) {
    logits = head->Forward({&tokens[i], 1},
                           Tensor(DType::kF32, {1, 32}, &hidden[i * 32]),
                           *single, scratch, h1);
    ASSERT_TRUE(logits.ok()) << logits.status();
  }
  one_by_one.assign(logits->begin(), logits->end());
  EXPECT_EQ(one_by_one, together);
  EXPECT_EQ(h1, last);
}

TEST(MtpHead, AFileWithoutTheLayerHasNoHead) {
  testing::TinyModelSpec spec = SeededFixture("G");
  spec.num_nextn_layers = 0;
  LoadedGlm model(spec);
  ASSERT_TRUE(model.decoder.ok()) << model.decoder.status();
  const auto head = model.glm().Head();
  EXPECT_EQ(head.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(head.status().message(),
            "model.gguf: has no prediction layer (no tensor "
            "'blk.2.nextn.eh_proj.weight'), so there is nothing to draft with");
}

TEST(MtpHead, IsMadeOnceAndErrorsLeaveTheStateAsItWas) {
  LoadedGlm model(SeededFixture("G"));
  const auto head = model.glm().Head().value();
  EXPECT_EQ(model.glm().Head().value(), head);
  const auto state = head->NewState(2).value();
  MtpHead::Scratch scratch = head->NewScratch().value();
  std::vector<float> h1(32);
  std::vector<float> hidden(3 * 32, 0.5F);
  const std::vector<TokenId> tokens = {1, 2, 3};
  const auto full = head->Forward(
      tokens, Tensor(DType::kF32, {3, 32}, hidden.data()), *state, scratch, h1);
  EXPECT_EQ(full.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(state->length(), 0);
}

}  // namespace
}  // namespace fucina
