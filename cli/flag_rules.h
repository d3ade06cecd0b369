#ifndef FUCINA_CLI_FLAG_RULES_H_
#define FUCINA_CLI_FLAG_RULES_H_

// Which flags of `fucina run` go together.

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cli/run_flags.h"

namespace fucina::cli {

// Refuses flags that the chosen mode would ignore, and modes that exclude each
// other: nothing is ignored silently. `times_given` says how often a flag, with
// its dashes, stood on the command line. InvalidArgument naming the flags.
absl::Status CheckCombination(
    const RunFlags& flags,
    absl::FunctionRef<int(absl::string_view)> times_given);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_FLAG_RULES_H_
