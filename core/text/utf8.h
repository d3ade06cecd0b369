#ifndef FUCINA_CORE_TEXT_UTF8_H_
#define FUCINA_CORE_TEXT_UTF8_H_

// Reads one UTF-8 sequence. Shared by the splitter and the stream so that both
// agree on what a character is.
// Source: the Unicode Standard, section 3.9, table 3-7.

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace fucina::text {

struct Utf8Sequence {
  char32_t code_point = 0xFFFD;  // U+FFFD when not valid
  // Bytes of the character; of the maximal broken sequence when not valid.
  int length = 1;
  bool valid = false;
  // Not valid only because the text ends: more bytes could complete it.
  bool cut = false;
};

// The sequence that begins at `text[position]`. Overlong forms, surrogates and
// values above U+10FFFF are not valid.
//
// REQUIRES: position < text.size().
inline Utf8Sequence ReadUtf8(absl::string_view text, std::size_t position) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned char>(text[position + i]);
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1, true, false};
  int length = 0;
  unsigned low = 0x80;  // bounds of the second byte
  unsigned high = 0xBF;
  char32_t code_point = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
    code_point = lead & 0x1F;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    code_point = lead & 0x0F;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    code_point = lead & 0x07;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {};
  }
  const std::size_t left = text.size() - position;
  for (int i = 1; i < length; ++i) {
    if (static_cast<std::size_t>(i) == left) return {0xFFFD, i, false, true};
    const unsigned next = byte(static_cast<std::size_t>(i));
    if (next < low || next > high) return {0xFFFD, i, false, false};
    low = 0x80;
    high = 0xBF;
    code_point = (code_point << 6) | (next & 0x3F);
  }
  return {code_point, length, true, false};
}

}  // namespace fucina::text

#endif  // FUCINA_CORE_TEXT_UTF8_H_
