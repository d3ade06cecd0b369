#include "registry/text_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace fucina {
namespace {

TEST(TextFile, IsReadWhole) {
  const std::string path = ::testing::TempDir() + "/text_file_test";
  for (const std::size_t size : {0, 1, 1 << 20, 2500001}) {
    std::string text(size, 'x');
    if (size > 3) text[3] = '\0';
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(*ReadTextFile(path, std::size_t{3} << 20), text);
  }
  unlink(path.c_str());
}

TEST(TextFile, APipeIsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "two", 3), 3);
  ASSERT_EQ(write(ends[1], " parts", 6), 6);
  close(ends[1]);
  EXPECT_EQ(*ReadOpenFile(ends[0], "it", 100), "two parts");
  close(ends[0]);
  const auto closed = ReadOpenFile(ends[0], "it", 100);
  EXPECT_EQ(closed.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(closed.status().message(),
            "it cannot be read: Bad file descriptor");
}

TEST(TextFile, WithoutAnEndIsRefused) {
  rusage before;
  getrusage(RUSAGE_SELF, &before);
  const auto device = ReadTextFile("/dev/zero", std::size_t{4} << 20);
  EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(device.status().message(), "'/dev/zero' has more than 4 MiB");
  rusage after;
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 * 1024);
}

TEST(TextFile, ErrorsNameTheFile) {
  const auto absent = ReadTextFile("/no/such", 10);
  EXPECT_EQ(absent.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(absent.status().message(),
            "'/no/such' cannot be read: No such file or directory");
  const auto folder = ReadTextFile("/", 10);
  EXPECT_EQ(folder.status().message(), "'/' cannot be read: Is a directory");
}

}  // namespace
}  // namespace fucina
