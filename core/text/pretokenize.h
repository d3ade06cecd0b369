#ifndef FUCINA_CORE_TEXT_PRETOKENIZE_H_
#define FUCINA_CORE_TEXT_PRETOKENIZE_H_

// The regular splits that byte-level BPE makes before merging, written as
// scanners over code points. The regular expressions they stand for are in the
// .cc, each above its scanner.
//
// A byte that is not part of valid UTF-8 counts as one character of class
// kOther, like U+FFFD, and stays in its piece as it is.

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace fucina::text {

enum class SplitRules {
  kQwen2,    // digits one by one
  kQwen35,   // like kQwen2, combining marks belong to words
  kLlama3,   // digits in groups of up to three
  kGpt2,     // a word takes the space before it
  kSmollm,   // every number alone, then kGpt2
  kDefault,  // punctuation runs, kGpt2, numbers apart, digits by threes
};

// What a value of `tokenizer.ggml.pre` stands for.
struct PreTokenizer {
  absl::string_view name;
  SplitRules rules = SplitRules::kDefault;
  // A piece that is a token is that token, whatever the merges say.
  bool ignore_merges = false;
  // Value of `tokenizer.ggml.add_bos_token` when the file is silent.
  bool add_bos = false;
};

// Null for a name we do not know.
const PreTokenizer* FindPreTokenizer(absl::string_view name);

// Calls `piece` with consecutive, non-empty parts of `fragment` that together
// are all of it. Look-ahead at the end of the fragment sees the end of the
// text. Linear in the length of the fragment.
void SplitPieces(SplitRules rules, absl::string_view fragment,
                 absl::FunctionRef<void(absl::string_view)> piece);

}  // namespace fucina::text

#endif  // FUCINA_CORE_TEXT_PRETOKENIZE_H_
