#include "fucina/diag/printable.h"

#include <cstdint>

#include "absl/strings/str_format.h"

namespace fucina {
namespace {

struct Decoded {
  std::uint32_t code_point = 0;
  std::size_t length = 0;  // 0: no well-formed character starts here
};

// Well-formed sequences only: no surrogates, no overlong forms.
// Source: the Unicode standard, table 3-7.
Decoded DecodeUtf8(absl::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint8_t>(text[i]);
  };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  std::size_t length = 0;
  std::uint32_t code_point = 0;
  std::uint32_t smallest = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2, code_point = lead & 0x1Fu, smallest = 0x80;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3, code_point = lead & 0x0Fu, smallest = 0x800;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4, code_point = lead & 0x07u, smallest = 0x10000;
  }
  if (length == 0 || text.size() < length) return {};
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code_point = code_point << 6 | (byte(i) & 0x3Fu);
  }
  if (code_point < smallest || code_point > 0x10FFFF ||
      (code_point >= 0xD800 && code_point <= 0xDFFF)) {
    return {};
  }
  return {code_point, length};
}

// Characters a terminal acts on instead of showing: C0, C1, line and paragraph
// separators, and the marks that change the direction of text.
bool IsUnsafe(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) ||
         c == 0xFEFF;
}

std::string Escape(std::uint32_t c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return c < 0x80 ? absl::StrFormat("\\x%02x", c)
                      : absl::StrFormat("\\u{%x}", c);
  }
}

}  // namespace

std::string Printable(absl::string_view text, std::size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    const Decoded decoded = DecodeUtf8(text);
    const std::size_t length = decoded.length == 0 ? 1 : decoded.length;
    std::string piece(text.substr(0, length));
    if (decoded.length == 0) {
      piece = absl::StrFormat("\\x%02x", static_cast<std::uint8_t>(text[0]));
    } else if (IsUnsafe(decoded.code_point)) {
      piece = Escape(decoded.code_point);
    }
    if (out.size() + piece.size() > max_bytes) {
      out += "...";
      return out;
    }
    out += piece;
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace fucina
