// Opening by path: names of every kind, permissions, files beyond 4 GiB, files
// that change, and what opening costs.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "fucina/gguf/gguf_error.h"
#include "fucina/gguf/gguf_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/gguf/raw_gguf.h"
#include "tests/core/gguf/temp_folder.h"
#include "tests/core/gguf/worked_example.h"

namespace fucina {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// LOAD-21: names that people have.
TEST(OpenPath, NamesOfEveryKindOpenAndPrintSafely) {
  TempFolder folder;
  const struct {
    std::string name;
    std::string printed;
  } cases[] = {
      {"plain.gguf", "plain.gguf"},
      {"with space.gguf", "with space.gguf"},
      {"\xf0\x9f\xa6\x99 lama.gguf", "\xf0\x9f\xa6\x99 lama.gguf"},
      {"cafe\xcc\x81.gguf", "cafe\xcc\x81.gguf"},
      {"\xd0\xbc\xd0\xbe\xd0\xb4\xd0\xb5\xd0\xbb\xd1\x8c.gguf",
       "\xd0\xbc\xd0\xbe\xd0\xb4\xd0\xb5\xd0\xbb\xd1\x8c.gguf"},
      {"two\nlines.gguf", "two\\nlines.gguf"},
      {"\x1b[31mred.gguf", "\\x1b[31mred.gguf"},
      {"right\xe2\x80\xaeleft.gguf", "right\\u{202e}left.gguf"},
      {"latin1\xe9.gguf", "latin1\\xe9.gguf"},
      {"-rf.gguf", "-rf.gguf"},
      {"%s%n.gguf", "%s%n.gguf"},
  };
  for (const auto& item : cases) {
    SCOPED_TRACE(item.printed);
    const std::string path = folder.Put(item.name, WorkedExample());
    const auto file = GgufFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ((*file)->display_name(), folder.File(item.printed));
    EXPECT_EQ((*file)->part_name(0), folder.File(item.printed));

    folder.Put(item.name, "Not Found");
    const auto broken = GgufFile::Open(path);
    EXPECT_THAT(std::string(broken.status().message()),
                StartsWith(folder.File(item.printed) + ": "));
  }
}

TEST(OpenPath, ALeadingDashIsNoOption) {
  TempFolder folder;
  folder.Put("-model.gguf", WorkedExample());
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const auto file = GgufFile::Open("-model.gguf");
  std::filesystem::current_path(before);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->display_name(), "-model.gguf");
}

TEST(OpenPath, WhatIsNoModelFileIsSaid) {
  TempFolder folder;
  const auto missing = GgufFile::Open(folder.File("absent.gguf"));
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(FindGgufError(missing.status()), GgufError::kIo);
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("absent.gguf: cannot open: No such file"));

  const auto empty = GgufFile::Open(folder.Put("empty.gguf", ""));
  EXPECT_EQ(FindGgufError(empty.status()), GgufError::kTruncated);
  EXPECT_THAT(std::string(empty.status().message()),
              HasSubstr("empty.gguf: the file is empty"));

  const std::string pipe = folder.File("pipe.gguf");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto from_pipe = GgufFile::Open(pipe);  // must not wait for a writer
  EXPECT_THAT(std::string(from_pipe.status().message()),
              HasSubstr("is a pipe, expected a regular file"));

  const auto device = GgufFile::Open("/dev/null");
  EXPECT_THAT(std::string(device.status().message()),
              HasSubstr("is a device, expected a regular file"));

  const auto nameless = GgufFile::Open("");
  EXPECT_THAT(std::string(nameless.status().message()),
              HasSubstr("expected a path"));
  const auto zero = GgufFile::Open(absl::string_view("a\0b", 3));
  EXPECT_THAT(std::string(zero.status().message()), HasSubstr("'a\\x00b'"));

  const auto below = GgufFile::Open(folder.File("empty.gguf") + "/x.gguf");
  EXPECT_EQ(below.status().code(), absl::StatusCode::kNotFound);

  std::filesystem::create_symlink("loop.gguf", folder.File("loop.gguf"));
  EXPECT_EQ(FindGgufError(GgufFile::Open(folder.File("loop.gguf")).status()),
            GgufError::kIo);
}

// LOAD-23. The system lets its administrator read everything, so as root the
// same call is made in a child that gave up its rights.
TEST(OpenPath, WithoutPermissionTheErrorSaysSo) {
  TempFolder folder;
  const std::string path = folder.Put("secret.gguf", WorkedExample());
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  EXPECT_EXIT(
      {
        constexpr uid_t kNobody = 65534;
        if (getuid() == 0 && setuid(kNobody) != 0) _exit(2);
        const auto file = GgufFile::Open(path);
        fprintf(stderr, "%s\n", file.status().ToString().c_str());
        _exit(file.status().code() == absl::StatusCode::kPermissionDenied ? 0
                                                                          : 1);
      },
      ::testing::ExitedWithCode(0),
      "PERMISSION_DENIED: .*secret.gguf: cannot open: Permission denied");
}

// The access mode of this process's open descriptor of `path`, -1 without one.
int AccessModeOf(const std::string& path) {
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the descriptor that lists the folder
    if (std::filesystem::read_symlink(entry.path(), gone) != path) continue;
    return fcntl(std::stoi(entry.path().filename()), F_GETFL) & O_ACCMODE;
  }
  return -1;
}

// What /proc says of the mapping of `path`, such as "r--s".
std::string ProtectionOf(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(path) == std::string::npos) continue;
    return line.substr(line.find(' ') + 1, 4);
  }
  return "";
}

// LOAD-23, a file on a disk where nothing can be written: neither the file nor
// its folder, by a user who owns neither. Nothing asks to write.
TEST(OpenPath, NothingNeedsToBeWritten) {
  TempFolder folder;
  const std::string path = folder.Put("read_only.gguf", WorkedExample());
  ASSERT_EQ(chmod(path.c_str(), 0444), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  EXPECT_EXIT(
      {
        constexpr uid_t kNobody = 65534;
        if (getuid() == 0 && setuid(kNobody) != 0) _exit(2);
        if (access(path.c_str(), W_OK) == 0) _exit(3);
        if (access(folder.path().c_str(), W_OK) == 0) _exit(4);
        const auto file = GgufFile::Open(path);
        if (!file.ok()) _exit(5);
        const GgufTensorInfo& tensor = (*file)->tensors()[0];
        if (GgufFile::View(tensor).row_f32(0)[1] != 2.0f) _exit(6);
        std::vector<std::byte> bytes(tensor.size_bytes);
        if (!(*file)->ReadAt(tensor, 0, bytes).ok()) _exit(7);
        if (AccessModeOf(path) != O_RDONLY) _exit(8);
        const std::string protection = ProtectionOf(path);
        if (protection.substr(0, 3) != "r--") _exit(9);
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
}

// Writes `head`, then makes the file `size` bytes long without using the disk.
std::string PutSparse(const TempFolder& folder, const std::string& name,
                      const std::string& head, std::uint64_t size,
                      std::uint64_t at, const std::string& bytes) {
  const std::string path = folder.Put(name, head);
  EXPECT_EQ(truncate(path.c_str(), static_cast<off_t>(size)), 0);
  const int fd = open(path.c_str(), O_WRONLY);
  EXPECT_EQ(pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at)),
            static_cast<ssize_t>(bytes.size()));
  close(fd);
  return path;
}

// LOAD-22: positions and sizes past 32 bits.
TEST(BigFiles, ATensorAfterFiveGiBHasTheRightBytes) {
  TempFolder folder;
  const std::string head = RawFile{
      .infos = {RawTensor{.name = "first", .dims = {5 * kGiB / 4}, .offset = 0}
                    .Bytes(),
                RawTensor{.name = "late", .dims = {2}, .offset = 5 * kGiB}
                    .Bytes()}}.Bytes();
  const std::string path =
      PutSparse(folder, "big.gguf", head, head.size() + 5 * kGiB + 8,
                head.size() + 5 * kGiB, Raw(1.5f) + Raw(-2.5f));
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const GgufTensorInfo* late = (*file)->FindTensor("late");
  ASSERT_NE(late, nullptr);
  EXPECT_EQ(late->file_offset, head.size() + 5 * kGiB);
  const Tensor view = GgufFile::View(*late);
  EXPECT_EQ(view.row_f32(0)[0], 1.5f);
  EXPECT_EQ(view.row_f32(0)[1], -2.5f);
  std::vector<float> read(1);
  ASSERT_TRUE(
      (*file)->ReadAt(*late, 4, std::as_writable_bytes(std::span(read))).ok());
  EXPECT_EQ(read[0], -2.5f);
  // First one is larger than 4 GiB: read its last element both ways.
  const GgufTensorInfo* first = (*file)->FindTensor("first");
  EXPECT_EQ(first->size_bytes, 5 * kGiB);
  ASSERT_TRUE((*file)
                  ->ReadAt(*first, first->size_bytes - 4,
                           std::as_writable_bytes(std::span(read)))
                  .ok());
  EXPECT_EQ(read[0], 0.0f);
  (*file)->Release({first->data, first->size_bytes});
}

TEST(BigFiles, MoreThanTwoBillionElements) {
  TempFolder folder;
  const std::uint64_t rows = (std::uint64_t{1} << 31) / 32 + 1;
  const std::string head = RawFile{
      .infos = {RawTensor{.name = "blocks", .dims = {32, rows}, .type = 8}
                    .Bytes()}}.Bytes();
  const std::uint64_t size = rows * 34;
  const std::string last_row(34, '\x07');
  const std::string path =
      PutSparse(folder, "many.gguf", head, head.size() + size,
                head.size() + size - 34, last_row);
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const Tensor view = GgufFile::View((*file)->tensors()[0]);
  EXPECT_EQ(view.num_elements(), (std::int64_t{1} << 31) + 32);
  EXPECT_EQ(std::memcmp(view.row_bytes(static_cast<std::int64_t>(rows) - 1),
                        last_row.data(), 34),
            0);
}

TEST(BigFiles, ASizeErrorIsReportedAsSuch) {
  TempFolder folder;
  const std::string head =
      RawFile{
          .infos = {RawTensor{.name = "huge", .dims = {5 * kGiB / 4}}.Bytes()}}
          .Bytes();
  const std::string path = PutSparse(folder, "cut.gguf", head,
                                     head.size() + 4 * kGiB, head.size(), "x");
  const auto file = GgufFile::Open(path);
  EXPECT_EQ(FindGgufError(file.status()), GgufError::kOffsetOutOfRange);
  EXPECT_THAT(std::string(file.status().message()),
              HasSubstr("tensor 'huge': offset 0 plus size 5368709120 is past "
                        "the 4294967296 bytes of the data section; 1073741824 "
                        "bytes are missing at the end of the file"));
}

// LOAD-10 on a file, where a mistake would be a bus error later.
TEST(CutFiles, AreRefusedWithTheNumberOfMissingBytes) {
  TempFolder folder;
  const std::string whole =
      RawFile{
          .key_values = {RawKeyValue("general.architecture", kRawString,
                                     RawString("qwen3"))},
          .infos = {RawTensor{.name = "first", .dims = {4096}}.Bytes(),
                    RawTensor{.name = "last", .dims = {4096}, .offset = 16384}
                        .Bytes()},
          .data = std::string(32768, '\x11')}
          .Bytes();
  for (const std::size_t size : {whole.size() / 10, whole.size() / 2,
                                 whole.size() - 8192, whole.size() - 1}) {
    const std::string path = folder.Put("cut.gguf", whole.substr(0, size));
    const auto file = GgufFile::Open(path);
    EXPECT_EQ(FindGgufError(file.status()), GgufError::kOffsetOutOfRange);
    EXPECT_THAT(std::string(file.status().message()),
                HasSubstr(std::to_string(whole.size() - size) +
                          " bytes are missing at the end of the file; the "
                          "download is probably incomplete"));
  }
}

TEST(ChangingFiles, AShrunkFileIsNoticed) {
  TempFolder folder;
  const std::string bytes =
      FileWithTensor({.name = "a", .dims = {16384}}, 65536);
  const std::string path = folder.Put("shrinks.gguf", bytes);
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->CheckUnchanged().ok());
  ASSERT_EQ(truncate(path.c_str(), 4096), 0);

  const absl::Status changed = (*file)->CheckUnchanged();
  EXPECT_EQ(changed.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(
      std::string(changed.message()),
      HasSubstr("shrinks.gguf: the file had " + std::to_string(bytes.size()) +
                " bytes when it was opened and has 4096 now"));

  std::vector<std::byte> buffer(65536);
  const absl::Status read = (*file)->ReadAt((*file)->tensors()[0], 0, buffer);
  EXPECT_EQ(read.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(read.message()), HasSubstr("tensor 'a'"));
}

TEST(ChangingFiles, AReplacedFileKeepsItsOldContent) {
  TempFolder folder;
  const std::string path = folder.Put("model.gguf", WorkedExample());
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok());
  folder.Put("new.gguf", std::string(10, 'x'));
  std::filesystem::rename(folder.File("new.gguf"), path);
  EXPECT_TRUE((*file)->CheckUnchanged().ok());
  EXPECT_EQ(GgufFile::View((*file)->tensors()[0]).row_f32(0)[1], 2.0f);
}

// Opening reads the directory and nothing of the weights: a terabyte opens as
// quickly as a kilobyte.
TEST(OpeningCost, DoesNotDependOnTheWeights) {
  TempFolder folder;
  const std::uint64_t size = 1024 * kGiB;
  const std::string head =
      RawFile{.infos = {RawTensor{.name = "all", .dims = {size / 4}}.Bytes()}}
          .Bytes();
  const std::string path = PutSparse(folder, "terabyte.gguf", head,
                                     head.size() + size, head.size(), "x");
  struct rusage before = {}, after = {};
  getrusage(RUSAGE_SELF, &before);
  const auto begin = std::chrono::steady_clock::now();
  const auto file = GgufFile::Open(path);
  const auto elapsed = std::chrono::steady_clock::now() - begin;
  getrusage(RUSAGE_SELF, &after);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_LT(elapsed, std::chrono::seconds(1));
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 8 * 1024);  // KiB
}

}  // namespace
}  // namespace fucina
