#ifndef FUCINA_CLI_RUN_COMMAND_H_
#define FUCINA_CLI_RUN_COMMAND_H_

// `fucina run`: flags → pipeline → conversation, completion or a parity mode.

#include <span>
#include <string>

#include "absl/status/status.h"

namespace fucina::cli {

// Answers go to standard output, everything else to standard error. The status
// carries the exit code where its code alone would not tell (exit_code.h).
absl::Status RunRun(std::span<const std::string> args);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_RUN_COMMAND_H_
