#ifndef FUCINA_TESTS_REGISTRY_SCRATCH_DIR_H_
#define FUCINA_TESTS_REGISTRY_SCRATCH_DIR_H_

// A private directory for one test, removed at its end, and the fixture
// plugins that the build made.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"

namespace fucina {

class ScratchDir {
 public:
  ScratchDir() {
    std::string name = ::testing::TempDir() + "fucina-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no scratch dir";
    path_ = std::filesystem::canonical(name).string();
  }
  ~ScratchDir() {
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
    std::filesystem::remove_all(path_);
  }
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(File(name), std::ios::binary) << bytes;
    std::filesystem::permissions(File(name),
                                 std::filesystem::perms::owner_read |
                                     std::filesystem::perms::owner_write |
                                     std::filesystem::perms::group_read);
    return File(name);
  }

 private:
  std::string path_;
};

inline std::string FixturePlugin(const std::string& name) {
  return std::string(FUCINA_BINARY_DIR) + "/tests/fixtures/" + name +
         "/libfucina_" + name + ".so";
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace fucina

#endif  // FUCINA_TESTS_REGISTRY_SCRATCH_DIR_H_
