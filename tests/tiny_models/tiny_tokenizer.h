#ifndef FUCINA_TESTS_TINY_MODELS_TINY_TOKENIZER_H_
#define FUCINA_TESTS_TINY_MODELS_TINY_TOKENIZER_H_

// The tokenizer keys of a tiny model: all 256 bytes, a handful of merges, the
// control tokens of the family and a short chat template.

#include "absl/strings/string_view.h"
#include "fucina/gguf/gguf_writer.h"

namespace fucina::testing {

// Embedding rows for the vocabulary, rounded up to whole blocks of 32 as real
// files pad theirs.
int TinyTokenizerRows(absl::string_view architecture);

// Adds tokenizer.ggml.* and tokenizer.chat_template.
void AddTinyTokenizer(absl::string_view architecture, GgufWriter* writer);

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_TINY_MODELS_TINY_TOKENIZER_H_
