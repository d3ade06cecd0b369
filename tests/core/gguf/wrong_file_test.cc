// Files that are no models at all: the usual suspects are named.

#include <string>
#include <vector>

#include "fucina/gguf/gguf_error.h"
#include "fucina/gguf/gguf_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/gguf/raw_gguf.h"

namespace fucina {
namespace {

using ::testing::HasSubstr;

struct Suspect {
  const char* name;
  std::string head;
  std::string guess;
};

class WrongFile : public ::testing::TestWithParam<Suspect> {};

TEST_P(WrongFile, IsNamed) {
  std::string bytes = GetParam().head;
  // Text stays text, binary formats go on as they like.
  bytes.resize(300,
               GetParam().head.find('\n') == std::string::npos ? '\x01' : ' ');
  const auto file = ParseRaw(bytes);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(FindGgufError(file.status()), GgufError::kBadMagic);
  EXPECT_THAT(std::string(file.status().message()),
              HasSubstr("not a GGUF file"));
  EXPECT_THAT(std::string(file.status().message()),
              HasSubstr(GetParam().guess));
}

INSTANTIATE_TEST_SUITE_P(
    UsualSuspects, WrongFile,
    ::testing::Values(
        Suspect{"Zip", "PK\x03\x04", "ZIP archive"},
        Suspect{"Gzip", "\x1f\x8b\x08", "gzip"},
        Suspect{"Zstandard", "\x28\xb5\x2f\xfd", "Zstandard"},
        Suspect{"Xz",
                std::string("\xfd"
                            "7zXZ\0",
                            6),
                "XZ archive"},
        Suspect{"Pickle", "\x80\x02}q", "pickle"},
        Suspect{"LfsPointer",
                "version https://git-lfs.github.com/spec/v1\noid sha256:12\n",
                "large-file pointer"},
        Suspect{"OtherPointer", "version https://example.org/spec\n",
                "large-file pointer"},
        Suspect{"WebPage", "<!DOCTYPE html>\n<html><body>404</body></html>\n",
                "web page"},
        Suspect{"WebPageAfterSpace", "\n  <html>\n", "web page"},
        Suspect{"Json", "{\"error\": \"Access denied\"}\n", "JSON"},
        Suspect{"Text", "Entry not found\n", "text file"},
        Suspect{"Safetensors",
                Raw<std::uint64_t>(5000) + "{\"__metadata__\":{}",
                "safetensors"},
        Suspect{"OldGgml", "lmgg", "old GGML"},
        Suspect{"OldGgjt", "tjgg", "old GGML"},
        Suspect{"OldGgmf", "fmgg", "old GGML"},
        Suspect{"OldAdapter", "algg", "GGLA adapter"},
        Suspect{"ReversedMagic", "FUGG", "big-endian"},
        Suspect{"Program",
                "\x7f"
                "ELF",
                "program"}),
    [](const auto& suspect_info) {
      return std::string(suspect_info.param.name);
    });

TEST(WrongFileBytes, ZeroesAreAnIncompleteDownload) {
  const auto file = ParseRaw(std::string(4096, '\0'));
  EXPECT_THAT(std::string(file.status().message()),
              HasSubstr("starts with zero bytes; the download is probably "
                        "incomplete"));
}

TEST(WrongFileBytes, ShortTextIsNamedToo) {
  const auto file = ParseRaw("Not Found");
  EXPECT_EQ(FindGgufError(file.status()), GgufError::kTruncated);
  EXPECT_THAT(std::string(file.status().message()),
              HasSubstr("9 bytes, expected at least 24; it looks like a text "
                        "file"));
}

TEST(WrongFileBytes, NothingIsGuessedFromNoise) {
  std::string noise = "\x01\x02\x03\x04";
  noise.resize(64, '\x05');
  const auto file = ParseRaw(noise);
  EXPECT_EQ(std::string(file.status().message()),
            "model.gguf: not a GGUF file: it starts with "
            "\"\\x01\\x02\\x03\\x04\", expected \"GGUF\"");
}

}  // namespace
}  // namespace fucina
