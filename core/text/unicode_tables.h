#ifndef FUCINA_CORE_TEXT_UNICODE_TABLES_H_
#define FUCINA_CORE_TEXT_UNICODE_TABLES_H_

// The classes of code points that pre-tokenizers split by.

#include <cstdint>

namespace fucina::text {

// The general categories L, N, M and P, and the White_Space property, which
// meets none of them. CR and LF are kSpace.
enum class CharClass : std::uint8_t {
  kOther = 0,  // symbols, controls, unassigned
  kLetter = 1,
  kNumber = 2,
  kMark = 3,
  kPunctuation = 4,
  kSpace = 5,
};

extern const char kUnicodeVersion[];
// One page number for each 256 code points.
extern const std::uint8_t kUnicodePageIndex[0x110000 / 256];
// Sixteen classes to a word, four bits each, lowest code point lowest.
extern const std::uint64_t kUnicodePages[];

// REQUIRES: code_point <= 0x10FFFF.
inline CharClass ClassOf(char32_t code_point) {
  const unsigned page = kUnicodePageIndex[code_point >> 8];
  const std::uint64_t word =
      kUnicodePages[page * 16 + ((code_point >> 4) & 15)];
  return static_cast<CharClass>((word >> (4 * (code_point & 15))) & 15);
}

}  // namespace fucina::text

#endif  // FUCINA_CORE_TEXT_UNICODE_TABLES_H_
