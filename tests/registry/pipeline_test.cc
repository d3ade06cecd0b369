#include "registry/pipeline.h"

#include <filesystem>
#include <map>
#include <new>
#include <stdexcept>
#include <string>

#include "fucina/contract/checked_forward.h"
#include "fucina/diag/log.h"
#include "fucina/gguf/gguf_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "registry/config_keys.h"
#include "tests/registry/fake_family.h"
#include "tests/registry/scratch_dir.h"

namespace fucina {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// --- a builtin plugin whose behaviour the test chooses
// ---------------------------

enum class Act {
  kLoad,
  kThrow,
  kThrowMemory,
  kThrowInt,
  kNull,
  kWrongInfo,
  kNarrow
};
Act g_act = Act::kLoad;
int g_loads = 0;
std::string g_cache_type;

// Returns one logit less than its vocabulary has.
class NarrowDecoder final : public Decoder {
 public:
  const DecoderInfo& info() const override { return honest_.info(); }
  absl::StatusOr<std::unique_ptr<DecodeState>> NewState(
      int capacity) const override {
    return honest_.NewState(capacity);
  }
  absl::Status Forward(std::span<SequenceStep> batch) const override {
    absl::Status status = honest_.Forward(batch);
    for (SequenceStep& step : batch) {
      step.logits = Tensor(DType::kF32, {1, fake::kVocabSize - 1},
                           step.logits.mutable_data());
    }
    return status;
  }

 private:
  fake::FakeDecoder honest_{4096, fake::Lie::kNone};
};

absl::StatusOr<std::unique_ptr<Decoder>> LoadFake(const GgufFile& file,
                                                  ThreadPool&,
                                                  const Options& options) {
  ++g_loads;
  g_cache_type = options.GetString("cache_type");
  switch (g_act) {
    case Act::kThrow:
      throw std::runtime_error("out of cheese");
    case Act::kThrowMemory:
      throw std::bad_alloc();
    case Act::kThrowInt:
      throw 3;
    case Act::kNull:
      return std::unique_ptr<Decoder>();
    case Act::kWrongInfo:
      return std::make_unique<fake::FakeDecoder>(0, fake::Lie::kNone);
    case Act::kNarrow:
      return std::make_unique<NarrowDecoder>();
    case Act::kLoad:
      break;
  }
  return fake::Load(file, fake::Lie::kNone);
}

constexpr OptionSpec kFamilyOptions[] = {
    {.name = "cache_type",
     .type = OptionType::kString,
     .default_value = "f16",
     .doc = "element type of the cache"},
    {.name = "depth",
     .type = OptionType::kInt,
     .default_value = "1",
     .doc = "a number"},
};

constexpr ChatTraits kTraits = {
    .thinking = {.temperature = 0.6F, .top_k = 20, .top_p = 0.95F},
    .non_thinking = {.temperature = 0.7F, .top_k = 21, .top_p = 0.8F}};

absl::Status RegisterFake(Registrar& registrar) {
  absl::Status status = registrar.Add(Family{.name = "fake",
                                             .summary = "hashes its input",
                                             .options = kFamilyOptions,
                                             .chat = &kTraits,
                                             .load = &LoadFake});
  status.Update(registrar.Add(Family{.name = "fakemoe",
                                     .summary = "its sibling",
                                     .options = kFamilyOptions,
                                     .chat = &kTraits,
                                     .load = &LoadFake}));
  status.Update(registrar.Add(DrafterKind{
      .name = "refuses",
      .summary = "drafts for nobody",
      .options = {},
      .make = [](const Decoder&,
                 const Options&) -> absl::StatusOr<std::unique_ptr<Drafter>> {
        return absl::UnimplementedError("drafts for nobody");
      }}));
  status.Update(registrar.Add(
      ConstraintKind{.name = "grammar",
                     .summary = "compiles nothing",
                     .options = {},
                     .make = [](const Tokenizer&, const Options&)
                         -> absl::StatusOr<std::unique_ptr<Constraint>> {
                       return absl::InvalidArgumentError("grammar: line 1: no");
                     }}));
  return status;
}

absl::Status RegisterOther(Registrar& registrar) {
  return registrar.Add(Family{
      .name = "other",
      .summary = "of another plugin",
      .load = [](const GgufFile&, ThreadPool&,
                 const Options&) -> absl::StatusOr<std::unique_ptr<Decoder>> {
        return absl::InternalError("not called");
      }});
}

class PipelineTest : public ::testing::Test {
 protected:
  PipelineTest() {
    g_act = Act::kLoad;
    g_loads = 0;
    dir_.Write("meminfo", "MemAvailable: 1000000 kB\n");
    memory_ = {.meminfo = dir_.File("meminfo"),
               .cgroup_file = dir_.File("none"),
               .cgroup_root = dir_.File("none")};
    WriteModel("fake");
  }

  void WriteModel(const std::string& architecture,
                  const std::map<std::string, float>& floats = {},
                  const std::string& chat_template = "") {
    GgufWriter writer;
    writer.AddString("general.architecture", architecture);
    writer.AddU32("fake.context_length", 4096);
    for (const auto& [key, value] : floats) writer.AddF32(key, value);
    if (!chat_template.empty()) {
      writer.AddString("tokenizer.chat_template", chat_template);
    }
    const std::uint64_t ne[] = {4, 2};
    const std::uint64_t big[] = {1024, 16};
    writer.AddF32Tensor("token_embd.weight", ne, std::vector<float>(8, 1.0F));
    writer.AddF32Tensor("output.weight", big,
                        std::vector<float>(1024 * 16, 1.0F));
    ASSERT_TRUE(writer.Write(model_).ok());
  }

  absl::StatusOr<std::unique_ptr<Pipeline>> Build(const std::string& yaml) {
    PipelineConfig config;
    absl::Status status =
        ParsePipeline("version: 1\n" + yaml, "p.yaml", dir_.path(), config);
    if (!status.ok()) return status;
    if (config.model.empty()) config.model = model_;
    auto registry = std::make_unique<Registry>();
    status.Update(registry->AddBuiltin(
        FUCINA_PLUGIN_MANIFEST(fake, "1.0.0", "MIT", &RegisterFake)));
    status.Update(registry->AddBuiltin(
        FUCINA_PLUGIN_MANIFEST(other, "1.0.0", "MIT", &RegisterOther)));
    if (!status.ok()) return status;
    return BuildPipeline(std::move(config), PipelineDepth::kDecoder,
                         std::move(registry), memory_);
  }

  std::string Refusal(const std::string& yaml, absl::StatusCode code) {
    const auto pipeline = Build(yaml);
    EXPECT_EQ(pipeline.status().code(), code) << pipeline.status();
    return std::string(pipeline.status().message());
  }

  ScratchDir dir_;
  std::string model_ = dir_.File("m.gguf");
  MemorySources memory_;
};

TEST_F(PipelineTest, BuildsAndReports) {
  const auto built = Build("threads: 2\nsampling: {seed: 7}\n");
  ASSERT_TRUE(built.ok()) << built.status();
  const Pipeline& p = **built;
  ASSERT_NE(p.decoder, nullptr);
  EXPECT_EQ(p.decoder->info().architecture, "fake");
  EXPECT_EQ(p.context(), 4096);
  EXPECT_EQ(p.pool->num_threads(), 2);
  EXPECT_EQ(p.tokenizer, nullptr);
  EXPECT_EQ(p.tokenizer_status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(p.chat_template_status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(
      StartupLine(p.report),
      StartsWith("fake by fake (builtin) 1.0.0 | file f32 64.0 KiB | memory: "
                 "weights 4.0 KiB, 1000 KiB per 1000 tokens | context 4096 of "
                 "4096 | threads 2: "));
  EXPECT_THAT(
      StartupLine(p.report),
      HasSubstr(" | scalar | template none | sampling temp 0.7, top-k 21, "
                "top-p 0.8, min-p 0, repeat 1, seed 7 (the family's advice "
                "without thinking)"));
}

TEST_F(PipelineTest, OnlyTheFileNeedsNoPluginAndNoWeights) {
  PipelineConfig config;
  config.model = model_;
  const auto built = BuildPipeline(std::move(config), PipelineDepth::kFile);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_NE((*built)->file, nullptr);
  EXPECT_EQ((*built)->registry, nullptr);
  EXPECT_EQ(g_loads, 0);
}

// --- names before weights
// -----------------------------------------------------------

TEST_F(PipelineTest, NamesAreFoundWantingBeforeWeightsAreLoaded) {
  const struct {
    const char* yaml;
    absl::StatusCode code;
    const char* begins;
  } cases[] = {
      {"model: absent.gguf\n", absl::StatusCode::kNotFound,
       "p.yaml:2: model: "},
      {"family: fakk\n", absl::StatusCode::kNotFound,
       "p.yaml:2: family: no family 'fakk'; known: fake, fakemoe, other"},
      {"family: other\n", absl::StatusCode::kInvalidArgument,
       "p.yaml:2: family: family 'other' cannot run "},
      {"options: {dept: 3}\n", absl::StatusCode::kInvalidArgument,
       "p.yaml:2: family 'fake' has no option 'dept'; did you mean 'depth'"},
      {"options: {depth: deep}\n", absl::StatusCode::kInvalidArgument,
       "p.yaml:2: option 'depth' of family 'fake': expected an integer, found "
       "'deep'"},
      {"kernel_level: avx2\n", absl::StatusCode::kInvalidArgument,
       "p.yaml:2: kernel_level: family 'fake' has no option 'kernel_level'; "
       "only 'auto' is possible"},
      {"cache_type: f32\noptions: {cache_type: f16}\n",
       absl::StatusCode::kInvalidArgument,
       "p.yaml:2: cache_type: 'f32' contradicts 'options.cache_type', which is "
       "'f16'"},
      {"adapter: {kind: shine}\n", absl::StatusCode::kNotFound,
       "p.yaml:2: adapter.kind: no adapter 'shine'; known: none"},
      {"drafter: {kind: cascade}\n", absl::StatusCode::kNotFound,
       "p.yaml:2: drafter.kind: no drafter 'cascade'; known: refuses"},
      {"drafter:\n  kind: refuses\n  options:\n    max_draft: 3\n",
       absl::StatusCode::kInvalidArgument,
       "p.yaml:5: drafter 'refuses' has no option 'max_draft'; it has none"},
      {"drafter: {max_draft: 4}\n", absl::StatusCode::kInvalidArgument,
       "p.yaml:2: drafter.max_draft: nobody drafts; give --spec or "
       "'drafter.kind' too"},
      {"drafter: {gate: false}\n", absl::StatusCode::kInvalidArgument,
       "p.yaml:2: drafter.gate: nobody drafts"},
      {"drafter: {kind: refuses, costs: '1:1.1,4:1.4,4:2'}\n",
       absl::StatusCode::kInvalidArgument,
       "p.yaml:2: drafter.costs: expected DRAFTED:COST,… with DRAFTED "
       "ascending from 1 to 1024 and COST from 1 to 1000, such as "
       "1:1.05,4:1.3; found '4:2'"},
      {"drafter: {kind: refuses, costs: '1:nan'}\n",
       absl::StatusCode::kInvalidArgument, "p.yaml:2: drafter.costs: expected"},
      {"drafter: {kind: refuses, costs: 'x'}\n",
       absl::StatusCode::kInvalidArgument, "p.yaml:2: drafter.costs: expected"},
      {"drafter: {kind: refuses, costs: '1:0.5'}\n",
       absl::StatusCode::kInvalidArgument, "p.yaml:2: drafter.costs: expected"},
      {"drafter: {kind: refuses, max_draft: 65}\n",
       absl::StatusCode::kInvalidArgument, "p.yaml:2: drafter.max_draft: "},
      {"drafter: {options: {a: 1}}\n", absl::StatusCode::kInvalidArgument,
       "p.yaml:2: drafter has options but no 'kind'"},
      {"constraint: {kind: other}\n", absl::StatusCode::kNotFound,
       "p.yaml:2: constraint.kind: no constraint 'other'; known: grammar"},
      {"constraint: {kind: grammar}\n", absl::StatusCode::kNotFound,
       "constrained decoding needs a tokenizer: "},
      {"chat: {template: nothing.jinja}\n", absl::StatusCode::kNotFound,
       "p.yaml:2: chat.template: no file '"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(Refusal(c.yaml, c.code), StartsWith(c.begins)) << c.yaml;
  }
  EXPECT_EQ(g_loads, 0);
}

TEST_F(PipelineTest, NoModelSaysWhereToGiveOne) {
  PipelineConfig config;
  const auto built = BuildPipeline(config, PipelineDepth::kFile);
  EXPECT_EQ(built.status().message(),
            "no model: give a GGUF file as argument or as 'model:' in the "
            "pipeline file");
}

TEST_F(PipelineTest, AnUnknownArchitectureIsTheFilesFault) {
  WriteModel("qwen4");
  const auto built = Build("");
  EXPECT_EQ(built.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(built.status().message()),
              StartsWith(model_ + ": no family 'qwen4'; known: fake"));
  EXPECT_TRUE(BlamesModelFile(built.status()));
}

TEST_F(PipelineTest, ASiblingsNameSelectsTheFilesOwnFamily) {
  const auto built = Build("family: fakemoe\n");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ((*built)->family->descriptor.name, "fake");
}

TEST_F(PipelineTest, KeysReachTheFamilysOptions) {
  ASSERT_TRUE(Build("cache_type: q8_0\n").ok());
  EXPECT_EQ(g_cache_type, "q8_0");
  ASSERT_TRUE(Build("cache_type: auto\n").ok());
  EXPECT_EQ(g_cache_type, "f16");
}

TEST_F(PipelineTest, ADrafterThatRefusesIsAnErrorAtStart) {
  EXPECT_EQ(
      Refusal("drafter: {kind: refuses}\n", absl::StatusCode::kInvalidArgument),
      "p.yaml:2: drafter.kind: drafts for nobody");
}

// --- plugins that misbehave
// ------------------------------------------------------------

TEST_F(PipelineTest, ExceptionsOfAPluginEndInAStatus) {
  g_act = Act::kThrow;
  EXPECT_EQ(Refusal("", absl::StatusCode::kInternal),
            "fake (builtin) threw while making family 'fake': out of cheese");
  g_act = Act::kThrowInt;
  EXPECT_EQ(Refusal("", absl::StatusCode::kInternal),
            "fake (builtin) threw while making family 'fake': an exception of "
            "unknown type");
  g_act = Act::kThrowMemory;
  EXPECT_EQ(Refusal("", absl::StatusCode::kResourceExhausted),
            "fake (builtin): out of memory while making family 'fake'");
}

TEST_F(PipelineTest, WhatAPluginMakesIsChecked) {
  g_act = Act::kNull;
  EXPECT_EQ(Refusal("", absl::StatusCode::kInternal),
            "fake (builtin) broke the contract: it made no decoder");
  g_act = Act::kWrongInfo;
  EXPECT_THAT(Refusal("", absl::StatusCode::kInternal),
              StartsWith("fake (builtin) broke the contract: its decoder calls "
                         "itself 'fake' with 2 layers of width 8, 32 logits, 0 "
                         "context"));
}

// PLUG-6: what it returns while it runs is checked too, and the plugin named.
TEST_F(PipelineTest, AWrongShapeWhileRunningNamesThePlugin) {
  g_act = Act::kNarrow;
  const auto built = Build("");
  ASSERT_TRUE(built.ok()) << built.status();
  const auto state = (*built)->decoder->NewState(8).value();
  const TokenId token = 1;
  SequenceStep step = {.tokens = {&token, 1}, .state = state.get()};
  const absl::Status status = CheckedForward(*(*built)->decoder, step);
  EXPECT_TRUE(BlamesDecoder(status));
  const absl::Status named = NamePlugin(**built, status);
  EXPECT_EQ(named.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(named.message(),
            "fake (builtin): the decoder of family 'fake' broke the contract: "
            "its logits are f32 [1, 31], expected f32 [1, 32]");
  EXPECT_EQ(state->length(), 0);
  const absl::Status other = absl::InternalError("something else");
  EXPECT_EQ(NamePlugin(**built, other), other);
}

// --- memory and context
// -------------------------------------------------------------------

TEST_F(PipelineTest, WeightsThatDoNotFitAreRefusedBeforeLoading) {
  dir_.Write("meminfo", "MemAvailable: 32 kB\n");
  EXPECT_EQ(Refusal("", absl::StatusCode::kResourceExhausted),
            model_ +
                ": needs 64.0 KiB (65536 bytes) for weights, 32.0 KiB "
                "(32768 bytes) are available (free memory of this "
                "machine); --no-memory-check tries all the same");
  EXPECT_EQ(g_loads, 0);
  EXPECT_TRUE(Build("memory_check: false\n").ok());
}

// CPU-8: the machine has room, the container has not.
TEST_F(PipelineTest, TheLimitOfTheContainerIsSeenBeforeLoading) {
  std::filesystem::create_directories(dir_.File("cgroup/box"));
  dir_.Write("self", "0::/box\n");
  dir_.Write("cgroup/box/memory.max", "40000\n");
  dir_.Write("cgroup/box/memory.current", "8000\n");
  memory_.cgroup_file = dir_.File("self");
  memory_.cgroup_root = dir_.File("cgroup");
  EXPECT_EQ(Refusal("", absl::StatusCode::kResourceExhausted),
            model_ +
                ": needs 64.0 KiB (65536 bytes) for weights, 31.2 KiB "
                "(32000 bytes) are available (memory limit of the "
                "container); --no-memory-check tries all the same");
  EXPECT_EQ(g_loads, 0);
  // Weights that fit and a context that does not.
  dir_.Write("cgroup/box/memory.max", "1032000\n");
  EXPECT_EQ(Refusal("context: 2000\n", absl::StatusCode::kResourceExhausted),
            "p.yaml:2: context: a context of 2000 tokens needs 2.0 MiB "
            "(2048000 bytes), 1000 KiB (1024000 bytes) are available (memory "
            "limit of the container); a context of 1000 would fit");
}

// The head of a tied model is packed from the embedding and takes its memory.
TEST_F(PipelineTest, ATiedHeadIsCountedAmongTheWeights) {
  GgufWriter writer;
  writer.AddString("general.architecture", "fake");
  writer.AddU32("fake.context_length", 4096);
  const std::uint64_t ne[] = {1024, 16};
  writer.AddF32Tensor("token_embd.weight", ne,
                      std::vector<float>(1024 * 16, 1.0F));
  ASSERT_TRUE(writer.Write(model_).ok());
  dir_.Write("meminfo", "MemAvailable: 32 kB\n");
  EXPECT_THAT(Refusal("", absl::StatusCode::kResourceExhausted),
              HasSubstr("needs 64.0 KiB (65536 bytes) for weights"));
  EXPECT_EQ(g_loads, 0);
}

TEST_F(PipelineTest, AContextThatDoesNotFitNamesOneThatWould) {
  dir_.Write("meminfo", "MemAvailable: 1000 kB\n");
  EXPECT_EQ(Refusal("context: 2000\n", absl::StatusCode::kResourceExhausted),
            "p.yaml:2: context: a context of 2000 tokens needs 2.0 MiB "
            "(2048000 bytes), 1000 KiB (1024000 bytes) are available (free "
            "memory of this machine); a context of 1000 would fit");
  const auto built = Build("context: 1000\n");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ((*built)->context(), 1000);
}

TEST_F(PipelineTest, AnOpenContextShrinksToWhatFitsAndSaysSo) {
  dir_.Write("meminfo", "MemAvailable: 1000 kB\n");
  const auto built = Build("");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ((*built)->context(), 1000);
  EXPECT_THAT((*built)->notes,
              ::testing::Contains(HasSubstr(
                  "the context is 1000 tokens, not the trained 4096")));
}

TEST_F(PipelineTest, AContextBeyondTheTrainedOneIsAllowedWithAWarning) {
  ::testing::internal::CaptureStderr();
  const auto built = Build("context: 5000\n");
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ((*built)->context(), 5000);
  EXPECT_THAT(log, HasSubstr("a context of 5000 tokens is more than the 4096 "
                             "this model was trained for"));
}

// --- sampling
// ---------------------------------------------------------------------------------

TEST_F(PipelineTest, SamplingFollowsTheModeAndTheUserWins) {
  auto built = Build("chat: {thinking: true}\n");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ((*built)->report.sampler.temperature, 0.6);
  EXPECT_EQ((*built)->report.sampler.top_k, 20);
  EXPECT_EQ((*built)->report.sampler.top_p, 0.95);
  built = Build("chat: {thinking: true}\nsampling: {top_k: 3, min_p: 0.5}\n");
  ASSERT_TRUE(built.ok());
  EXPECT_EQ((*built)->report.sampler.temperature, 0.6);
  EXPECT_EQ((*built)->report.sampler.top_k, 3);
  EXPECT_EQ((*built)->report.sampler.min_p, 0.5);
}

TEST_F(PipelineTest, GreedyThinkingIsNoted) {
  const auto built =
      Build("chat: {thinking: true}\nsampling: {temperature: 0}\n");
  ASSERT_TRUE(built.ok());
  EXPECT_THAT((*built)->notes, ::testing::Contains(StartsWith(
                                   "greedy sampling while the model thinks")));
}

TEST_F(PipelineTest, WithoutTraitsTheFilesAdviceHolds) {
  WriteModel("fake", {{"general.sampling.temp", 0.25F},
                      {"general.sampling.top_k", 40}});
  const auto file = GgufFile::Open(model_);
  ASSERT_TRUE(file.ok());
  std::string source;
  auto sampler = ChatSampler({}, nullptr, **file, false, &source);
  ASSERT_TRUE(sampler.ok()) << sampler.status();
  EXPECT_EQ(sampler->temperature, 0.25);
  EXPECT_EQ(sampler->top_k, 40);
  EXPECT_EQ(sampler->top_p, 0.95);
  EXPECT_EQ(source, "the model file's advice");
}

TEST_F(PipelineTest, BadAdviceInTheFileIsRefused) {
  WriteModel("fake", {{"general.sampling.temp", -3}});
  const auto file = GgufFile::Open(model_);
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(
      std::string(
          ChatSampler({}, nullptr, **file, false, nullptr).status().message()),
      StartsWith(model_ + ": the model file's advice: "));
  WriteModel("fake", {{"general.sampling.top_k", -3}});
  const auto other = GgufFile::Open(model_);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(
      ChatSampler({}, nullptr, **other, false, nullptr).status().message(),
      model_ +
          ": key 'general.sampling.top_k': expected an integer, 0 "
          "or more, found -3");
}

TEST(Sampling, CompletionsAreGreedyUnlessTheUserSaysOtherwise) {
  PipelineConfig config;
  EXPECT_EQ(CompletionSampler(config).temperature, 0);
  EXPECT_EQ(CompletionSampler(config).top_p, 1);
  config.sampling.temperature = 0.5;
  EXPECT_EQ(CompletionSampler(config).temperature, 0.5);
}

}  // namespace
}  // namespace fucina
