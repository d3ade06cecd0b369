#ifndef FUCINA_CLI_INSPECT_COMMAND_H_
#define FUCINA_CLI_INSPECT_COMMAND_H_

// `fucina inspect FILE`: what a model file says, without loading it.

#include <iosfwd>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fucina::cli {

// One paragraph for `fucina inspect --help`.
absl::string_view InspectUsage();

// Writes the report to `out`. `args` are those after the word inspect: a file
// or folder, and any of --keys (all metadata), --tensors (all tensors), --json
// (the same as JSON), --help.
//
// Errors of the file carry a GgufError (FindGgufError) and ExitCode::kFile; an
// InvalidArgument without them is wrong usage. Nothing is written then.
absl::Status RunInspect(std::span<const std::string> args, std::ostream& out);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_INSPECT_COMMAND_H_
