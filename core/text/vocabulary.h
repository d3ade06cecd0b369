#ifndef FUCINA_CORE_TEXT_VOCABULARY_H_
#define FUCINA_CORE_TEXT_VOCABULARY_H_

// The token list of a model file, checked and copied: what each id stands for
// and its class. The first half of loading a tokenizer; byte_bpe is the other.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/text/tokenizer.h"

namespace fucina::text {

struct Vocabulary {
  // What the ids stand for, one behind the other; `offsets` has one more entry
  // than there are ids.
  std::string bytes;
  std::vector<std::size_t> offsets;
  std::vector<TokenClass> classes;
  // Normal tokens with a character outside the byte alphabet: no text gives
  // them.
  std::vector<bool> unreachable;
  int num_real = 0;  // up to the last id that is not unused

  int size() const { return static_cast<int>(classes.size()); }
  bool Contains(std::int64_t id) const { return id >= 0 && id < size(); }
  absl::string_view BytesOf(std::int32_t id) const {
    const auto i = static_cast<std::size_t>(id);
    return absl::string_view(bytes).substr(offsets[i],
                                           offsets[i + 1] - offsets[i]);
  }
};

// Reads `tokenizer.ggml.tokens` and `tokenizer.ggml.token_type` and checks them
// against each other, against `tokenizer.ggml.scores` and against the rows of
// `token_embd.weight` if the file has one. Messages name the key but not the
// file.
absl::StatusOr<Vocabulary> ReadVocabulary(const GgufFile& file,
                                          std::vector<std::string>& notes);

// An error unless `key` is absent or an array of `element`.
absl::Status ExpectArray(const GgufFile& file, absl::string_view key,
                         GgufType element);

}  // namespace fucina::text

#endif  // FUCINA_CORE_TEXT_VOCABULARY_H_
