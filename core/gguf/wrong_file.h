#ifndef FUCINA_CORE_GGUF_WRONG_FILE_H_
#define FUCINA_CORE_GGUF_WRONG_FILE_H_

// Names the usual suspects that people pass for a model file.

#include <string>

#include "absl/strings/string_view.h"

namespace fucina::gguf {

// What a file that starts with `head` probably is and what to do, such as
// "looks like a ZIP archive; unpack it first"; empty when there is no guess.
// `head` is the start of the file, some hundred bytes are enough.
std::string GuessWrongFile(absl::string_view head);

}  // namespace fucina::gguf

#endif  // FUCINA_CORE_GGUF_WRONG_FILE_H_
