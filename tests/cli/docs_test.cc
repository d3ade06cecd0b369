// Every command that the documentation shows in a `sh` block is run, page by
// page in one folder of its own, with the embedded model as model.gguf.
// Commands of an `sh llguidance` block need that plugin; a build without it
// must refuse them and say why.

#include <filesystem>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/cli/program.h"

namespace fucina {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Pages() {
  std::vector<std::string> pages = {"README.md"};
  for (const auto& entry :
       fs::recursive_directory_iterator(FUCINA_SOURCE_DIR "/docs")) {
    if (entry.path().extension() == ".md") {
      pages.push_back(fs::relative(entry.path(), FUCINA_SOURCE_DIR).string());
    }
  }
  return pages;
}

struct Command {
  std::string text;
  bool needs_llguidance = false;
};

std::vector<Command> Commands(const std::string& text) {
  std::vector<Command> commands;
  std::size_t at = 0;
  bool inside = false;
  bool needs_llguidance = false;
  bool continued = false;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.rfind("```", 0) == 0) {
      needs_llguidance = line == "```sh llguidance";
      inside = !inside && (line == "```sh" || needs_llguidance);
    } else if (inside && !line.empty()) {
      if (continued) {
        commands.back().text += "\n" + line;
      } else {
        commands.push_back({line, needs_llguidance});
      }
      continued = line.back() == '\\';
    }
  }
  return commands;
}

class Docs : public ::testing::TestWithParam<std::string> {};

TEST_P(Docs, EveryCommandRuns) {
  const std::string text =
      testing::ReadFile(FUCINA_SOURCE_DIR "/" + GetParam());
  testing::ProgramOptions options;
  options.directory = testing::TemporaryDirectory();
  fs::create_symlink(testing::EmbeddedModel(),
                     options.directory + "/model.gguf");
  for (const Command& command : Commands(text)) {
    const testing::ProgramResult result =
        testing::RunShell(command.text, options);
    const bool refused = command.needs_llguidance && !FUCINA_HAS_LLGUIDANCE;
    // Given a file of a plugin that was not built.
    const bool no_file =
        refused && command.text.find("fucina-conformance") != std::string::npos;
    EXPECT_EQ(result.exit_code, no_file   ? 3
                                : refused ? 2
                                          : 0)
        << GetParam() << ": " << command.text << "\n"
        << result.err;
    if (refused && !no_file) {
      EXPECT_NE(result.err.find("needs the llguidance plugin (not built: "),
                std::string::npos)
          << result.err;
    }
  }
}

TEST_P(Docs, LinksLeadSomewhere) {
  const std::string text =
      testing::ReadFile(FUCINA_SOURCE_DIR "/" + GetParam());
  const fs::path folder =
      fs::path(FUCINA_SOURCE_DIR "/" + GetParam()).parent_path();
  for (std::size_t at = text.find("]("); at != std::string::npos;
       at = text.find("](", at + 1)) {
    std::string target = text.substr(at + 2, text.find(')', at) - at - 2);
    target = target.substr(0, target.find('#'));
    if (target.empty() || target.find("://") != std::string::npos) continue;
    EXPECT_TRUE(fs::exists(folder / target)) << GetParam() << ": " << target;
  }
}

INSTANTIATE_TEST_SUITE_P(Pages, Docs, ::testing::ValuesIn(Pages()),
                         [](const auto& page) {
                           std::string name = page.param;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) {
                               c = '_';
                             }
                           }
                           return name;
                         });

TEST(DocsPages, HaveCommands) {
  EXPECT_GE(Commands(testing::ReadFile(FUCINA_SOURCE_DIR "/README.md")).size(),
            4U);
  EXPECT_GE(
      Commands(testing::ReadFile(FUCINA_SOURCE_DIR "/docs/command-line.md"))
          .size(),
      15U);
  EXPECT_GE(
      Commands(testing::ReadFile(FUCINA_SOURCE_DIR "/docs/constrained.md"))
          .size(),
      4U);
}

}  // namespace
}  // namespace fucina
