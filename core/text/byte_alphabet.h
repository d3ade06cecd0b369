#ifndef FUCINA_CORE_TEXT_BYTE_ALPHABET_H_
#define FUCINA_CORE_TEXT_BYTE_ALPHABET_H_

// The printable alphabet in which byte-level BPE files spell bytes: 0x21-0x7E,
// 0xA1-0xAC and 0xAE-0xFF stand for themselves, the 68 others, ascending, are
// U+0100 and up. A space is U+0120.
// Source: the encoder published with GPT-2.

#include <string>

#include "absl/strings/string_view.h"

namespace fucina::text {

// Appends the bytes that `text` spells to `bytes`. A character outside the
// alphabet, which only broken files have, stands for its own UTF-8. Returns
// whether all characters were in the alphabet.
bool AppendAlphabetBytes(absl::string_view text, std::string& bytes);

}  // namespace fucina::text

#endif  // FUCINA_CORE_TEXT_BYTE_ALPHABET_H_
