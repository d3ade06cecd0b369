#include "cli/draft_figures.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fucina::cli {

std::string DraftFigures(const GenerationStats& stats, const Drafter& drafter) {
  // The first token comes from the prompt's logits.
  const double per_forward =
      stats.forwards == 0
          ? 0
          : static_cast<double>(stats.new_tokens - 1) / stats.forwards;
  // What a constraint forced is no merit of the drafter.
  const int drafted = stats.drafted - stats.forced;
  const int accepted = stats.accepted - stats.forced_accepted;
  std::string text = absl::StrFormat(
      "%d/%d accepted (%.0f %%), %.2f tokens per forward", accepted, drafted,
      drafted == 0 ? 0 : 100.0 * accepted / drafted, per_forward);
  if (stats.verifies_timed > 0 && stats.plain_timed > 0) {
    absl::StrAppendFormat(&text, ", a draft makes a forward %.2f times as long",
                          stats.verify_ms / stats.verifies_timed /
                              (stats.plain_ms / stats.plain_timed));
  }
  if (stats.gate_refusals > 0) {
    absl::StrAppend(&text, ", not worth it at ", stats.gate_refusals, " steps");
  }
  const std::string report = drafter.Report();
  if (!report.empty()) absl::StrAppend(&text, ", ", report);
  return text;
}

}  // namespace fucina::cli
