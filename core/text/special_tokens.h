#ifndef FUCINA_CORE_TEXT_SPECIAL_TOKENS_H_
#define FUCINA_CORE_TEXT_SPECIAL_TOKENS_H_

// Which ids a file names for a purpose, and which of them end a turn.

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/text/vocabulary.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/text/tokenizer.h"

namespace fucina::text {

struct SpecialTokenSet {
  SpecialTokens tokens;
  std::vector<TokenId> stop;  // ascending, distinct
};

// The id of the token spelled so, of any class but unused and byte; -1 for
// none.
using FindToken = absl::FunctionRef<TokenId(absl::string_view)>;

// Reads the `tokenizer.ggml.*_token_id` keys. An id outside the vocabulary is
// ignored with a note. The end token may be an array.
absl::StatusOr<SpecialTokenSet> ReadSpecialTokens(
    const GgufFile& file, const Vocabulary& vocabulary, FindToken find,
    std::vector<std::string>& notes);

}  // namespace fucina::text

#endif  // FUCINA_CORE_TEXT_SPECIAL_TOKENS_H_
