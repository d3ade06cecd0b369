#include "registry/plugin_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "registry/plugin_loader.h"
#include "tests/registry/scratch_dir.h"

namespace fucina {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(PluginPath, SplitsAtColons) {
  EXPECT_THAT(*SplitPluginPath("/a:/b c"), ElementsAre("/a", "/b c"));
  EXPECT_TRUE(SplitPluginPath("")->empty());
}

TEST(PluginPath, RefusesRelativeAndEmptyElements) {
  for (const std::string value :
       {"plugins", "/a:plugins", "/a::/b", "/a:", ":/a", ".", "~/plugins"}) {
    const auto split = SplitPluginPath(value);
    EXPECT_EQ(split.status().code(), absl::StatusCode::kInvalidArgument)
        << value;
  }
  EXPECT_THAT(std::string(SplitPluginPath("/a:plugins").status().message()),
              StartsWith("FUCINA_PLUGIN_PATH: 'plugins' is not an absolute "
                         "path"));
}

TEST(PluginPath, FindsTheDirectoryBesideTheCore) {
  const auto core = CoreLibraryPath();
  ASSERT_TRUE(core.ok()) << core.status();
  EXPECT_THAT(fs::path(*core).filename().string(), StartsWith("libfucina.so"));
  unsetenv(kPluginPathVariable);
  const auto directories = DefaultPluginDirectories();
  ASSERT_TRUE(directories.ok());
  ASSERT_EQ(directories->size(), 1U);
  EXPECT_EQ((*directories)[0].path,
            (fs::path(*core).parent_path() / "fucina/plugins").string());
}

TEST(PluginPath, TheVariableComesFirst) {
  setenv(kPluginPathVariable, "/one:/two", 1);
  const auto directories = DefaultPluginDirectories();
  unsetenv(kPluginPathVariable);
  ASSERT_TRUE(directories.ok());
  ASSERT_EQ(directories->size(), 3U);
  EXPECT_EQ((*directories)[0].path, "/one");
  EXPECT_EQ((*directories)[1].path, "/two");
}

TEST(PluginPath, NamesComeFromFiles) {
  EXPECT_EQ(PluginNameOf("libfucina_qwen3.so"), "qwen3");
  EXPECT_EQ(PluginNameOf("libfucina.so"), std::nullopt);
  EXPECT_EQ(PluginNameOf("libfucina_.so"), std::nullopt);
  EXPECT_EQ(PluginNameOf("libfucina_a.so.1"), std::nullopt);
  EXPECT_EQ(PluginNameOf("libother_a.so"), std::nullopt);
}

TEST(PluginPath, MissingFileIsNotFound) {
  const ScratchDir dir;
  const auto file = TrustedPluginFile(dir.File("libfucina_a.so"));
  EXPECT_EQ(file.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(file.status().message(),
            dir.File("libfucina_a.so") + ": no such file");
}

TEST(PluginPath, RefusesAWorldWritableFile) {
  const ScratchDir dir;
  const std::string path = dir.Write("libfucina_a.so", "x");
  ASSERT_TRUE(TrustedPluginFile(path).ok());
  chmod(path.c_str(), 0666);
  const auto file = TrustedPluginFile(path);
  EXPECT_EQ(file.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(file.status().message()),
              StartsWith(path + ": the file is world-writable"));
}

TEST(PluginPath, GroupWritableIsAllowed) {
  const ScratchDir dir;
  const std::string path = dir.Write("libfucina_a.so", "x");
  chmod(path.c_str(), 0664);
  chmod(dir.path().c_str(), 0775);
  EXPECT_TRUE(TrustedPluginFile(path).ok());
}

TEST(PluginPath, RefusesAWorldWritableDirectory) {
  const ScratchDir dir;
  const std::string path = dir.Write("libfucina_a.so", "x");
  for (const mode_t mode : {0777, 01777}) {
    chmod(dir.path().c_str(), mode);
    const auto file = TrustedPluginFile(path);
    EXPECT_EQ(file.status().code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(std::string(file.status().message()),
                StartsWith(path + ": its directory is world-writable"));
  }
}

TEST(PluginPath, JudgesTheTargetOfALinkAndTheDirectoryOfTheLink) {
  const ScratchDir safe;
  const ScratchDir open;
  const std::string target = safe.Write("libfucina_a.so", "x");
  const std::string link = open.File("libfucina_b.so");
  fs::create_symlink(target, link);
  // Resolved first: the result is the target, by its own name.
  ASSERT_TRUE(TrustedPluginFile(link).ok());
  EXPECT_EQ(*TrustedPluginFile(link), fs::canonical(target).string());
  // Anybody could have planted the link.
  chmod(open.path().c_str(), 0777);
  EXPECT_EQ(TrustedPluginFile(link).status().code(),
            absl::StatusCode::kPermissionDenied);
  chmod(open.path().c_str(), 0700);
  // The target is judged.
  chmod(target.c_str(), 0666);
  EXPECT_EQ(TrustedPluginFile(link).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST(PluginPath, RefusesLinksToOtherThings) {
  const ScratchDir dir;
  fs::create_symlink(dir.Write("notes.txt", "x"), dir.File("libfucina_t.so"));
  EXPECT_THAT(
      std::string(
          TrustedPluginFile(dir.File("libfucina_t.so")).status().message()),
      HasSubstr("notes.txt: not called libfucina_<name>.so"));
  fs::create_symlink("nowhere", dir.File("libfucina_n.so"));
  EXPECT_EQ(TrustedPluginFile(dir.File("libfucina_n.so")).status().code(),
            absl::StatusCode::kNotFound);
  fs::create_symlink(dir.File("libfucina_l.so"), dir.File("libfucina_l.so"));
  EXPECT_FALSE(TrustedPluginFile(dir.File("libfucina_l.so")).ok());
  fs::create_directory(dir.File("libfucina_d.so"));
  EXPECT_THAT(
      std::string(
          TrustedPluginFile(dir.File("libfucina_d.so")).status().message()),
      HasSubstr("libfucina_d.so: not a regular file"));
  ASSERT_EQ(mkfifo(dir.File("libfucina_f.so").c_str(), 0600), 0);
  EXPECT_FALSE(TrustedPluginFile(dir.File("libfucina_f.so")).ok());
}

TEST(PluginPath, ScansNamesOnlyAndNotBelow) {
  const ScratchDir dir;
  dir.Write("libfucina_b.so", "x");
  dir.Write("libfucina_a.so", "x");
  dir.Write("libother.so", "x");
  dir.Write("README", "x");
  fs::create_directory(dir.File("below"));
  dir.Write("below/libfucina_c.so", "x");
  EXPECT_THAT(
      ScanPluginDirectory(dir.path()).files,
      ElementsAre(dir.File("libfucina_a.so"), dir.File("libfucina_b.so")));
  EXPECT_EQ(ScanPluginDirectory(dir.File("absent")).note, "absent");
  EXPECT_EQ(ScanPluginDirectory(dir.File("below/..")).note, "");
}

// --- the format check --------------------------------------------------------

class PluginFormat : public ::testing::Test {
 protected:
  std::string Message(const std::string& bytes) {
    const std::string path = dir_.Write("libfucina_x.so", bytes);
    const absl::Status status = CheckPluginFormat(path);
    EXPECT_EQ(status.ok() ? absl::StatusCode::kInvalidArgument : status.code(),
              absl::StatusCode::kInvalidArgument);
    std::string message(status.message());
    if (!status.ok()) {
      EXPECT_THAT(message, StartsWith(path + ": "));
      message.erase(0, path.size() + 2);
    }
    return message;
  }

  const std::string good_ = ReadFile(FixturePlugin("sample"));
  ScratchDir dir_;
};

TEST_F(PluginFormat, AcceptsAPlugin) { EXPECT_EQ(Message(good_), ""); }

TEST_F(PluginFormat, RefusesTextEmptyAndOtherFiles) {
  EXPECT_EQ(Message(""), "not a complete shared library: the file is empty");
  EXPECT_EQ(Message("#!/bin/sh\necho this is a script, and long enough to hold "
                    "an ELF header of sixty-four bytes\n"),
            "not a complete shared library: no ELF header");
  EXPECT_EQ(Message("\x7f"
                    "ELF"),
            "not a complete shared library: no ELF header");
}

TEST_F(PluginFormat, RefusesEveryTruncation) {
  for (std::size_t size = 0; size < good_.size();
       size += size < 1024 ? 61 : 9973) {
    EXPECT_THAT(Message(good_.substr(0, size)),
                StartsWith("not a complete shared library: "))
        << size;
  }
  EXPECT_NE(Message(good_.substr(0, good_.size() - 1)), "");
}

TEST_F(PluginFormat, RefusesAnotherProcessor) {
  std::string bytes = good_;
  bytes[4] = 1;  // 32-bit
  EXPECT_EQ(Message(bytes),
            "not a complete shared library: built for another processor");
}

TEST_F(PluginFormat, RefusesALibraryThatIsNoPlugin) {
  EXPECT_THAT(Message(ReadFile(FixturePlugin("no_manifest"))),
              StartsWith("not a fucina plugin"));
}

// Damage to any header byte gives a verdict, never a crash.
TEST_F(PluginFormat, SurvivesDamagedHeaders) {
  const std::string path = dir_.Write("libfucina_x.so", good_);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  int refused = 0;
  for (std::size_t at = 0; at < 64 + 8 * 56; ++at) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(good_[at] ^ flip));
      file.flush();
      if (!CheckPluginFormat(path).ok()) ++refused;
    }
    file.seekp(static_cast<std::streamoff>(at));
    file.put(good_[at]);
  }
  file.flush();
  EXPECT_GT(refused, 100);
  EXPECT_TRUE(CheckPluginFormat(path).ok());
}

}  // namespace
}  // namespace fucina
