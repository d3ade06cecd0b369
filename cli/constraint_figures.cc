#include "cli/constraint_figures.h"

#include "absl/strings/str_format.h"

namespace fucina::cli {

std::string ConstraintFigures(const GenerationStats& stats) {
  return absl::StrFormat(
      "%d masks, %.0f us each (max %.0f us), %d tokens forced", stats.masks,
      stats.masks == 0 ? 0 : stats.mask_ms * 1e3 / stats.masks,
      stats.mask_max_ms * 1e3, stats.forced);
}

}  // namespace fucina::cli
