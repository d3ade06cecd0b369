#include "cli/plugins_command.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/registry/scratch_dir.h"

namespace fucina::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class PluginsCommand : public ::testing::Test {
 protected:
  ~PluginsCommand() override { unsetenv("FUCINA_PLUGIN_PATH"); }

  void Install(const std::string& fixture) {
    dir_.Write("libfucina_" + fixture + ".so",
               ReadFile(FixturePlugin(fixture)));
    setenv("FUCINA_PLUGIN_PATH", dir_.path().c_str(), 1);
  }
  absl::Status Run(const std::vector<std::string>& args) {
    std::ostringstream out;
    const absl::Status status = RunPlugins(args, out);
    text_ = out.str();
    return status;
  }

  ScratchDir dir_;
  std::string text_;
};

TEST_F(PluginsCommand, ListsWhatWasFoundOfferedRefusedAndSearched) {
  Install("sample");
  Install("wrong_core");
  ASSERT_TRUE(Run({}).ok());
  EXPECT_THAT(text_, StartsWith("plugins\n"));
  EXPECT_THAT(text_, HasSubstr("  sample 1.2.0  Apache-2.0  built with " +
                               std::string(__VERSION__) + "  " +
                               dir_.File("libfucina_sample.so") + "\n"));
  // Padded to the longest name of the plugins that were built.
  EXPECT_THAT(text_, ContainsRegex("drafters\n(  .*\n)*  sample  +drafts "
                                   "nothing  \\(libfucina_sample.so\\)\n"));
  EXPECT_THAT(text_,
              HasSubstr("refused\n  " + dir_.File("libfucina_wrong_core.so") +
                        "\n    libfucina_wrong_core.so (wrong_core "
                        "1.2.0, built with "));
  EXPECT_THAT(text_, HasSubstr("searched\n  " + dir_.path() +
                               "  (FUCINA_PLUGIN_PATH; 2 found)\n"));
  EXPECT_THAT(text_, HasSubstr("/fucina/plugins  (beside libfucina; "));
  EXPECT_THAT(text_, Not(HasSubstr("max_draft")));
}

TEST_F(PluginsCommand, VerboseShowsOptions) {
  Install("sample");
  ASSERT_TRUE(Run({"--verbose"}).ok());
  EXPECT_THAT(text_,
              HasSubstr("      max_draft: an integer, initially '8'; longest "
                        "draft, tokens\n"));
  EXPECT_THAT(text_, HasSubstr("      no options\n"));
}

TEST_F(PluginsCommand, JsonSaysTheSame) {
  Install("sample");
  Install("misnamed");
  ASSERT_TRUE(Run({"--json"}).ok());
  const auto json = nlohmann::json::parse(text_);
  bool seen = false;
  for (const auto& plugin : json["plugins"]) {
    seen = seen || (plugin["name"] == "sample" && plugin["version"] == "1.2.0");
  }
  EXPECT_TRUE(seen) << text_;
  const auto& drafters = json["drafters"];
  const auto sample =
      std::find_if(drafters.begin(), drafters.end(),
                   [](const auto& kind) { return kind["name"] == "sample"; });
  ASSERT_NE(sample, drafters.end()) << text_;
  EXPECT_EQ((*sample)["options"][1]["name"], "max_draft");
  ASSERT_EQ(json["refused"].size(), 1U);
  EXPECT_THAT(json["refused"][0]["reason"].get<std::string>(),
              HasSubstr("calls itself 'bar'"));
  EXPECT_EQ(json["searched"][0]["path"], dir_.path());
}

TEST_F(PluginsCommand, NamedPluginsAreAClosedWorld) {
  Install("sample");
  Install("clash");
  ASSERT_TRUE(Run({"--plugin", "sample"}).ok());
  EXPECT_THAT(text_, Not(HasSubstr("libfucina_clash.so")));
  EXPECT_EQ(Run({"--plugin=nothing"}).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(text_, HasSubstr("searched\n  " + dir_.path()));
}

TEST_F(PluginsCommand, AContradictionIsListedAndReturned) {
  Install("sample");
  Install("clash");
  const absl::Status status = Run({});
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(text_, HasSubstr("refused\n"));
  EXPECT_THAT(text_, HasSubstr("is claimed by both"));
}

TEST_F(PluginsCommand, WrongArgumentsAreRefused) {
  EXPECT_EQ(Run({"--verbos"}).message(),
            "unknown argument of plugins: --verbos; did you mean --verbose");
  EXPECT_EQ(Run({"--plugin"}).message(), "missing value for --plugin");
  EXPECT_EQ(Run({"--plugin="}).message(),
            "--plugin: expected a plugin's name or file, found ''");
  EXPECT_EQ(text_, "");
  EXPECT_TRUE(Run({"--help"}).ok());
  EXPECT_THAT(text_, StartsWith("usage: fucina plugins"));
}

TEST_F(PluginsCommand, ABadVariableIsRefused) {
  setenv("FUCINA_PLUGIN_PATH", "plugins", 1);
  EXPECT_THAT(std::string(Run({}).message()),
              StartsWith("FUCINA_PLUGIN_PATH: 'plugins' is not an absolute "
                         "path"));
}

}  // namespace
}  // namespace fucina::cli
