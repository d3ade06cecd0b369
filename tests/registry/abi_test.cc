// The layout table of fucina/plugin/abi.h is complete and measures what it
// says.

#include "fucina/plugin/abi.h"

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fucina {
namespace {

namespace fs = std::filesystem;

std::set<std::string> TableTypes() {
  std::set<std::string> types;
  for (const LayoutEntry& entry : kLayoutTable) {
    const std::string name = entry.type;
    const std::size_t colon = name.rfind(':');
    types.insert(colon == std::string::npos ? name : name.substr(colon + 1));
  }
  return types;
}

// Headers that a plugin may include, by the table of docs/architecture.md.
TEST(Abi, EveryTypeOfAPluginsHeadersIsInTheTable) {
  const fs::path root = FUCINA_SOURCE_DIR;
  const std::set<std::string> table = TableTypes();
  // At the start of a line: types inside other types are part of them.
  const std::regex definition(
      R"(^(?:struct|class|enum class) (?:FUCINA_API )?(\w+)(?: final)?(?: :[^:].*)? \{)");
  int found = 0;
  for (const char* room :
       {"core/include/fucina/contract", "core/include/fucina/tensor",
        "core/include/fucina/parallel", "core/include/fucina/gguf",
        "core/include/fucina/ops", "core/include/fucina/model",
        "core/include/fucina/runner", "registry/include/fucina/plugin"}) {
    for (const auto& entry : fs::directory_iterator(root / room)) {
      const std::string file = entry.path().filename().string();
      // Block structs have the bytes of files, which their header asserts; the
      // manifest and the table guard themselves.
      if (file == "blocks.h" || file == "manifest.h" || file == "abi.h") {
        continue;
      }
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) {
        std::smatch match;
        if (!std::regex_search(line, match, definition)) continue;
        ++found;
        EXPECT_TRUE(table.count(match[1]))
            << entry.path() << ": add FUCINA_LAYOUT_(" << match[1]
            << ") to kLayoutTable in fucina/plugin/abi.h";
      }
    }
  }
  EXPECT_GT(found, 60) << "the scan found too little to mean much";
}

TEST(Abi, NoTypeIsMeasuredTwice) {
  std::set<std::string> names;
  for (const LayoutEntry& entry : kLayoutTable) {
    EXPECT_TRUE(names.insert(entry.type).second) << entry.type;
    EXPECT_GT(entry.size, 0U) << entry.type;
    EXPECT_EQ(entry.size % entry.alignment, 0U) << entry.type;
  }
}

TEST(Abi, TheTagNamesEachField) {
  const std::string tag = FUCINA_ABI_TAG;
  EXPECT_THAT(tag, ::testing::MatchesRegex(
                       "core=[0-9]+.[0-9]+;revision=[0-9a-f]*;"
                       "stdlib=lib[^;]+;cxx=20[0-9]+L;abseil=[^;,]+,[^;,]+"));
}

}  // namespace
}  // namespace fucina
