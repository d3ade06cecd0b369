#include "core/text/byte_alphabet.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/text/utf8.h"

namespace fucina::text {
namespace {

constexpr int kAlphabetEnd = 0x144;  // code points

constexpr bool IsItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
         byte >= 0xAE;
}

// The byte of each code point, -1 outside the alphabet.
constexpr std::array<std::int16_t, kAlphabetEnd> BytesOfCodePoints() {
  std::array<std::int16_t, kAlphabetEnd> bytes = {};
  for (std::int16_t& byte : bytes) byte = -1;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const int code_point = IsItself(byte) ? byte : next++;
    bytes[static_cast<std::size_t>(code_point)] =
        static_cast<std::int16_t>(byte);
  }
  return bytes;
}
constexpr std::array<std::int16_t, kAlphabetEnd> kBytes = BytesOfCodePoints();

}  // namespace

bool AppendAlphabetBytes(absl::string_view text, std::string& bytes) {
  bool all = true;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Sequence sequence = ReadUtf8(text, at);
    const auto length = static_cast<std::size_t>(sequence.length);
    const int byte = sequence.valid && sequence.code_point < kAlphabetEnd
                         ? kBytes[sequence.code_point]
                         : -1;
    if (byte >= 0) {
      bytes.push_back(static_cast<char>(byte));
    } else {
      all = false;
      bytes.append(text.data() + at, length);
    }
    at += length;
  }
  return all;
}

}  // namespace fucina::text
