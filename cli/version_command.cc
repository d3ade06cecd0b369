#include "cli/version_command.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fucina/diag/printable.h"
#include "fucina/kernels/kernels.h"
#include "fucina/parallel/thread_plan.h"
#include "fucina/plugin/abi.h"
#include "fucina/version.h"

namespace fucina::cli {

absl::Status RunVersion(std::span<const std::string> args, std::ostream& out) {
  bool json = false;
  for (const std::string& arg : args) {
    if (arg == "--json") {
      json = true;
    } else if (arg == "--help" || arg == "-h") {
      out << "usage: fucina version [--json]\n\n"
             "Prints the version, the binary interface that plugins must "
             "match,\n"
             "and the instruction sets this machine can run, best first.\n";
      return absl::OkStatus();
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown flag: ", Printable(arg),
                       "; fucina version takes --json only"));
    }
  }
  std::vector<std::string> levels;
  for (auto it = std::rbegin(kAllKernelLevels);
       it != std::rend(kAllKernelLevels); ++it) {
    if (KernelsFor(*it) != nullptr) levels.emplace_back(Name(*it));
  }
  const ThreadPlan threads = PlanThreads(0);
  if (json) {
    const nlohmann::ordered_json object = {{"version", FUCINA_VERSION_STRING},
                                           {"revision", FUCINA_REVISION},
                                           {"abi", FUCINA_ABI_TAG},
                                           {"kernel_levels", levels},
                                           {"threads", threads.num_threads},
                                           {"threads_reason", threads.reason}};
    out << object.dump(2) << "\n";
    return absl::OkStatus();
  }
  out << "fucina " << FUCINA_VERSION_STRING;
  if (*FUCINA_REVISION != '\0') out << " (" << FUCINA_REVISION << ")";
  out << "\nplugin interface: " << FUCINA_ABI_TAG
      << "\nkernel levels:    " << absl::StrJoin(levels, ", ")
      << "\nthreads:          " << threads.reason << "\n";
  return absl::OkStatus();
}

}  // namespace fucina::cli
