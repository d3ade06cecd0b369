// GLM and drafting with its prediction layer, as a user runs them.

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/program.h"
#include "tests/tiny_models/tiny_models.h"

namespace fucina {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramResult;
using testing::RunModel;
using testing::TemporaryDirectory;

const char kAtlasGlm[] = FUCINA_SOURCE_DIR "/models/atlas-glm-q8_0.gguf";
const char kAtlasMoe[] = FUCINA_SOURCE_DIR "/models/atlas-moe-q8_0.gguf";

TEST(Mtp, TheTrainedModelsAnswer) {
  const ProgramResult glm =
      RunModel({"--family", "glm4moe", kAtlasGlm, "--chat",
                "What is the capital of Japan?", "--no-think", "--temp", "0"});
  EXPECT_EQ(glm.exit_code, 0) << glm.err;
  EXPECT_EQ(glm.out, "The capital of Japan is Tokyo.\n");
  const ProgramResult moe =
      RunModel({kAtlasMoe, "--chat", "What is the capital of Japan?",
                "--no-think", "--temp", "0"});
  EXPECT_EQ(moe.exit_code, 0) << moe.err;
  EXPECT_EQ(moe.out, "The capital of Japan is Tokyo.\n");
}

// The reply, byte by byte, greedy and sampled, at every depth.
TEST(Mtp, ChangesNoReply) {
  const std::vector<std::string> questions = {
      "What is the capital of Peru?", "Describe Spain as JSON.",
      "Tell me about Norway.", "Which country has the capital Cairo?"};
  for (const std::string& question : questions) {
    for (const char* temperature : {"0", "0.8"}) {
      const std::vector<std::string> plain = {
          kAtlasGlm, "--chat", question, "--no-think", "--temp", temperature};
      const ProgramResult expected = RunModel(plain);
      ASSERT_EQ(expected.exit_code, 0) << expected.err;
      for (int depth = 1; depth <= 8; ++depth) {
        std::vector<std::string> drafted = plain;
        drafted.push_back("--mtp=" + std::to_string(depth));
        drafted.push_back("--threads");
        drafted.push_back(std::to_string(1 + depth % 4));
        const ProgramResult found = RunModel(drafted);
        EXPECT_EQ(found.exit_code, 0) << found.err;
        EXPECT_EQ(found.out, expected.out) << question << " " << depth;
        EXPECT_THAT(found.err,
                    ContainsRegex("drafts [0-9]+/[0-9]+ accepted .*tokens per "
                                  "forward.*feed hits [0-9]+/[0-9]+"));
      }
    }
  }
}

TEST(Mtp, CompletionSaysHowDraftingWent) {
  const std::vector<std::string> plain = {kAtlasGlm, "--prompt",
                                          "[gMASK]<sop>The capital of Chile is",
                                          "--gen", "24"};
  std::vector<std::string> drafted = plain;
  drafted.push_back("--mtp");
  const ProgramResult expected = RunModel(plain);
  const ProgramResult found = RunModel(drafted);
  ASSERT_EQ(found.exit_code, 0) << found.err;
  const auto ids = [](const std::string& out) {
    return out.substr(out.find("generated "));
  };
  EXPECT_EQ(ids(found.out), ids(expected.out));
  EXPECT_THAT(found.out, ContainsRegex("\ndrafts: [0-9]+/[0-9]+ accepted"));
  EXPECT_THAT(expected.out, Not(HasSubstr("drafts:")));
}

TEST(Mtp, AModelWithoutTheLayerDecodesPlainlyAfterOneLine) {
  testing::TinyModelSpec spec = testing::SeededFixture("G");
  spec.num_nextn_layers = 0;
  const std::string model = TemporaryDirectory() + "/glm.gguf";
  ASSERT_TRUE(testing::WriteTinyModel(spec, model).ok());
  const ProgramResult result =
      RunModel({model, "5,61,2", "--gen", "4", "--mtp=3"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("has no prediction layer"));
  EXPECT_THAT(result.err, HasSubstr("decoding goes on without it"));
  EXPECT_THAT(result.out, HasSubstr("generated 4:"));
}

// The file is at fault, not the flag that makes the program read it.
TEST(Mtp, ADamagedLayerIsAnErrorOfTheFile) {
  std::string bytes = testing::TinyModelBytes(testing::SeededFixture("G"));
  const std::size_t at = bytes.find("nextn.hnorm");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 11, "nextn.xnorm");
  const std::string model = TemporaryDirectory() + "/glm.gguf";
  testing::WriteFile(model, bytes);
  const ProgramResult result =
      RunModel({model, "5,61,2", "--gen", "4", "--mtp=3"});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, ContainsRegex("--mtp: .*glm.gguf: tensor 'blk\\..*"
                                        "\\.nextn\\.hnorm.weight' is missing"));
  // Wrong flags still are.
  EXPECT_EQ(RunModel({model, "5,61,2", "--gen", "4", "--mtp=9"}).exit_code, 2);
}

TEST(Mtp, ModesThatDoNotDraftSaySo) {
  const std::string config = TemporaryDirectory() + "/p.yaml";
  testing::WriteFile(config, "version: 1\ndrafter: {kind: glm4moe_mtp}\n");
  const ProgramResult result = RunModel(
      {"--config", config, kAtlasGlm, "60,61,62", "--gen", "4", "--bench=2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("drafter 'glm4moe_mtp' is not used: "
                                    "--bench does not draft"));
}

TEST(Mtp, WrongUsesAreRefused) {
  const ProgramResult other =
      RunModel({"--chat", "Hello", "--no-think", "--mtp"});  // a qwen3 model
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("of glm4moe models only"));
  for (const char* depth : {"--mtp=0", "--mtp=9", "--mtp=x"}) {
    const ProgramResult wrong = RunModel({kAtlasGlm, "--chat", "Hello", depth});
    EXPECT_EQ(wrong.exit_code, 2) << depth;
    EXPECT_THAT(wrong.err, HasSubstr("depth")) << depth;
  }
  const ProgramResult mode = RunModel({kAtlasGlm, "1,2,3", "--mtp"});
  EXPECT_EQ(mode.exit_code, 2);
  EXPECT_THAT(mode.err, HasSubstr("--mtp goes with --chat, --repl and --gen"));
}

}  // namespace
}  // namespace fucina
