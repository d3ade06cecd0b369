// What loading refuses and reports, and the options of every family.

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/runner/loaded_model.h"
#include "tests/core/runner/model_variants.h"

namespace fucina {
namespace {

using ::testing::AllOf;
using testing::FileEdit;
using ::testing::HasSubstr;
using testing::LoadedModel;
using testing::OwnedFile;
using testing::RandomTokens;
using testing::Rows;
using testing::SeededFixture;

absl::Status TryLoad(const OwnedFile& owned, const std::string& architecture,
                     const RunnerOptions& options = {}) {
  const auto descriptor =
      Descriptor::FromGguf(*owned.file, testing::RulesFor(architecture));
  if (!descriptor.ok()) return descriptor.status();
  ThreadPool pool(1);
  return Runner::Load(*owned.file, *descriptor, pool, options).status();
}

TEST(Load, AMissingTensorIsNamedWithItsShape) {
  struct Missing {
    const char* fixture;
    const char* tensor;
    const char* shape;
  };
  for (const Missing& m :
       std::vector<Missing>{{"D", "output_norm.weight", "[32]"},
                            {"D", "blk.1.attn_norm.weight", "[32]"},
                            {"D", "blk.1.attn_k.weight", "[64, 32]"},
                            {"D", "blk.0.attn_q_norm.weight", "[32]"},
                            {"D", "blk.1.attn_output.weight", "[32, 128]"},
                            {"D", "blk.0.ffn_norm.weight", "[32]"},
                            {"D", "blk.0.ffn_down.weight", "[32, 64]"},
                            {"M", "blk.0.ffn_gate_inp.weight", "[4, 32]"},
                            {"M", "blk.1.ffn_gate_exps.weight", "[4, 32, 32]"},
                            {"M", "blk.1.ffn_down_exps.weight", "[4, 32, 32]"},
                            {"G", "blk.1.post_attention_norm.weight", "[32]"},
                            {"G", "blk.0.attn_v.bias", "[64]"},
                            {"G", "blk.1.ffn_up_shexp.weight", "[32, 32]"},
                            {"Gq", "blk.1.attn_k_norm.weight", "[32]"},
                            {"Q2", "blk.1.attn_q.bias", "[32]"}}) {
    OwnedFile file =
        FileEdit(SeededFixture(m.fixture)).DropTensor(m.tensor).Make();
    const absl::Status status =
        TryLoad(file, SeededFixture(m.fixture).architecture);
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("model.gguf"), HasSubstr(m.tensor),
                      HasSubstr(m.shape)));
  }
}

TEST(Load, AnotherShapeIsRefusedWithBoth) {
  OwnedFile file = FileEdit(SeededFixture("D"))
                       .Zeros("blk.1.attn_k.weight", {32, 128})
                       .Make();
  const absl::Status status = TryLoad(file, "qwen3");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("'blk.1.attn_k.weight'"), HasSubstr("[64, 32]"),
                    HasSubstr("f32 [128, 32]")));
}

TEST(Load, RopeFactorsMustBePositive) {
  OwnedFile file =
      FileEdit(SeededFixture("Lf")).Zeros("rope_freqs.weight", {8}).Make();
  const absl::Status status = TryLoad(file, "llama");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'rope_freqs.weight'"));
}

TEST(Load, UnknownTensorsAreRefusedOnlyWhenStrict) {
  OwnedFile file =
      FileEdit(SeededFixture("D")).Zeros("blk.0.attn_q.bias", {128}).Make();
  EXPECT_TRUE(TryLoad(file, "qwen3").ok());
  const absl::Status status = TryLoad(file, "qwen3", {.strict = true});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("'blk.0.attn_q.bias'"), HasSubstr("strict")));
}

TEST(Load, ASigmoidRouterWithoutBiasIsRefusedOnlyWhenStrict) {
  OwnedFile file =
      FileEdit(SeededFixture("G")).DropTensor("blk.1.exp_probs_b.bias").Make();
  EXPECT_TRUE(TryLoad(file, "glm4moe").ok());
  const absl::Status status = TryLoad(file, "glm4moe", {.strict = true});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("exp_probs_b"));
}

TEST(Load, BothSpellingsOfTheSelectionBiasMeanTheSame) {
  const auto tokens = RandomTokens(1, 9, 64);
  LoadedModel usual(SeededFixture("G"), {.strict = true});
  LoadedModel other(FileEdit(SeededFixture("G"))
                        .Rename("blk.1.exp_probs_b.bias", "blk.1.exp_probs_b")
                        .Make(),
                    {.strict = true});
  EXPECT_EQ(usual.All(tokens), other.All(tokens));
}

// The prediction layer's own tensors without their suffix, as some files have
// them.
void SpellBare(FileEdit& edit) {
  for (absl::string_view name : {"eh_proj", "enorm", "hnorm", "embed_tokens",
                                 "shared_head_head", "shared_head_norm"}) {
    const std::string bare = absl::StrCat("blk.2.nextn.", name);
    edit.Rename(absl::StrCat(bare, ".weight"), bare);
  }
}

// LOAD-16. The prediction layer of GLM: announced or not, counted or not, there
// or not, of either spelling, with a head of its own or not: the trunk is the
// same and a strict load succeeds.
TEST(Load, PredictionLayersDoNotTouchTheTrunk) {
  const auto tokens = RandomTokens(2, 9, 64);
  const Rows expected =
      LoadedModel(SeededFixture("G"), {.strict = true}).All(tokens);
  std::vector<FileEdit> edits;
  for (const bool own : {false, true}) {
    testing::TinyModelSpec spec = SeededFixture("G");
    spec.nextn_own_embedding_and_head = own;
    for (const bool bare : {false, true}) {
      for (const bool announced : {true, false}) {
        for (const bool counted : {true, false}) {
          FileEdit& edit = edits.emplace_back(spec);
          if (bare) SpellBare(edit);
          if (!announced) edit.Drop("glm4moe.nextn_predict_layers");
          if (!counted) edit.Int("glm4moe.block_count", 2);
        }
      }
    }
  }
  // Announced as none.
  edits.emplace_back(SeededFixture("G")).Int("glm4moe.nextn_predict_layers", 0);
  FileEdit& absent = edits.emplace_back(SeededFixture("G"));
  OwnedFile base(testing::TinyModelBytes(SeededFixture("G")));
  for (const GgufTensorInfo& info : base.file->tensors()) {
    if (info.name.substr(0, 6) == "blk.2.") absent.DropTensor(info.name);
  }
  for (std::size_t i = 0; i < edits.size(); ++i) {
    SCOPED_TRACE(i);
    ::testing::internal::CaptureStderr();
    LoadedModel model(edits[i].Make(), {.strict = true});
    // Said once, when there is something to say.
    const std::string said = ::testing::internal::GetCapturedStderr();
    const std::vector<std::string> parts =
        absl::StrSplit(said, " tensors of the prediction layer are not used");
    EXPECT_EQ(parts.size(), i + 1 < edits.size() ? 2U : 1U) << said;
    EXPECT_EQ(model.runner().info().num_layers, 2);
    EXPECT_EQ(model.All(tokens), expected);
  }
}

TEST(Load, InfoStatesShapesAndMemory) {
  LoadedModel fused(SeededFixture("D"), {.block_style = BlockStyle::kFused});
  const DecoderInfo& info = fused.runner().info();
  EXPECT_EQ(info.architecture, "qwen3");
  EXPECT_EQ(info.num_layers, 2);
  EXPECT_EQ(info.hidden_size, 32);
  EXPECT_EQ(info.vocab_size, 64);
  EXPECT_EQ(info.context_length, 256);
  EXPECT_TRUE(info.can_truncate);
  EXPECT_EQ(info.state_bytes_per_token, 2 * 2 * 2 * 32 * 2);
  EXPECT_GE(info.weight_bytes,
            4 * (2 * (128 * 32 * 2 + 64 * 32 * 2 + 64 * 32 * 3) + 64 * 32));
  const SiteShape& o = info.sites[static_cast<int>(LinearSite::kO)];
  EXPECT_EQ(o.in, 128);
  EXPECT_EQ(o.out, 32);
  EXPECT_EQ(fused.runner().block_style(), BlockStyle::kFused);
  LoadedModel reference(SeededFixture("G"), {});
  EXPECT_EQ(reference.runner().block_style(), BlockStyle::kHostReference);
  EXPECT_GT(reference.runner().info().weight_bytes, 0);
}

TEST(Load, AStateNeedsRoom) {
  LoadedModel model(SeededFixture("D"), {});
  for (int capacity : {0, -1}) {
    const auto state = model.runner().NewState(capacity);
    EXPECT_EQ(state.status().code(), absl::StatusCode::kInvalidArgument);
  }
  const auto state = model.NewState(3);
  EXPECT_EQ(state->capacity(), 3);
  EXPECT_EQ(state->length(), 0);
  EXPECT_NE(CacheOf(*state), nullptr);
  EXPECT_FALSE(state->Truncate(-1).ok());
}

// --- experts ----------------------------------------------------------------

TEST(Experts, GateAndUpInOneTensorMeanTheSame) {
  const testing::TinyModelSpec spec = SeededFixture("M");
  OwnedFile base(testing::TinyModelBytes(spec));
  FileEdit edit(spec);
  for (const char* block : {"blk.0.", "blk.1."}) {
    const std::string name(block);
    const Tensor gate =
        GgufFile::View(*base.file->FindTensor(name + "ffn_gate_exps.weight"));
    const Tensor up =
        GgufFile::View(*base.file->FindTensor(name + "ffn_up_exps.weight"));
    std::vector<float> both;
    for (int e = 0; e < 4; ++e) {
      for (const Tensor* half : {&gate, &up}) {
        const float* rows = static_cast<const float*>(half->data()) + e * 1024;
        both.insert(both.end(), rows, rows + 1024);
      }
    }
    edit.DropTensor(name + "ffn_gate_exps.weight")
        .DropTensor(name + "ffn_up_exps.weight")
        .Tensor(name + "ffn_gate_up_exps.weight", {32, 64, 4}, both);
  }
  const OwnedFile merged = edit.Make();
  const auto tokens = RandomTokens(3, 9, 64);
  for (BlockStyle style : {BlockStyle::kFused, BlockStyle::kHostReference}) {
    const RunnerOptions options = {.block_style = style, .strict = true};
    EXPECT_EQ(LoadedModel(OwnedFile(merged.bytes), options).All(tokens),
              LoadedModel(spec, options).All(tokens));
  }
}

TEST(Experts, TopPKeepsTheShareAndOneIsOff) {
  testing::TinyModelSpec spec = SeededFixture("G");
  spec.num_experts_used = 3;
  const auto tokens = RandomTokens(4, 12, 64);
  const auto all = [&](BlockStyle style, double top_p) {
    return LoadedModel(spec, {.block_style = style,
                              .cache_type = DType::kF32,
                              .expert_top_p = top_p})
        .All(tokens);
  };
  const Rows off = all(BlockStyle::kFused, 1);
  const Rows one = all(BlockStyle::kFused, 1e-6);
  EXPECT_NE(one, off);
  for (double top_p : {1e-6, 0.5, 0.8, 1.0}) {
    const Rows fused = all(BlockStyle::kFused, top_p);
    const Rows reference = all(BlockStyle::kHostReference, top_p);
    for (std::size_t r = 0; r < fused.size(); ++r) {
      for (std::size_t i = 0; i < fused[r].size(); ++i) {
        EXPECT_NEAR(fused[r][i], reference[r][i], 2e-5) << top_p;
      }
    }
  }
  // All the weight on the first of the chosen: what a model that uses one
  // expert computes when its weights are normalized.
  testing::TinyModelSpec single = spec;
  single.architecture = "qwen3moe";
  single.num_experts_used = 1;
  testing::TinyModelSpec several = single;
  several.num_experts_used = 3;
  const Rows expected =
      LoadedModel(single, {.cache_type = DType::kF32}).All(tokens);
  const Rows kept =
      LoadedModel(several, {.cache_type = DType::kF32, .expert_top_p = 1e-6})
          .All(tokens);
  for (std::size_t r = 0; r < kept.size(); ++r) {
    for (std::size_t i = 0; i < kept[r].size(); ++i) {
      EXPECT_NEAR(kept[r][i], expected[r][i], 2e-5);
    }
  }
}

TEST(Experts, ABiasChoosesAndDoesNotWeigh) {
  // Adding the same bias to every expert changes no choice: no bit may move.
  const testing::TinyModelSpec spec = SeededFixture("G");
  OwnedFile base(testing::TinyModelBytes(spec));
  const Tensor bias =
      GgufFile::View(*base.file->FindTensor("blk.1.exp_probs_b.bias"));
  std::vector<float> shifted;
  std::vector<float> flipped;
  for (int i = 0; i < 4; ++i) {
    shifted.push_back(bias.row_f32(0)[i] + 8);
    flipped.push_back(i < 2 ? 8.0F : -8.0F);
  }
  const auto tokens = RandomTokens(5, 9, 64);
  const Rows expected = LoadedModel(spec, {}).All(tokens);
  EXPECT_EQ(
      LoadedModel(
          FileEdit(spec).Tensor("blk.1.exp_probs_b.bias", {4}, shifted).Make(),
          {})
          .All(tokens),
      expected);
  EXPECT_NE(
      LoadedModel(
          FileEdit(spec).Tensor("blk.1.exp_probs_b.bias", {4}, flipped).Make(),
          {})
          .All(tokens),
      expected);
}

// --- options ----------------------------------------------------------------

absl::StatusOr<RunnerOptions> Parse(
    const std::map<std::string, std::string>& values) {
  const auto options = Options::Make(RunnerOptionSpecs(), values);
  EXPECT_TRUE(options.ok()) << options.status();
  return ParseRunnerOptions(*options);
}

TEST(RunnerOptions, DefaultsLeaveTheChoiceToTheFamilyAndMachine) {
  const auto options = Parse({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_FALSE(options->block_style.has_value());
  EXPECT_FALSE(options->kernel_level.has_value());
  EXPECT_EQ(options->cache_type, DType::kF16);
  EXPECT_FALSE(options->strict);
  EXPECT_EQ(options->expert_top_p, 1);
}

TEST(RunnerOptions, AreReadByName) {
  const auto options = Parse({{"block_style", "host_reference"},
                              {"kernel_level", "scalar"},
                              {"cache_type", "f32"},
                              {"strict", "true"},
                              {"expert_top_p", "0.5"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->block_style, BlockStyle::kHostReference);
  EXPECT_EQ(options->kernel_level, KernelLevel::kScalar);
  EXPECT_EQ(options->cache_type, DType::kF32);
  EXPECT_TRUE(options->strict);
  EXPECT_EQ(options->expert_top_p, 0.5);
  for (KernelLevel level : testing::SupportedLevels()) {
    std::string name(Name(level));
    for (char& c : name) {
      if (c == '-') c = '_';
    }
    EXPECT_EQ(Parse({{"kernel_level", std::string(Name(level))}})->kernel_level,
              level);
    EXPECT_EQ(Parse({{"kernel_level", name}})->kernel_level, level);
  }
}

TEST(RunnerOptions, RefusalsNameOptionValueAndChoices) {
  struct Refusal {
    const char* option;
    const char* value;
    absl::StatusCode code;
    const char* says;
  };
  for (const Refusal& r : std::vector<Refusal>{
           {"block_style", "fast", absl::StatusCode::kInvalidArgument,
            "auto, fused or host_reference"},
           {"kernel_level", "sse9", absl::StatusCode::kInvalidArgument,
            "auto, scalar, avx2"},
           {"cache_type", "f64", absl::StatusCode::kInvalidArgument,
            "f16 or f32"},
           {"cache_type", "q8_0", absl::StatusCode::kUnimplemented,
            "use f16 or f32"},
           {"expert_top_p", "0", absl::StatusCode::kInvalidArgument,
            "above 0 and at most 1"},
           {"expert_top_p", "1.5", absl::StatusCode::kInvalidArgument,
            "above 0 and at most 1"},
           {"expert_top_p", "nan", absl::StatusCode::kInvalidArgument,
            "above 0"}}) {
    const auto made = Options::Make(RunnerOptionSpecs(), {{r.option, r.value}});
    const absl::Status status =
        made.ok() ? ParseRunnerOptions(*made).status() : made.status();
    EXPECT_FALSE(status.ok()) << r.option << " " << r.value;
    if (!made.ok()) continue;  // the parser of numbers may be stricter
    EXPECT_EQ(status.code(), r.code) << status;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr(r.option), HasSubstr(r.value), HasSubstr(r.says)));
  }
}

// --- profile ----------------------------------------------------------------

TEST(PhaseTimes, AddUpAndChangeNothing) {
  for (const char* fixture : {"D", "M"}) {
    for (BlockStyle style : {BlockStyle::kFused, BlockStyle::kHostReference}) {
      LoadedModel model(SeededFixture(fixture), {.block_style = style});
      const auto tokens = RandomTokens(6, 20, 64);
      const Rows expected = model.All(tokens);
      PhaseTimes times;
      model.runner().set_phase_times(&times);
      EXPECT_EQ(model.All(tokens), expected);
      EXPECT_EQ(times.num_forwards, 1);
      EXPECT_EQ(times.num_layers, 2);
      std::int64_t total = 0;
      for (std::int64_t ns : times.phase_ns) {
        EXPECT_GE(ns, 0);
        total += ns;
      }
      EXPECT_GT(total, 0);
      for (Phase phase : {Phase::kQkv, Phase::kAttention, Phase::kFinal}) {
        EXPECT_GT(times.phase_ns[static_cast<int>(phase)], 0) << Name(phase);
      }
      model.runner().set_phase_times(nullptr);
      model.All(tokens);
      EXPECT_EQ(times.num_forwards, 1);
      times.Clear();
      EXPECT_EQ(times.num_forwards, 0);
    }
  }
}

TEST(PhaseTimes, AreNamedAsReportsPrintThem) {
  std::vector<std::string> names;
  for (int i = 0; i < kNumPhases; ++i) {
    names.emplace_back(Name(static_cast<Phase>(i)));
  }
  EXPECT_THAT(names,
              ::testing::ElementsAre("attn_prep", "qkv", "qk_norm_rope",
                                     "attention", "attn_out", "attn_residual",
                                     "ffn_prep", "router", "gate_up", "swiglu",
                                     "down", "ffn_residual", "final", "other"));
}

}  // namespace
}  // namespace fucina
