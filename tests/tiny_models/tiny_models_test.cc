#include "tests/tiny_models/tiny_models.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fucina/gguf/gguf_file.h"
#include "fucina/kernels/quantize.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fucina::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::IsEmpty;
using ::testing::Pointwise;

std::unique_ptr<GgufFile> ParseBytes(const std::string& bytes) {
  auto file = GgufFile::Parse("tiny", std::as_bytes(std::span(bytes)));
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

std::vector<float> FirstFour(const GgufFile& file, absl::string_view name) {
  std::vector<float> values(4);
  std::memcpy(values.data(), file.FindTensor(name)->data, 16);
  return values;
}

// The published first values of two streams.
TEST(SeededFixture, WeightsAreThoseOfTheRecipe) {
  const std::string bytes = TinyModelBytes(SeededFixture("D"));
  const auto file = ParseBytes(bytes);
  EXPECT_THAT(FirstFour(*file, "token_embd.weight"),
              Pointwise(FloatNear(5e-11f), {0.0026567578f, 0.0606724471f,
                                            -0.0751304179f, 0.0515730083f}));
  EXPECT_THAT(FirstFour(*file, "output_norm.weight"),
              Pointwise(FloatNear(6e-8f), {0.9356460571f, 0.9743006229f,
                                           0.8830463886f, 0.8851978779f}));
}

TEST(SeededFixture, AllParseWithoutNotesAndWithTheTensorsOfTheirFamily) {
  // Tensors per model, counted from the tables of the families.
  const std::vector<int> counts = {
      3 + 2 * 11,                 // D: embedding, norm, head; 11 per layer
      2 + 2 * 11,                 // Dt: no head
      2 + 2 * 11,                 // Dy
      3 + 2 * 12,                 // M: a router and three stacks
      3 + (9 + 3) + 2 * 17 + 4,   // G: dense, MoE, prediction layer
      3 + (11 + 3) + 2 * 19 + 4,  // Gq
      3 + (9 + 3) + 2 * 17 + 4,   // Gi
      3 + 2 * 9,                  // L
      4 + 2 * 9,                  // Lf
      2 + 2 * 12,                 // Q2
  };
  ASSERT_EQ(SeededFixtureNames().size(), counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    SCOPED_TRACE(std::string(SeededFixtureNames()[i]));
    const std::string bytes =
        TinyModelBytes(SeededFixture(SeededFixtureNames()[i]));
    const auto file = ParseBytes(bytes);
    EXPECT_THAT(file->notes(), IsEmpty());
    EXPECT_EQ(file->tensors().size(), static_cast<std::size_t>(counts[i]));
  }
}

TEST(SeededFixture, GiIsTheFileOfG) {
  EXPECT_EQ(TinyModelBytes(SeededFixture("Gi")),
            TinyModelBytes(SeededFixture("G")));
}

TEST(SeededFixture, GlmAnnouncesItsPredictionLayer) {
  TinyModelSpec spec = SeededFixture("G");
  const std::string bytes = TinyModelBytes(spec);
  const auto file = ParseBytes(bytes);
  EXPECT_EQ(file->GetInt("glm4moe.block_count", 0, 99).value(), 3);
  EXPECT_EQ(file->GetInt("glm4moe.nextn_predict_layers", 0, 99).value(), 1);
  EXPECT_EQ(file->GetInt("glm4moe.rope.dimension_count", 0, 99).value(), 16);
  EXPECT_EQ(file->GetFloat("glm4moe.expert_weights_scale").value(), 1.5);
  EXPECT_EQ(file->GetBool("glm4moe.expert_weights_norm").value(), true);
  EXPECT_THAT(file->FindTensor("blk.2.nextn.eh_proj.weight")->ne,
              ElementsAre(64, 32, 1, 1));
  EXPECT_EQ(file->FindTensor("blk.2.nextn.embed_tokens.weight"), nullptr);

  spec.nextn_own_embedding_and_head = true;
  const std::string own_bytes = TinyModelBytes(spec);
  const auto own = ParseBytes(own_bytes);
  EXPECT_NE(own->FindTensor("blk.2.nextn.embed_tokens.weight"), nullptr);
  EXPECT_NE(own->FindTensor("blk.2.nextn.shared_head_head.weight"), nullptr);
}

TEST(TinyModel, EncodesEachRoleInItsType) {
  TinyModelSpec spec = SeededFixture("M");
  spec.types = TinyWeightTypes::All(DType::kQ8_0);
  spec.types.attention = DType::kQ4_0;
  spec.types.output = DType::kF16;
  const std::string bytes = TinyModelBytes(spec);
  const auto file = ParseBytes(bytes);
  EXPECT_EQ(file->FindTensor("token_embd.weight")->dtype, DType::kQ8_0);
  EXPECT_EQ(file->FindTensor("output.weight")->dtype, DType::kF16);
  EXPECT_EQ(file->FindTensor("blk.1.attn_k.weight")->dtype, DType::kQ4_0);
  EXPECT_EQ(file->FindTensor("blk.0.ffn_down_exps.weight")->dtype,
            DType::kQ8_0);
  EXPECT_EQ(file->FindTensor("blk.0.ffn_gate_inp.weight")->dtype, DType::kF32);
  EXPECT_EQ(file->FindTensor("blk.0.attn_norm.weight")->dtype, DType::kF32);
  EXPECT_EQ(file->GetInt("general.quantization_version", 0, 9).value(), 2);

  // Decoded rows are near the values that were encoded.
  const std::vector<float> expected =
      SeededWeights("token_embd.weight", 64 * 32);
  std::vector<float> decoded(32);
  DequantizeRow(DType::kQ8_0, file->FindTensor("token_embd.weight")->data,
                decoded.data(), 32);
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    EXPECT_NEAR(decoded[i], expected[i], 0.125 / 127);
  }
}

TEST(TinyModel, TokenizerFillsTheVocabularyAndItsPadding) {
  for (const char* architecture : {"qwen3", "glm4moe"}) {
    SCOPED_TRACE(architecture);
    TinyModelSpec spec;
    spec.architecture = architecture;
    spec.with_tokenizer = true;
    const std::string bytes = TinyModelBytes(spec);
    const auto file = ParseBytes(bytes);
    const auto tokens = file->GetStrings("tokenizer.ggml.tokens").value();
    const auto types = file->GetInts("tokenizer.ggml.token_type").value();
    ASSERT_TRUE(tokens.has_value() && types.has_value());
    EXPECT_EQ(tokens->size(), types->size());
    const std::uint64_t rows = file->FindTensor("token_embd.weight")->ne[1];
    EXPECT_GT(rows, tokens->size());
    EXPECT_EQ(rows % 32, 0u);
    EXPECT_EQ((*tokens)['a'], "a");
    EXPECT_EQ((*tokens)[' '], "\xc4\xa0");   // U+0120
    EXPECT_EQ((*tokens)[0], "\xc4\x80");     // U+0100
    EXPECT_EQ((*tokens)[0xAD], "\xc5\x83");  // U+0143, the last of them
    const auto eos =
        file->GetInt("tokenizer.ggml.eos_token_id", 0, 999).value();
    EXPECT_EQ(
        (*tokens)[static_cast<std::size_t>(*eos)],
        std::string(architecture) == "qwen3" ? "<|im_end|>" : "<|endoftext|>");
  }
}

TEST(TinyModel, SeedChangesEveryWeight) {
  TinyModelSpec spec;
  const std::string one = TinyModelBytes(spec);
  spec.seed = 7;
  const std::string other = TinyModelBytes(spec);
  EXPECT_NE(one, other);
  EXPECT_EQ(other, TinyModelBytes(spec));
}

}  // namespace
}  // namespace fucina::testing
