// THIRD_PARTY.md names what the plugin links, in the versions of the lock file.

#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string>

#include "gtest/gtest.h"

namespace {

std::string Read(const std::string& path) {
  std::ifstream in(FUCINA_SOURCE_DIR "/plugins/llguidance/" + path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

TEST(ThirdParty, NamesTheCratesOfTheLockFile) {
  const std::string lock = Read("rust/Cargo.lock");
  const std::string list = Read("THIRD_PARTY.md");
  const std::regex package("name = \"([^\"]+)\"\nversion = \"([^\"]+)\"");
  std::multimap<std::string, std::string> versions;
  for (std::sregex_iterator it(lock.begin(), lock.end(), package), end;
       it != end; ++it) {
    versions.emplace((*it)[1], (*it)[2]);
  }
  const std::regex row("\\| \\[([^\\]]+)\\]\\([^)]*\\) \\| (\\S+) \\|");
  int rows = 0;
  for (std::sregex_iterator it(list.begin(), list.end(), row), end; it != end;
       ++it) {
    const auto [first, last] = versions.equal_range((*it)[1]);
    bool found = false;
    for (auto v = first; v != last; ++v) found |= v->second == (*it)[2];
    EXPECT_TRUE(found) << (*it)[1] << " " << (*it)[2];
    ++rows;
  }
  EXPECT_GT(rows, 25);
  EXPECT_NE(list.find("| [llguidance]"), std::string::npos);
}

}  // namespace
