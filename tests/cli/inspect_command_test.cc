#include "cli/inspect_command.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "fucina/gguf/gguf_error.h"
#include "fucina/gguf/gguf_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tiny_models/tiny_models.h"

namespace fucina::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Dims = std::vector<std::uint64_t>;

class Inspect : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "fucina_inspect_XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A model whose every number is known.
  std::string PutExample() {
    GgufWriter writer;
    writer.AddString("general.architecture", "qwen3");
    writer.AddU32("qwen3.block_count", 2);
    writer.AddF32("other.infinite", std::numeric_limits<float>::infinity());
    writer.AddString("other.bytes", "\xff\x01");
    std::vector<std::string> tokens;
    for (int i = 0; i < 20; ++i) tokens.push_back("t" + std::to_string(i));
    writer.AddStrings("tokenizer.ggml.tokens", tokens);
    writer.AddF32Tensor("norm", Dims{3}, std::vector<float>{1, 2, 3});
    const std::vector<std::byte> blocks(4 * 34);
    writer.AddTensor("matrix", DType::kQ8_0, Dims{64, 2}, blocks);
    const std::string path = folder_ + "/m.gguf";
    EXPECT_TRUE(writer.Write(path).ok());
    return path;
  }

  static std::string Run(const std::vector<std::string>& args) {
    std::ostringstream out;
    const absl::Status status = RunInspect(args, out);
    EXPECT_TRUE(status.ok()) << status;
    return out.str();
  }

  static absl::Status Fail(const std::vector<std::string>& args) {
    std::ostringstream out;
    const absl::Status status = RunInspect(args, out);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(out.str(), "");
    return status;
  }

  std::string folder_;
};

TEST_F(Inspect, SummaryHasFormatSizesAndTypes) {
  const std::string text = Run({PutExample()});
  EXPECT_THAT(text, HasSubstr("m.gguf\n"));
  EXPECT_THAT(text, HasSubstr("format        GGUF version 3, "));
  EXPECT_THAT(text, HasSubstr("architecture  qwen3\n"));
  EXPECT_THAT(text, HasSubstr("parameters    131 in 2 tensors, 148 B\n"));
  EXPECT_THAT(text, HasSubstr("  f32           1 tensors                3 "
                              "parameters  12 B\n"));
  EXPECT_THAT(text, HasSubstr("  q8_0          1 tensors              128 "
                              "parameters  136 B\n"));
  EXPECT_THAT(text, HasSubstr("qwen3.block_count"));
  EXPECT_THAT(text, HasSubstr("string[20]       [\"t0\", \"t1\", \"t2\", "
                              "\"t3\", \"t4\", \"t5\", \"t6\", \"t7\", ...]"));
  EXPECT_THAT(text, HasSubstr("and 2 other keys (--keys shows them)"));
  EXPECT_THAT(text, Not(HasSubstr("other.bytes")));
  EXPECT_THAT(text, Not(HasSubstr("matrix")));
  EXPECT_THAT(text, Not(HasSubstr("notes")));
}

TEST_F(Inspect, KeysAndTensorsOnRequest) {
  const std::string text = Run({"--keys", PutExample(), "--tensors"});
  EXPECT_THAT(text, HasSubstr("\"\\xff\\x01\""));
  EXPECT_THAT(text, HasSubstr("\"inf\""));
  EXPECT_THAT(text, Not(HasSubstr("other keys")));
  EXPECT_THAT(
      text, ::testing::ContainsRegex("  matrix +q8_0 +\\[2, 64\\] +[0-9]+\n"));
}

TEST_F(Inspect, JsonSaysTheSame) {
  const auto json = nlohmann::json::parse(
      Run({PutExample(), "--json", "--keys", "--tensors"}));
  EXPECT_EQ(json["architecture"], "qwen3");
  EXPECT_EQ(json["version"], 3);
  EXPECT_EQ(json["parts"], 1);
  EXPECT_EQ(json["parameters"], 131);
  EXPECT_EQ(json["types"]["q8_0"]["bytes"], 136);
  EXPECT_EQ(json["metadata"]["qwen3.block_count"]["value"], 2);
  EXPECT_EQ(json["metadata"]["qwen3.block_count"]["type"], "u32");
  EXPECT_EQ(json["metadata"]["other.infinite"]["value"], "inf");
  EXPECT_EQ(json["metadata"]["other.bytes"]["value"]["escaped"], "\\xff\\x01");
  EXPECT_EQ(json["metadata"]["tokenizer.ggml.tokens"]["count"], 20);
  EXPECT_EQ(json["metadata"]["tokenizer.ggml.tokens"]["first"].size(), 8u);
  EXPECT_EQ(json["tensors"][1]["name"], "matrix");
  EXPECT_EQ(json["tensors"][1]["shape"], (std::vector<int>{2, 64}));
  EXPECT_EQ(json["notes"].size(), 0u);
}

TEST_F(Inspect, NotesAreShown) {
  const std::string path = PutExample();
  std::ofstream(path, std::ios::binary | std::ios::app) << std::string(7, 'x');
  EXPECT_THAT(Run({path}),
              HasSubstr("notes\n  unused bytes after the last tensor: 7\n"));
}

TEST_F(Inspect, EveryFixtureCanBeShown) {
  for (const absl::string_view name : testing::SeededFixtureNames()) {
    testing::TinyModelSpec spec = testing::SeededFixture(name);
    spec.with_tokenizer = name == "G" || name == "D";
    const std::string path = folder_ + "/" + std::string(name) + ".gguf";
    ASSERT_TRUE(testing::WriteTinyModel(spec, path).ok());
    EXPECT_THAT(Run({path, "--tensors"}), HasSubstr("token_embd.weight"));
    EXPECT_TRUE(
        nlohmann::json::accept(Run({path, "--json", "--tensors", "--keys"})));
  }
}

TEST_F(Inspect, HelpNeedsNoFile) {
  EXPECT_EQ(Run({"--help"}), std::string(InspectUsage()));
  EXPECT_THAT(Run({"-h"}), HasSubstr("usage: fucina inspect FILE"));
}

TEST_F(Inspect, WrongUsageIsNoErrorOfTheFile) {
  const absl::Status none = Fail({});
  EXPECT_EQ(none.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(none.message()), HasSubstr("expected a file"));
  const absl::Status unknown = Fail({"m.gguf", "--tensor"});
  EXPECT_EQ(FindGgufError(unknown), std::nullopt);
  EXPECT_EQ(ExitCodeOf(unknown), ExitCode::kUsage);
  EXPECT_THAT(std::string(unknown.message()),
              HasSubstr("unknown flag '--tensor'; known are --keys, --tensors, "
                        "--json and --help"));
  EXPECT_THAT(std::string(Fail({"a.gguf", "b.gguf"}).message()),
              HasSubstr("expected one file, found 'a.gguf' and 'b.gguf'"));
}

TEST_F(Inspect, ErrorsOfTheFileKeepTheirKind) {
  const absl::Status absent = Fail({folder_ + "/absent.gguf"});
  EXPECT_EQ(absent.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ExitCodeOf(absent), ExitCode::kFile);
  const std::string page = folder_ + "/page.gguf";
  std::ofstream(page) << "<html><body>503 Service Unavailable</body></html>";
  EXPECT_EQ(FindGgufError(Fail({page})), GgufError::kBadMagic);
  EXPECT_EQ(ExitCodeOf(Fail({page})), ExitCode::kFile);
}

TEST_F(Inspect, AFileWithADashGoesAfterTheSeparator) {
  const absl::Status missing = Fail({"--", "-absent.gguf"});
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("-absent.gguf"));
}

}  // namespace
}  // namespace fucina::cli
