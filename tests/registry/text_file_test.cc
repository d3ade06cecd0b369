#include "registry/text_file.h"

#include <cerrno>
#include <ios>
#include <sstream>
#include <streambuf>
#include <string>

#include "gtest/gtest.h"

namespace fucina {
namespace {

// Gives some bytes and then fails as a file does that the system cannot read.
class BrokenBuffer : public std::streambuf {
 public:
  BrokenBuffer() { setg(text_, text_, text_ + sizeof(text_)); }

 protected:
  int_type underflow() override {
    errno = EIO;
    throw std::ios_base::failure("a text of the library");
  }

 private:
  char text_[3] = {'a', 'b', 'c'};
};

// Never ends.
class EndlessBuffer : public std::streambuf {
 public:
  std::size_t given = 0;

 protected:
  int_type underflow() override {
    given += sizeof(text_);
    setg(text_, text_, text_ + sizeof(text_));
    return 0;
  }

 private:
  char text_[4096] = {};
};

TEST(TextFile, IsReadWhole) {
  std::string text(200001, 'x');
  text[3] = '\0';
  std::istringstream in(text);
  EXPECT_EQ(*ReadAll(in, text.size()), text);
  std::istringstream nothing("");
  EXPECT_EQ(*ReadAll(nothing, 0), "");
}

TEST(TextFile, AReadErrorIsAnError) {
  BrokenBuffer buffer;
  std::istream in(&buffer);
  const auto text = ReadAll(in, 1000);
  EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(text.status().message(), "cannot be read: Input/output error");
}

TEST(TextFile, WithoutAnEndIsRefused) {
  EndlessBuffer buffer;
  std::istream in(&buffer);
  const auto text = ReadAll(in, std::size_t{1} << 20);
  EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(text.status().message(), "has more than 1.0 MiB");
  EXPECT_LT(buffer.given, std::size_t{2} << 20);
}

TEST(TextFile, ErrorsNameTheFile) {
  const auto absent = ReadTextFile("/no/such", 10);
  EXPECT_EQ(absent.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(absent.status().message(),
            "'/no/such' cannot be read: No such file or directory");
  const auto folder = ReadTextFile("/", 10);
  EXPECT_EQ(folder.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(folder.status().message(), "'/' cannot be read: Is a directory");
  const auto device = ReadTextFile("/dev/zero", std::size_t{1} << 20);
  EXPECT_EQ(device.status().message(), "'/dev/zero' has more than 1.0 MiB");
}

}  // namespace
}  // namespace fucina
