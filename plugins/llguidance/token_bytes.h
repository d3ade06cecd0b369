#ifndef FUCINA_PLUGINS_LLGUIDANCE_TOKEN_BYTES_H_
#define FUCINA_PLUGINS_LLGUIDANCE_TOKEN_BYTES_H_

// The vocabulary as the engine wants it: for each id the bytes that a grammar
// can match.
//
//   normal and byte tokens  their bytes, which may be part of a character
//   user-defined tokens     their text, like any other text
//   control, unknown, and
//   tokens that end a reply 0xFF and their spelling. UTF-8 has no 0xFF, so that
//                           such a token never matches text; its spelling is
//                           matched by ordinary tokens
//   unused tokens           nothing: never allowed

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fucina/text/tokenizer.h"

namespace fucina::llguidance {

struct TokenBytes {
  std::vector<std::uint32_t> lengths;  // [vocab_size]
  std::string bytes;                   // of all tokens, joined
};

TokenBytes MakeTokenBytes(const Tokenizer& tokenizer,
                          std::span<const TokenId> stop_tokens);

}  // namespace fucina::llguidance

#endif  // FUCINA_PLUGINS_LLGUIDANCE_TOKEN_BYTES_H_
