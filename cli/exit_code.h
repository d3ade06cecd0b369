#ifndef FUCINA_CLI_EXIT_CODE_H_
#define FUCINA_CLI_EXIT_CODE_H_

// What the program's exit status says, and how an error carries it from where
// it is known to main. docs/command-line.md lists the codes for users.

#include "absl/status/status.h"

namespace fucina::cli {

enum class ExitCode {
  kSuccess = 0,
  kFailure = 1,        // anything that has no number of its own
  kUsage = 2,          // wrong usage or configuration
  kFile = 3,           // a file cannot be used, or a comparison failed
  kMemory = 4,         // not enough memory or disk
  kInterrupted = 130,  // by the user
};

// The same error, marked with the exit status it should end the program with.
// OK stays OK, and a mark that is there already stays.
absl::Status WithExitCode(absl::Status status, ExitCode code);

// The mark, or what the code alone suggests: ResourceExhausted is kMemory,
// InvalidArgument, NotFound, OutOfRange and AlreadyExists are kUsage.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_EXIT_CODE_H_
