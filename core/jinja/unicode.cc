#include "core/jinja/unicode.h"

#include <algorithm>

namespace fucina::jinja {
namespace {

bool InRanges(const CharRange* table, std::size_t size, std::uint32_t code) {
  const CharRange* end = table + size;
  const CharRange* found = std::upper_bound(
      table, end, code,
      [](std::uint32_t c, const CharRange& range) { return c < range.first; });
  return found != table && code <= (found - 1)->last;
}

const CaseRange* FindCase(const CaseRange* table, std::size_t size,
                          std::uint32_t code) {
  // Runs with stride 2 interleave (A a B b: upper and lower are separate
  // tables), so within one table ranges do not overlap.
  const CaseRange* end = table + size;
  const CaseRange* found = std::upper_bound(
      table, end, code,
      [](std::uint32_t c, const CaseRange& range) { return c < range.first; });
  if (found == table) return nullptr;
  --found;
  if (code > found->last || (code - found->first) % found->stride != 0) {
    return nullptr;
  }
  return found;
}

bool AppendSpecial(const SpecialCase* table, std::size_t size,
                   std::uint32_t code, std::string* out) {
  const SpecialCase* end = table + size;
  const SpecialCase* found = std::lower_bound(
      table, end, code,
      [](const SpecialCase& row, std::uint32_t c) { return row.from < c; });
  if (found == end || found->from != code) return false;
  for (std::uint32_t to : found->to) {
    if (to != 0) AppendChar(to, out);
  }
  return true;
}

std::string Map(const CaseRange* table, std::size_t size, std::uint32_t code) {
  const CaseRange* range = FindCase(table, size, code);
  std::string out;
  AppendChar(range == nullptr
                 ? code
                 : static_cast<std::uint32_t>(static_cast<std::int64_t>(code) +
                                              range->delta),
             &out);
  return out;
}

bool IsContinuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

}  // namespace

Char DecodeChar(absl::string_view text, std::size_t at) {
  auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
  };
  const std::uint32_t lead = byte(at);
  if (lead < 0x80) return {lead, 1};
  const Char invalid{kInvalidByte + lead, 1};
  std::size_t size = 0;
  std::uint32_t code = 0, least = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    size = 2, code = lead & 0x1F, least = 0x80;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    size = 3, code = lead & 0x0F, least = 0x800;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    size = 4, code = lead & 0x07, least = 0x10000;
  } else {
    return invalid;
  }
  if (text.size() - at < size) return invalid;
  for (std::size_t i = 1; i < size; ++i) {
    if (!IsContinuation(text[at + i])) return invalid;
    code = code << 6 | (byte(at + i) & 0x3F);
  }
  if (code < least || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
    return invalid;
  }
  return {code, size};
}

Char DecodeCharBefore(absl::string_view text, std::size_t end) {
  std::size_t start = end - 1;
  while (start > 0 && end - start < 4 && IsContinuation(text[start])) --start;
  const Char c = DecodeChar(text, start);
  if (start + c.size == end) return c;
  return {kInvalidByte + static_cast<unsigned char>(text[end - 1]), 1};
}

void AppendChar(std::uint32_t code, std::string* out) {
  auto put = [&](std::uint32_t byte) {
    out->push_back(static_cast<char>(static_cast<unsigned char>(byte)));
  };
  if (code >= kInvalidByte) {
    put(code - kInvalidByte);
  } else if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

std::size_t CountChars(absl::string_view text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); i += DecodeChar(text, i).size) {
    ++count;
  }
  return count;
}

bool IsSpace(std::uint32_t code) { return InRanges(kSpace, kSpaceSize, code); }
bool IsPrintable(std::uint32_t code) {
  return code < kInvalidByte &&
         !InRanges(kNotPrintable, kNotPrintableSize, code);
}
bool IsUpper(std::uint32_t code) {
  return InRanges(kUppercase, kUppercaseSize, code);
}
bool IsLower(std::uint32_t code) {
  return InRanges(kLowercase, kLowercaseSize, code);
}
bool IsTitle(std::uint32_t code) {
  return InRanges(kTitlecase, kTitlecaseSize, code);
}
bool IsCased(std::uint32_t code) {
  return IsUpper(code) || IsLower(code) || IsTitle(code);
}
bool IsCaseIgnorable(std::uint32_t code) {
  return InRanges(kCaseIgnorable, kCaseIgnorableSize, code);
}
bool IsAlpha(std::uint32_t code) { return InRanges(kAlpha, kAlphaSize, code); }
bool IsDecimal(std::uint32_t code) {
  return InRanges(kDecimal, kDecimalSize, code);
}
bool IsDigit(std::uint32_t code) { return InRanges(kDigit, kDigitSize, code); }
bool IsNumeric(std::uint32_t code) {
  return InRanges(kNumeric, kNumericSize, code);
}

std::string ToUpper(std::uint32_t code) {
  std::string out;
  if (AppendSpecial(kToUpperSpecial, kToUpperSpecialSize, code, &out)) {
    return out;
  }
  return Map(kToUpper, kToUpperSize, code);
}

std::string ToLower(std::uint32_t code) {
  std::string out;
  if (AppendSpecial(kToLowerSpecial, kToLowerSpecialSize, code, &out)) {
    return out;
  }
  return Map(kToLower, kToLowerSize, code);
}

std::string ToTitle(std::uint32_t code) {
  std::string out;
  if (AppendSpecial(kToTitleSpecial, kToTitleSpecialSize, code, &out)) {
    return out;
  }
  if (InRanges(kTitleIsSelf, kTitleIsSelfSize, code)) {
    AppendChar(code, &out);
    return out;
  }
  if (FindCase(kToTitle, kToTitleSize, code) != nullptr) {
    return Map(kToTitle, kToTitleSize, code);
  }
  // Simple title case equals simple upper case here; a special upper case
  // without a special title case does not exist apart from the tables above.
  return Map(kToUpper, kToUpperSize, code);
}

}  // namespace fucina::jinja
