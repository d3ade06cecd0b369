#include "fucina/text/utf8_stream.h"

#include <cstdint>
#include <random>
#include <string>

#include "gtest/gtest.h"

namespace fucina {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";

// Valid UTF-8 by the definition, decoded the long way.
bool IsValid(absl::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const unsigned lead = static_cast<unsigned char>(text[i]);
    const int more = lead < 0x80           ? 0
                     : (lead >> 5) == 0x06 ? 1
                     : (lead >> 4) == 0x0E ? 2
                     : (lead >> 3) == 0x1E ? 3
                                           : -1;
    if (more < 0 || i + static_cast<std::size_t>(more) >= text.size()) {
      return false;
    }
    std::uint32_t c = more == 0 ? lead : lead & (0x3Fu >> more);
    for (int k = 1; k <= more; ++k) {
      const unsigned next =
          static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]);
      if ((next & 0xC0) != 0x80) return false;
      c = c << 6 | (next & 0x3F);
    }
    constexpr std::uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (c < kLeast[more] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) {
      return false;
    }
    i += static_cast<std::size_t>(more) + 1;
  }
  return true;
}

TEST(Utf8Stream, HoldsHalfACharacterAtEveryCut) {
  const std::string text = "a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80z";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    for (std::size_t second = cut; second <= text.size(); ++second) {
      Utf8Stream stream;
      std::string out;
      for (const std::string& part :
           {text.substr(0, cut), text.substr(cut, second - cut),
            text.substr(second)}) {
        const std::string shown = stream.Push(part);
        EXPECT_TRUE(IsValid(shown)) << cut << " " << second;
        out += shown;
      }
      EXPECT_EQ(out, text);
      EXPECT_EQ(stream.Finish(), "");
    }
  }
}

TEST(Utf8Stream, ByteByByteShowsEachCharacterWhenItIsComplete) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Push("\xF0"), "");
  EXPECT_EQ(stream.num_held(), 1);
  EXPECT_EQ(stream.Push("\x9F"), "");
  EXPECT_EQ(stream.Push("\x98"), "");
  EXPECT_EQ(stream.num_held(), 3);
  EXPECT_EQ(stream.Push("\x80"), "\xF0\x9F\x98\x80");
  EXPECT_EQ(stream.num_held(), 0);
}

TEST(Utf8Stream, BytesThatCannotBecomeACharacterAreNotHeld) {
  for (const char* bytes : {"\x80", "\xBF", "\xC0", "\xC1", "\xF5", "\xFF",
                            "\xE0\x80", "\xED\xA0", "\xF0\x80", "\xF4\x90"}) {
    Utf8Stream stream;
    EXPECT_EQ(stream.Push(bytes), bytes);
    EXPECT_EQ(stream.num_held(), 0);
  }
  Utf8Stream stream;
  EXPECT_EQ(stream.Push("\xF0\x9F"), "");
  EXPECT_EQ(stream.Push("x"), "\xF0\x9Fx");
}

TEST(Utf8Stream, FinishFlushesAndStartsAnew) {
  Utf8Stream keep;
  EXPECT_EQ(keep.Push("a\xE4\xB8"), "a");
  EXPECT_EQ(keep.Finish(), "\xE4\xB8");
  EXPECT_EQ(keep.Push("b"), "b");
  Utf8Stream replace(Utf8Stream::Invalid::kReplace);
  EXPECT_EQ(replace.Push("a\xE4\xB8"), "a");
  EXPECT_EQ(replace.Finish(), kReplacement);
  EXPECT_EQ(replace.Finish(), "");
}

// The table of section 3.9, "U+FFFD Substitution of Maximal Subparts".
TEST(ReplaceInvalidUtf8, OneReplacementForEachMaximalSubpart) {
  const std::string r = kReplacement;
  EXPECT_EQ(ReplaceInvalidUtf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(ReplaceInvalidUtf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"),
            r + r + r + r + "A");
}

TEST(FirstInvalidUtf8, NamesTheOffset) {
  EXPECT_EQ(FirstInvalidUtf8("abc"), 3u);
  EXPECT_EQ(FirstInvalidUtf8("a\xC3\xA9\xFFz"), 3u);
  EXPECT_EQ(FirstInvalidUtf8("ab\xE4\xB8"), 2u);
  EXPECT_EQ(FirstInvalidUtf8(""), 0u);
}

TEST(Utf8Stream, RandomBytesInRandomPortions) {
  std::mt19937 random(1);
  const std::string alphabet =
      "a\x80\xBF\xC3\xA9\xE0\xE4\xB8\xAD\xED\xA0\xF0\x9F\x98\x80\xF4\x90\xFF";
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (unsigned i = random() % 40; i > 0; --i) {
      text += alphabet[random() % alphabet.size()];
    }
    Utf8Stream keep;
    Utf8Stream replace(Utf8Stream::Invalid::kReplace);
    std::string kept;
    std::string replaced;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t n = 1 + random() % 4;
      kept += keep.Push(absl::string_view(text).substr(at, n));
      const std::string shown =
          replace.Push(absl::string_view(text).substr(at, n));
      EXPECT_TRUE(IsValid(shown));
      replaced += shown;
      EXPECT_LE(keep.num_held(), 3);
      at += n;
    }
    EXPECT_EQ(kept + keep.Finish(), text);
    EXPECT_EQ(replaced + replace.Finish(), ReplaceInvalidUtf8(text));
    EXPECT_TRUE(IsValid(ReplaceInvalidUtf8(text)));
    EXPECT_EQ(FirstInvalidUtf8(text) == text.size(), IsValid(text));
  }
}

}  // namespace
}  // namespace fucina
