#ifndef FUCINA_CORE_GGUF_GGUF_STATUS_H_
#define FUCINA_CORE_GGUF_GGUF_STATUS_H_

// Makes the errors of this room: a Status with a GgufError inside.

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "fucina/gguf/gguf_error.h"

namespace fucina::gguf {

absl::Status MakeError(absl::StatusCode code, GgufError error,
                       absl::string_view message);

// Content that breaks the format.
template <typename... Pieces>
absl::Status BadFile(GgufError error, const Pieces&... pieces) {
  return MakeError(absl::StatusCode::kInvalidArgument, error,
                   absl::StrCat(pieces...));
}

// What the operating system refused, by errno.
absl::Status SystemError(int error_number, absl::string_view what);

// `status` with "prefix: " before its text; code and GgufError are kept.
absl::Status WithPrefix(absl::string_view prefix, const absl::Status& status);

}  // namespace fucina::gguf

#endif  // FUCINA_CORE_GGUF_GGUF_STATUS_H_
