#include "fucina/diag/printable.h"

#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace fucina {
namespace {

TEST(Printable, LeavesReadableTextAlone) {
  EXPECT_EQ(Printable("modèle 🦉 файл.gguf"),
            "modèle 🦉 файл.gguf");
  EXPECT_EQ(Printable(""), "");
}

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(Printable("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(Printable(absl::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Printable("\x7f"), "\\x7f");
  // Right-to-left override, line separator.
  EXPECT_EQ(Printable("a\u202Eb"), "a\\u{202e}b");
  EXPECT_EQ(Printable("a\u2028b"), "a\\u{2028}b");
}

TEST(Printable, EscapesBytesThatAreNoText) {
  EXPECT_EQ(Printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(Printable("caf\xe9"), "caf\\xe9");
  EXPECT_EQ(Printable("\xe2\x82"), "\\xe2\\x82");
}

TEST(Printable, CutsBetweenCharacters) {
  const std::string text = Printable(std::string(50, 'x') + "🦉🦉", 55);
  EXPECT_LE(text.size(), 55U + 3U);
  EXPECT_EQ(text.substr(text.size() - 3), "...");
  EXPECT_EQ(text.find('\\'), std::string::npos);
}

}  // namespace
}  // namespace fucina
