#ifndef FUCINA_CLI_VERSION_COMMAND_H_
#define FUCINA_CLI_VERSION_COMMAND_H_

// `fucina version` and `fucina --version`.

#include <ostream>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace fucina::cli {

// Prints version, revision, ABI tag and the instruction-set levels that this
// machine can run, best first; with --json the same as one object.
absl::Status RunVersion(std::span<const std::string> args, std::ostream& out);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_VERSION_COMMAND_H_
