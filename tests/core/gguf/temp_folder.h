#ifndef FUCINA_TESTS_CORE_GGUF_TEMP_FOLDER_H_
#define FUCINA_TESTS_CORE_GGUF_TEMP_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "gtest/gtest.h"

namespace fucina {

// A folder of its own for one test, removed afterwards.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = ::testing::TempDir() + "fucina_gguf_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }

  // The path of `name` inside.
  std::string File(const std::string& name) const { return path_ + "/" + name; }

  // Writes `bytes` to a file and returns its path.
  std::string Put(const std::string& name, const std::string& bytes) const {
    std::ofstream file(File(name), std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    EXPECT_TRUE(file.good()) << name;
    return File(name);
  }

  // The names inside, sorted and joined with spaces.
  std::string List() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.insert(entry.path().filename().string());
    }
    std::string list;
    for (const std::string& name : names) list += name + " ";
    return list;
  }

 private:
  std::string path_;
};

inline std::string ReadWholeFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)),
                     std::istreambuf_iterator<char>());
}

}  // namespace fucina

#endif  // FUCINA_TESTS_CORE_GGUF_TEMP_FOLDER_H_
