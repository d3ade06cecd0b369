#ifndef FUCINA_CLI_OUTPUT_FILE_H_
#define FUCINA_CLI_OUTPUT_FILE_H_

// Files that a run writes at its end. Whether they can be written is found out
// at its beginning, before minutes of work are lost.

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fucina::cli {

// Whether `path` can be made or overwritten; changes nothing that is there.
// Errors begin with `flag`, name the path and give the system's reason.
absl::Status CheckOutputFile(absl::string_view flag, const std::string& path);

// Writes `bytes` to `path`. A regular file is written whole or not at all
// (temporary name beside it, then rename); what is none, such as a device or a
// pipe, is written to as it is and stays what it is. Errors as above;
// ResourceExhausted when the disk is full.
absl::Status WriteOutputFile(absl::string_view flag, const std::string& path,
                             absl::string_view bytes);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_OUTPUT_FILE_H_
