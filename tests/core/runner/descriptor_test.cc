#include "fucina/runner/descriptor.h"

#include <functional>
#include <limits>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/runner/families.h"
#include "tests/core/runner/file_edit.h"

namespace fucina {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FileEdit;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::OwnedFile;
using testing::SeededFixture;

Descriptor Describe(const OwnedFile& file, const FamilyRules& rules) {
  absl::StatusOr<Descriptor> d = Descriptor::FromGguf(*file.file, rules);
  EXPECT_TRUE(d.ok()) << d.status();
  return d.ok() ? *d : Descriptor{};
}

TEST(Descriptor, ReadsADenseQwen3) {
  OwnedFile file(testing::TinyModelBytes(SeededFixture("D")));
  const Descriptor d = Describe(file, testing::kQwen3);
  EXPECT_EQ(d.architecture, "qwen3");
  EXPECT_EQ(d.block_style, BlockStyle::kFused);
  EXPECT_EQ(d.vocab_size, 64);
  EXPECT_EQ(d.hidden_size, 32);
  EXPECT_EQ(d.num_layers, 2);
  EXPECT_EQ(d.context_length, 256);
  EXPECT_EQ(d.num_heads, 4);
  EXPECT_EQ(d.num_kv_heads, 2);
  EXPECT_EQ(d.head_dim, 32);
  EXPECT_EQ(d.query_size(), 128);  // not the hidden size
  EXPECT_EQ(d.kv_size(), 64);
  EXPECT_EQ(d.ffn_size, 64);
  EXPECT_FLOAT_EQ(d.norm_eps, 1e-6F);
  EXPECT_EQ(d.rope_theta, 10000);
  EXPECT_EQ(d.rope_dims, 32);  // no key: the head
  EXPECT_EQ(d.rope_pairing, ops::RopePairing::kHalf);
  EXPECT_EQ(d.rope_scaling.factor, 1);
  EXPECT_TRUE(d.qk_norm);
  EXPECT_FALSE(d.qkv_bias);
  EXPECT_FALSE(d.tied_output);
  EXPECT_EQ(d.ffn_norm, "ffn_norm");
  EXPECT_EQ(d.num_experts, 0);
  EXPECT_FALSE(d.HasExperts(0));
  EXPECT_THAT(d.notes, IsEmpty());
}

TEST(Descriptor, ReadsTiedOutputAndYarn) {
  OwnedFile file(testing::TinyModelBytes(SeededFixture("Dy")));
  const Descriptor d = Describe(file, testing::kQwen3);
  EXPECT_TRUE(d.tied_output);
  EXPECT_EQ(d.rope_scaling.kind, ops::RopeScalingKind::kYarn);
  EXPECT_EQ(d.rope_scaling.factor, 4);
  EXPECT_EQ(d.rope_scaling.original_context_length, 64);
  EXPECT_EQ(d.rope_scaling.ext_factor, 1);
  EXPECT_EQ(d.rope_scaling.attn_factor, 1);
  EXPECT_EQ(d.rope_scaling.beta_fast, 32);
  EXPECT_EQ(d.rope_scaling.beta_slow, 1);
}

TEST(Descriptor, ReadsAMixtureThatAlwaysNormalizes) {
  OwnedFile file(testing::TinyModelBytes(SeededFixture("M")));
  const Descriptor d = Describe(file, testing::kQwen3Moe);
  EXPECT_EQ(d.num_experts, 4);
  EXPECT_EQ(d.num_experts_used, 2);
  EXPECT_EQ(d.expert_ffn_size, 32);
  EXPECT_EQ(d.num_shared_experts, 0);
  EXPECT_EQ(d.leading_dense_layers, 0);
  EXPECT_EQ(d.gating, ExpertGating::kSoftmax);
  EXPECT_TRUE(d.expert_weights_norm);
  EXPECT_EQ(d.expert_weights_scale, 1);
  EXPECT_FALSE(d.router_bias);
  EXPECT_EQ(d.ffn_size, 0);  // the stated dense width is not used
  EXPECT_TRUE(d.HasExperts(0));
}

TEST(Descriptor, ReadsGlm4Moe) {
  OwnedFile file(testing::TinyModelBytes(SeededFixture("G")));
  const Descriptor d = Describe(file, testing::kGlm4Moe);
  EXPECT_EQ(d.block_style, BlockStyle::kHostReference);
  EXPECT_EQ(d.num_layers, 2);
  EXPECT_EQ(d.nextn_layers, 1);
  EXPECT_EQ(d.leading_dense_layers, 1);
  EXPECT_EQ(d.ffn_size, 64);
  EXPECT_FALSE(d.HasExperts(0));
  EXPECT_TRUE(d.HasExperts(1));
  EXPECT_EQ(d.rope_dims, 16);
  EXPECT_EQ(d.gating, ExpertGating::kSigmoid);
  EXPECT_TRUE(d.router_bias);
  EXPECT_TRUE(d.expert_weights_norm);
  EXPECT_EQ(d.expert_weights_scale, 1.5);
  EXPECT_EQ(d.num_shared_experts, 1);
  EXPECT_TRUE(d.qkv_bias);
  EXPECT_FALSE(d.qk_norm);
  EXPECT_EQ(d.ffn_norm, "post_attention_norm");
  OwnedFile with_norm(testing::TinyModelBytes(SeededFixture("Gq")));
  EXPECT_TRUE(Describe(with_norm, testing::kGlm4Moe).qk_norm);
}

TEST(Descriptor, ReadsLlamaAndQwen2) {
  OwnedFile l(testing::TinyModelBytes(SeededFixture("L")));
  EXPECT_EQ(Describe(l, testing::kLlama).rope_pairing,
            ops::RopePairing::kInterleaved);
  EXPECT_FALSE(Describe(l, testing::kLlama).rope_factors);
  EXPECT_FALSE(Describe(l, testing::kLlama).qkv_bias);
  OwnedFile lf(testing::TinyModelBytes(SeededFixture("Lf")));
  EXPECT_TRUE(Describe(lf, testing::kLlama).rope_factors);
  OwnedFile q2(testing::TinyModelBytes(SeededFixture("Q2")));
  EXPECT_TRUE(Describe(q2, testing::kQwen2).qkv_bias);
  EXPECT_FALSE(Describe(q2, testing::kQwen2).output_bias);
}

TEST(Descriptor, HeadDimIsNotGuessedFromTheHiddenSize) {
  OwnedFile file = FileEdit(SeededFixture("D"))
                       .Drop("qwen3.attention.key_length")
                       .Drop("qwen3.attention.value_length")
                       .Make();
  const Descriptor d = Describe(file, testing::kQwen3);
  EXPECT_EQ(d.head_dim, 32);  // hidden / heads would be 8
  ASSERT_EQ(d.notes.size(), 1U);
  EXPECT_THAT(d.notes[0], AllOf(HasSubstr("qwen3.attention.key_length"),
                                HasSubstr("blk.0.attn_q.weight")));
}

TEST(Descriptor, HeadDimIsHiddenOverHeadsWhereTheFamilySaysSo) {
  OwnedFile file = FileEdit(SeededFixture("L"))
                       .Drop("llama.attention.key_length")
                       .Drop("llama.attention.value_length")
                       .Drop("llama.rope.dimension_count")
                       .Make();
  const Descriptor d = Describe(file, testing::kLlama);
  EXPECT_EQ(d.head_dim, 16);
  EXPECT_EQ(d.rope_dims, 16);
  EXPECT_THAT(d.notes, IsEmpty());
}

TEST(Descriptor, ZeroCountsMeanMissing) {
  OwnedFile file = FileEdit(SeededFixture("D"))
                       .Int("qwen3.attention.head_count_kv", 2)
                       .Int("qwen3.rope.dimension_count", 0)
                       .Int("qwen3.expert_count", 0)
                       .Make();
  const Descriptor d = Describe(file, testing::kQwen3);
  EXPECT_EQ(d.rope_dims, 32);
  EXPECT_EQ(d.num_experts, 0);
}

TEST(Descriptor, ZeroScaleAndZeroFactorMeanOne) {
  OwnedFile file = FileEdit(SeededFixture("G"))
                       .Float("glm4moe.expert_weights_scale", 0)
                       .Float("glm4moe.rope.scaling.factor", 0)
                       .Make();
  const Descriptor d = Describe(file, testing::kGlm4Moe);
  EXPECT_EQ(d.expert_weights_scale, 1);
  EXPECT_EQ(d.rope_scaling.factor, 1);
}

TEST(Descriptor, GatingDefaultsToTheFamilys) {
  for (const std::int64_t code : {-1, 0, 1, 2}) {
    FileEdit edit(SeededFixture("G"));
    if (code < 0) {
      edit.Drop("glm4moe.expert_gating_func");
    } else {
      edit.Int("glm4moe.expert_gating_func", code);
    }
    OwnedFile file = edit.Make();
    EXPECT_EQ(Describe(file, testing::kGlm4Moe).gating,
              code == 1 ? ExpertGating::kSoftmax : ExpertGating::kSigmoid)
        << code;
  }
}

TEST(Descriptor, ExpertNormIsByKeyForGlmAndFixedForQwen3Moe) {
  OwnedFile glm =
      FileEdit(SeededFixture("G")).Drop("glm4moe.expert_weights_norm").Make();
  EXPECT_FALSE(Describe(glm, testing::kGlm4Moe).expert_weights_norm);
  OwnedFile qwen = FileEdit(SeededFixture("M"))
                       .Bool("qwen3moe.expert_weights_norm", false)
                       .Make();
  const Descriptor d = Describe(qwen, testing::kQwen3Moe);
  EXPECT_TRUE(d.expert_weights_norm);
  ASSERT_EQ(d.notes.size(), 1U);
  EXPECT_THAT(d.notes[0], HasSubstr("qwen3moe.expert_weights_norm"));
}

TEST(Descriptor, PredictionLayersAnnouncedButAbsent) {
  FileEdit edit(SeededFixture("G"));
  OwnedFile base(testing::TinyModelBytes(SeededFixture("G")));
  for (const GgufTensorInfo& info : base.file->tensors()) {
    if (info.name.substr(0, 6) == "blk.2.") edit.DropTensor(info.name);
  }
  OwnedFile file = edit.Make();
  const Descriptor d = Describe(file, testing::kGlm4Moe);
  EXPECT_EQ(d.num_layers, 2);
  ASSERT_EQ(d.notes.size(), 1U);
  EXPECT_THAT(d.notes[0], HasSubstr("blk.2.nextn.eh_proj.weight"));
}

TEST(Descriptor, PredictionLayersPresentButNotAnnounced) {
  // Counted among the blocks.
  OwnedFile counted =
      FileEdit(SeededFixture("G")).Drop("glm4moe.nextn_predict_layers").Make();
  const Descriptor d = Describe(counted, testing::kGlm4Moe);
  EXPECT_EQ(d.num_layers, 2);
  EXPECT_EQ(d.nextn_layers, 1);
  ASSERT_EQ(d.notes.size(), 1U);
  EXPECT_THAT(d.notes[0], HasSubstr("glm4moe.nextn_predict_layers"));
  // Not counted.
  OwnedFile behind = FileEdit(SeededFixture("G"))
                         .Drop("glm4moe.nextn_predict_layers")
                         .Int("glm4moe.block_count", 2)
                         .Make();
  EXPECT_EQ(Describe(behind, testing::kGlm4Moe).num_layers, 2);
  EXPECT_EQ(Describe(behind, testing::kGlm4Moe).nextn_layers, 0);
  // Without the suffix: a block that predicts is none of the trunk.
  OwnedFile bare =
      FileEdit(SeededFixture("G"))
          .Drop("glm4moe.nextn_predict_layers")
          .Rename("blk.2.nextn.eh_proj.weight", "blk.2.nextn.eh_proj")
          .Make();
  EXPECT_EQ(Describe(bare, testing::kGlm4Moe).num_layers, 2);
  EXPECT_EQ(Describe(bare, testing::kGlm4Moe).nextn_layers, 1);
}

TEST(Descriptor, PredictionLayersAnnouncedButNotCounted) {
  OwnedFile file =
      FileEdit(SeededFixture("G")).Int("glm4moe.block_count", 2).Make();
  const Descriptor d = Describe(file, testing::kGlm4Moe);
  EXPECT_EQ(d.num_layers, 2);
  EXPECT_EQ(d.nextn_layers, 1);
  EXPECT_THAT(d.notes, ElementsAre("'glm4moe.block_count' does not count the 1 "
                                   "prediction layer(s) behind its 2 blocks"));
}

TEST(Descriptor, MissingThetaIsNoted) {
  OwnedFile file =
      FileEdit(SeededFixture("D")).Drop("qwen3.rope.freq_base").Make();
  const Descriptor d = Describe(file, testing::kQwen3);
  EXPECT_EQ(d.rope_theta, 10000);
  ASSERT_EQ(d.notes.size(), 1U);
  EXPECT_THAT(d.notes[0],
              AllOf(HasSubstr("qwen3.rope.freq_base"), HasSubstr("10000")));
}

TEST(Descriptor, UnknownKeysAreNamedOnce) {
  FileEdit edit(SeededFixture("D"));
  for (int i = 0; i < 7; ++i) {
    edit.Int("qwen3.strange." + std::to_string(i), i);
  }
  OwnedFile file = edit.Int("other.strange", 1).Make();
  const Descriptor d = Describe(file, testing::kQwen3);
  ASSERT_EQ(d.notes.size(), 1U);
  EXPECT_THAT(d.notes[0],
              AllOf(HasSubstr("'qwen3.strange.0'"), HasSubstr("and 2 more"),
                    ::testing::Not(HasSubstr("other"))));
}

TEST(Descriptor, EqualPerLayerEntriesAreOneNumber) {
  OwnedFile file = FileEdit(SeededFixture("D"))
                       .Ints("qwen3.attention.head_count", {4, 4})
                       .Ints("qwen3.feed_forward_length", {64, 64})
                       .Make();
  const Descriptor d = Describe(file, testing::kQwen3);
  EXPECT_EQ(d.num_heads, 4);
  EXPECT_EQ(d.ffn_size, 64);
}

TEST(Descriptor, KvHeadsDefaultToHeads) {
  testing::TinyModelSpec spec = SeededFixture("D");
  spec.num_kv_heads = 4;
  OwnedFile file = FileEdit(spec).Drop("qwen3.attention.head_count_kv").Make();
  EXPECT_EQ(Describe(file, testing::kQwen3).num_kv_heads, 4);
}

TEST(Descriptor, OldScaleKeyAndFactorsMultiply) {
  OwnedFile file = FileEdit(SeededFixture("D"))
                       .Float("qwen3.rope.scale_linear", 2)
                       .Float("qwen3.rope.scaling.attn_factor", 3)
                       .Float("qwen3.rope.scaling.yarn_attn_factor", 0.5)
                       .Make();
  const Descriptor d = Describe(file, testing::kQwen3);
  EXPECT_EQ(d.rope_scaling.kind, ops::RopeScalingKind::kLinear);
  EXPECT_EQ(d.rope_scaling.factor, 2);
  EXPECT_EQ(d.rope_scaling.attn_factor, 1.5);
  // "none" switches the factor off; yarn without extrapolation is linear.
  OwnedFile none = FileEdit(SeededFixture("D"))
                       .Text("qwen3.rope.scaling.type", "none")
                       .Float("qwen3.rope.scaling.factor", 2)
                       .Make();
  EXPECT_EQ(Describe(none, testing::kQwen3).rope_scaling.factor, 1);
  OwnedFile flat = FileEdit(SeededFixture("Dy"))
                       .Float("qwen3.rope.scaling.yarn_ext_factor", 0)
                       .Make();
  EXPECT_EQ(Describe(flat, testing::kQwen3).rope_scaling.kind,
            ops::RopeScalingKind::kLinear);
}

// Every refusal names the file, the key or tensor, the value and what was
// expected.
struct Refusal {
  const char* name;
  const char* fixture;
  std::function<void(FileEdit&)> edit;
  absl::StatusCode code;
  std::vector<std::string> says;
};

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kUnimplemented = absl::StatusCode::kUnimplemented;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

class DescriptorRefuses : public ::testing::TestWithParam<Refusal> {};

TEST_P(DescriptorRefuses, WithNames) {
  const Refusal& refusal = GetParam();
  FileEdit edit(SeededFixture(refusal.fixture));
  refusal.edit(edit);
  OwnedFile file = edit.Make();
  const std::string architecture = SeededFixture(refusal.fixture).architecture;
  const absl::Status status =
      Descriptor::FromGguf(*file.file, testing::RulesFor(architecture))
          .status();
  EXPECT_EQ(status.code(), refusal.code) << status;
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("model.gguf"));
  for (const std::string& text : refusal.says) {
    EXPECT_THAT(message, HasSubstr(text));
  }
}

#define EDIT(call) [](FileEdit& e) { e.call; }

INSTANTIATE_TEST_SUITE_P(
    All, DescriptorRefuses,
    ::testing::Values(
        Refusal{"OtherArchitecture",
                "D",
                EDIT(Text("general.architecture", "qwen4")),
                kInvalid,
                {"general.architecture", "'qwen4'", "'qwen3'"}},
        Refusal{"NoArchitecture",
                "D",
                EDIT(Drop("general.architecture")),
                kInvalid,
                {"general.architecture", "missing", "'qwen3'"}},
        Refusal{"NoHidden",
                "D",
                EDIT(Drop("qwen3.embedding_length")),
                kInvalid,
                {"qwen3.embedding_length", "missing"}},
        Refusal{"OtherHidden",
                "D",
                EDIT(Int("qwen3.embedding_length", 48)),
                kInvalid,
                {"token_embd.weight", "32", "48"}},
        Refusal{"TextHidden",
                "D",
                EDIT(Text("qwen3.embedding_length", "32")),
                kInvalid,
                {"qwen3.embedding_length"}},
        Refusal{"NegativeHidden",
                "D",
                EDIT(Int("qwen3.embedding_length", -32)),
                kInvalid,
                {"qwen3.embedding_length", "-32"}},
        Refusal{"NoContext",
                "D",
                EDIT(Drop("qwen3.context_length")),
                kInvalid,
                {"qwen3.context_length", "missing"}},
        Refusal{"NoEmbedding",
                "D",
                EDIT(DropTensor("token_embd.weight")),
                absl::StatusCode::kNotFound,
                {"token_embd.weight", "missing"}},
        Refusal{"MoreTokensThanRows",
                "D",
                EDIT(Tokens(65)),
                kInvalid,
                {"tokenizer.ggml.tokens", "65", "64"}},
        Refusal{"LargerVocabulary",
                "D",
                EDIT(Int("qwen3.vocab_size", 65)),
                kInvalid,
                {"qwen3.vocab_size", "65", "64"}},
        Refusal{"NoLayers",
                "D",
                EDIT(Int("qwen3.block_count", 0)),
                kInvalid,
                {"qwen3.block_count", "0"}},
        Refusal{"TooManyLayers",
                "D",
                EDIT(Int("qwen3.block_count", 513)),
                kInvalid,
                {"qwen3.block_count", "513", "512"}},
        Refusal{"OnlyPredictionLayers",
                "G",
                EDIT(Int("glm4moe.nextn_predict_layers", 3)),
                kInvalid,
                {"glm4moe.nextn_predict_layers", "3", "glm4moe.block_count"}},
        Refusal{"ZeroHeads",
                "D",
                EDIT(Int("qwen3.attention.head_count", 0)),
                kInvalid,
                {"qwen3.attention.head_count", "0"}},
        Refusal{"HeadsNotMultiple",
                "D",
                EDIT(Int("qwen3.attention.head_count_kv", 3)),
                kInvalid,
                {"qwen3.attention.head_count_kv", "3", "4"}},
        Refusal{"HeadsDiffer",
                "D",
                EDIT(Ints("qwen3.attention.head_count", {4, 2})),
                kUnimplemented,
                {"qwen3.attention.head_count", "per-layer geometry"}},
        Refusal{"HeadsOfAnotherCount",
                "D",
                EDIT(Ints("qwen3.attention.head_count", {4})),
                kInvalid,
                {"qwen3.attention.head_count", "1", "2 blocks"}},
        Refusal{"OddHead",
                "D",
                EDIT(Int("qwen3.attention.key_length", 33)),
                kInvalid,
                {"qwen3.attention.key_length", "33", "even"}},
        Refusal{"HugeHead",
                "D",
                EDIT(Int("qwen3.attention.key_length", 2048)),
                kInvalid,
                {"qwen3.attention.key_length", "2048", "1024"}},
        Refusal{"HeadAgainstTensor",
                "D",
                EDIT(Int("qwen3.attention.key_length", 16)),
                kInvalid,
                {"blk.0.attn_q.weight", "128", "64"}},
        Refusal{"QueryRowsNotMultiple",
                "D",
                [](FileEdit& e) {
                  e.Drop("qwen3.attention.key_length");
                  e.Zeros("blk.0.attn_q.weight", {32, 130});
                },
                kInvalid,
                {"blk.0.attn_q.weight", "130", "qwen3.attention.key_length"}},
        Refusal{"NoQuery",
                "D",
                EDIT(DropTensor("blk.0.attn_q.weight")),
                absl::StatusCode::kNotFound,
                {"blk.0.attn_q.weight"}},
        Refusal{"OtherValueSize",
                "D",
                EDIT(Int("qwen3.attention.value_length", 16)),
                kInvalid,
                {"qwen3.attention.value_length", "16", "32"}},
        Refusal{"HiddenOverHeads",
                "L",
                [](FileEdit& e) {
                  e.Drop("llama.attention.key_length");
                  e.Int("llama.attention.head_count", 3);
                  e.Int("llama.attention.head_count_kv", 1);
                },
                kInvalid,
                {"llama.attention.head_count", "3", "32"}},
        Refusal{"NoEps",
                "D",
                EDIT(Drop("qwen3.attention.layer_norm_rms_epsilon")),
                kInvalid,
                {"qwen3.attention.layer_norm_rms_epsilon", "missing"}},
        Refusal{"ZeroEps",
                "D",
                EDIT(Float("qwen3.attention.layer_norm_rms_epsilon", 0)),
                kInvalid,
                {"qwen3.attention.layer_norm_rms_epsilon", "0"}},
        Refusal{"TinyEps",
                "D",
                EDIT(Float("qwen3.attention.layer_norm_rms_epsilon", 1e-60)),
                kInvalid,
                {"qwen3.attention.layer_norm_rms_epsilon", "1e-60"}},
        Refusal{"NanEps",
                "D",
                EDIT(Float("qwen3.attention.layer_norm_rms_epsilon", kNan)),
                kInvalid,
                {"qwen3.attention.layer_norm_rms_epsilon", "nan"}},
        Refusal{"LargeEps",
                "D",
                EDIT(Float("qwen3.attention.layer_norm_rms_epsilon", 1)),
                kInvalid,
                {"qwen3.attention.layer_norm_rms_epsilon", "1"}},
        Refusal{"ZeroTheta",
                "D",
                EDIT(Float("qwen3.rope.freq_base", 0)),
                kInvalid,
                {"qwen3.rope.freq_base", "0", "above 1"}},
        Refusal{"InfiniteTheta",
                "D",
                EDIT(Float("qwen3.rope.freq_base", kInf)),
                kInvalid,
                {"qwen3.rope.freq_base", "inf", "finite"}},
        Refusal{"OddRope",
                "D",
                EDIT(Int("qwen3.rope.dimension_count", 7)),
                kInvalid,
                {"qwen3.rope.dimension_count", "7", "32"}},
        Refusal{"LongRopeDims",
                "D",
                EDIT(Int("qwen3.rope.dimension_count", 64)),
                kInvalid,
                {"qwen3.rope.dimension_count", "64", "32"}},
        Refusal{"LongRope",
                "D",
                EDIT(Text("qwen3.rope.scaling.type", "longrope")),
                kUnimplemented,
                {"qwen3.rope.scaling.type", "longrope", "yarn"}},
        Refusal{"UnknownScaling",
                "D",
                EDIT(Text("qwen3.rope.scaling.type", "su\n")),
                kInvalid,
                {"qwen3.rope.scaling.type", "'su\\n'", "yarn"}},
        Refusal{"NegativeFactor",
                "D",
                EDIT(Float("qwen3.rope.scaling.factor", -4)),
                kInvalid,
                {"qwen3.rope.scaling.factor", "-4"}},
        Refusal{"NegativeAttnFactor",
                "D",
                EDIT(Float("qwen3.rope.scaling.attn_factor", -1)),
                kInvalid,
                {"qwen3.rope.scaling.attn_factor", "-1"}},
        Refusal{"ZeroYarnAttnFactor",
                "D",
                EDIT(Float("qwen3.rope.scaling.yarn_attn_factor", 0)),
                kInvalid,
                {"qwen3.rope.scaling.yarn_attn_factor", "0"}},
        Refusal{"ZeroBeta",
                "D",
                EDIT(Float("qwen3.rope.scaling.yarn_beta_slow", 0)),
                kInvalid,
                {"qwen3.rope.scaling.yarn_beta_slow", "0"}},
        Refusal{"YarnLog",
                "D",
                EDIT(Float("qwen3.rope.scaling.yarn_log_multiplier", 0.1)),
                kUnimplemented,
                {"qwen3.rope.scaling.yarn_log_multiplier", "0.1"}},
        Refusal{"NoFfn",
                "D",
                EDIT(Drop("qwen3.feed_forward_length")),
                kInvalid,
                {"qwen3.feed_forward_length", "missing"}},
        Refusal{"ExpertsInDense",
                "D",
                EDIT(Int("qwen3.expert_count", 8)),
                kUnimplemented,
                {"qwen3.expert_count", "8", "without experts"}},
        Refusal{"NoExperts",
                "M",
                EDIT(Drop("qwen3moe.expert_count")),
                kInvalid,
                {"qwen3moe.expert_count", "missing"}},
        Refusal{"TooManyExperts",
                "M",
                EDIT(Int("qwen3moe.expert_count", 513)),
                kInvalid,
                {"qwen3moe.expert_count", "513", "512"}},
        Refusal{"NoneUsed",
                "M",
                EDIT(Int("qwen3moe.expert_used_count", 0)),
                kInvalid,
                {"qwen3moe.expert_used_count", "0"}},
        Refusal{"MoreUsedThanThere",
                "M",
                EDIT(Int("qwen3moe.expert_used_count", 5)),
                kInvalid,
                {"qwen3moe.expert_used_count", "5", "4"}},
        Refusal{"NoExpertFfn",
                "M",
                EDIT(Drop("qwen3moe.expert_feed_forward_length")),
                kInvalid,
                {"qwen3moe.expert_feed_forward_length", "missing"}},
        Refusal{"LeadingDense",
                "G",
                EDIT(Int("glm4moe.leading_dense_block_count", 4)),
                kInvalid,
                {"glm4moe.leading_dense_block_count", "4", "2"}},
        Refusal{"Groups",
                "G",
                EDIT(Int("glm4moe.expert_group_count", 2)),
                kUnimplemented,
                {"glm4moe.expert_group_count", "2", "groups"}},
        Refusal{"Gating3",
                "G",
                EDIT(Int("glm4moe.expert_gating_func", 3)),
                kUnimplemented,
                {"glm4moe.expert_gating_func", "3"}},
        Refusal{"Gating4",
                "G",
                EDIT(Int("glm4moe.expert_gating_func", 4)),
                kUnimplemented,
                {"glm4moe.expert_gating_func", "4"}},
        Refusal{"Gating9",
                "G",
                EDIT(Int("glm4moe.expert_gating_func", 9)),
                kInvalid,
                {"glm4moe.expert_gating_func", "9"}},
        Refusal{"InfiniteScale",
                "G",
                EDIT(Float("glm4moe.expert_weights_scale", kInf)),
                kInvalid,
                {"glm4moe.expert_weights_scale", "inf"}},
        Refusal{"OldExperts",
                "M",
                EDIT(Zeros("blk.0.ffn_gate.0.weight", {32, 32})),
                kUnimplemented,
                {"blk.0.ffn_gate.0.weight", "convert"}}),
    [](const auto& test) { return std::string(test.param.name); });

// Random values under the known keys: an error or a consistent descriptor,
// never anything else.
TEST(Descriptor, SurvivesRandomKeyValues) {
  std::mt19937_64 random(7);
  const char* fixtures[] = {"D", "M", "G", "L"};
  int accepted = 0;
  for (int round = 0; round < 400; ++round) {
    const testing::TinyModelSpec spec = SeededFixture(fixtures[round % 4]);
    OwnedFile base(testing::TinyModelBytes(spec));
    FileEdit edit(spec);
    for (absl::string_view key : base.file->keys()) {
      if (key.substr(0, 8) == "general." || random() % 8 != 0) continue;
      switch (random() % 6) {
        case 0:
          edit.Drop(key);
          break;
        case 1:
          edit.Int(key, static_cast<std::int64_t>(random()));
          break;
        case 2:
          edit.Int(key, static_cast<std::int64_t>(random() % 70));
          break;
        case 3:
          edit.Float(key, std::bit_cast<double>(random()));
          break;
        case 4:
          edit.Ints(key, {static_cast<std::int32_t>(random() % 5),
                          static_cast<std::int32_t>(random() % 5)});
          break;
        default:
          edit.Text(key, "yarn");
      }
    }
    OwnedFile file = edit.Make();
    const auto d =
        Descriptor::FromGguf(*file.file, testing::RulesFor(spec.architecture));
    if (!d.ok()) {
      EXPECT_FALSE(d.status().message().empty());
      continue;
    }
    ++accepted;
    EXPECT_EQ(d->num_heads % d->num_kv_heads, 0);
    EXPECT_LE(d->rope_dims, d->head_dim);
    EXPECT_GT(d->norm_eps, 0);
    EXPECT_GT(d->rope_theta, 1);
    EXPECT_GE(d->num_layers, 1);
  }
  EXPECT_GT(accepted, 10);
}

}  // namespace
}  // namespace fucina
