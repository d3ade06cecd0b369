#ifndef FUCINA_REGISTRY_TEXT_FILE_H_
#define FUCINA_REGISTRY_TEXT_FILE_H_

// Text from outside, whole: a stream that breaks in the middle is an error, and
// one that never ends takes no more memory than it may.

#include <cstddef>
#include <istream>
#include <string>

#include "absl/status/statusor.h"

namespace fucina {

// What is left of `in`. InvalidArgument when more than `max_bytes` come, with
// that number, or when reading fails, with the system's reason.
absl::StatusOr<std::string> ReadAll(std::istream& in, std::size_t max_bytes);

// The bytes of a file, which may also be a pipe. Errors of ReadAll, the path in
// front; NotFound when it cannot be opened.
absl::StatusOr<std::string> ReadTextFile(const std::string& path,
                                         std::size_t max_bytes);

}  // namespace fucina

#endif  // FUCINA_REGISTRY_TEXT_FILE_H_
