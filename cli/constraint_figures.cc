#include "cli/constraint_figures.h"

#include "absl/strings/str_format.h"

namespace fucina::cli {

std::string ConstraintFigures(const GenerationStats& stats, bool complete) {
  const TimeHistogram& masks = stats.masks;
  return absl::StrFormat(
      "%d masks, %.0f us each (p99 %.0f us, max %.0f us), %d tokens forced, "
      "%s",
      masks.count(), masks.mean_ns() * 1e-3,
      static_cast<double>(masks.Percentile(99)) * 1e-3,
      static_cast<double>(masks.max_ns()) * 1e-3, stats.forced,
      complete ? "complete" : "incomplete");
}

}  // namespace fucina::cli
