#ifndef FUCINA_REGISTRY_TEXT_FILE_H_
#define FUCINA_REGISTRY_TEXT_FILE_H_

// Text from outside, whole: a file that breaks in the middle is an error, and
// one that never ends takes no more memory than it may.

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fucina {

// What is left of the open file `file`, which may also be a pipe; `where` names
// it in errors. NotFound when it cannot be read, with the system's reason;
// TooLong for more than `max_bytes`.
absl::StatusOr<std::string> ReadOpenFile(int file, absl::string_view where,
                                         std::size_t max_bytes);

// The bytes of the file at `path`, which its errors name: NotFound also when it
// cannot be opened.
absl::StatusOr<std::string> ReadTextFile(const std::string& path,
                                         std::size_t max_bytes);

// InvalidArgument: `where` has more than `max_bytes`, a whole number of MiB.
absl::Status TooLong(absl::string_view where, std::size_t max_bytes);

}  // namespace fucina

#endif  // FUCINA_REGISTRY_TEXT_FILE_H_
