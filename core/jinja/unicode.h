#ifndef FUCINA_JINJA_UNICODE_H_
#define FUCINA_JINJA_UNICODE_H_

// Characters as Python's str sees them: code points, white space, case. Bytes
// that are no valid UTF-8 count as one character each and are left as they are.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace fucina::jinja {

struct CharRange {
  std::uint32_t first, last;
};
struct CaseRange {
  std::uint32_t first, last;
  std::int32_t delta;
  std::uint32_t stride;
};
struct SpecialCase {
  std::uint32_t from;
  std::uint32_t to[3];  // padded with zeros
};

// A decoded character. `code` is kInvalidByte + the byte where the text is not
// valid UTF-8; such characters have no properties.
inline constexpr std::uint32_t kInvalidByte = 0x80000000;
struct Char {
  std::uint32_t code = 0;
  std::size_t size = 1;  // bytes
};

// The character that starts at `at`. REQUIRES: at < text.size().
Char DecodeChar(absl::string_view text, std::size_t at);
// The character that ends before `end`. REQUIRES: 0 < end <= text.size().
Char DecodeCharBefore(absl::string_view text, std::size_t end);
// Appends UTF-8, or the byte itself of an invalid one.
void AppendChar(std::uint32_t code, std::string* out);
std::size_t CountChars(absl::string_view text);

bool IsSpace(std::uint32_t code);
bool IsPrintable(std::uint32_t code);
bool IsUpper(std::uint32_t code);
bool IsLower(std::uint32_t code);
bool IsTitle(std::uint32_t code);  // title case and not upper case
bool IsCased(std::uint32_t code);
bool IsCaseIgnorable(std::uint32_t code);
bool IsAlpha(std::uint32_t code);
bool IsDecimal(std::uint32_t code);
bool IsDigit(std::uint32_t code);
bool IsNumeric(std::uint32_t code);

// Full mappings: up to three characters. The final sigma is the caller's.
std::string ToUpper(std::uint32_t code);
std::string ToLower(std::uint32_t code);
std::string ToTitle(std::uint32_t code);

// Generated; each table is sorted.
#define FUCINA_JINJA_TABLE(Type, name) \
  extern const Type name[];            \
  extern const std::size_t name##Size;
FUCINA_JINJA_TABLE(CharRange, kSpace)
FUCINA_JINJA_TABLE(CharRange, kNotPrintable)
FUCINA_JINJA_TABLE(CharRange, kUppercase)
FUCINA_JINJA_TABLE(CharRange, kLowercase)
FUCINA_JINJA_TABLE(CharRange, kTitlecase)
FUCINA_JINJA_TABLE(CharRange, kCaseIgnorable)
FUCINA_JINJA_TABLE(CharRange, kAlpha)
FUCINA_JINJA_TABLE(CharRange, kDecimal)
FUCINA_JINJA_TABLE(CharRange, kDigit)
FUCINA_JINJA_TABLE(CharRange, kNumeric)
FUCINA_JINJA_TABLE(CharRange, kTitleIsSelf)
FUCINA_JINJA_TABLE(CaseRange, kToUpper)
FUCINA_JINJA_TABLE(CaseRange, kToLower)
FUCINA_JINJA_TABLE(CaseRange, kToTitle)
FUCINA_JINJA_TABLE(SpecialCase, kToUpperSpecial)
FUCINA_JINJA_TABLE(SpecialCase, kToLowerSpecial)
FUCINA_JINJA_TABLE(SpecialCase, kToTitleSpecial)
#undef FUCINA_JINJA_TABLE

}  // namespace fucina::jinja

#endif  // FUCINA_JINJA_UNICODE_H_
