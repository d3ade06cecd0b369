#include "token_bytes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace fucina::llguidance {

TokenBytes MakeTokenBytes(const Tokenizer& tokenizer,
                          std::span<const TokenId> stop_tokens) {
  TokenBytes tokens;
  const int size = tokenizer.vocab_size();
  tokens.lengths.reserve(static_cast<std::size_t>(size));
  for (TokenId id = 0; id < size; ++id) {
    const absl::string_view bytes = tokenizer.TokenBytes(id);
    const TokenClass kind = tokenizer.ClassOf(id);
    const bool stops = std::find(stop_tokens.begin(), stop_tokens.end(), id) !=
                       stop_tokens.end();
    const std::size_t before = tokens.bytes.size();
    if (stops || kind == TokenClass::kControl || kind == TokenClass::kUnknown) {
      // An unused token that ends replies has no spelling of its own.
      absl::StrAppend(
          &tokens.bytes, "\xFF",
          bytes.empty() ? absl::StrCat("<", id, ">") : std::string(bytes));
    } else if (kind != TokenClass::kUnused) {
      absl::StrAppend(&tokens.bytes, bytes);
    }
    tokens.lengths.push_back(
        static_cast<std::uint32_t>(tokens.bytes.size() - before));
  }
  return tokens;
}

}  // namespace fucina::llguidance
