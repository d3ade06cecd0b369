#include "cli/profile.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fucina::cli {

absl::StatusOr<Profile> Profile::Start(Decoder& decoder, bool wanted) {
  if (!wanted) return Profile(nullptr);
  auto* reporter = dynamic_cast<PhaseReporter*>(&decoder);
  if (reporter == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("--profile: the family of '", decoder.info().architecture,
                     "' does not report its phases"));
  }
  return Profile(reporter);
}

Profile::Profile(PhaseReporter* reporter)
    : reporter_(reporter), times_(std::make_unique<PhaseTimes>()) {
  if (reporter_ != nullptr) reporter_->set_phase_times(times_.get());
}

Profile::Profile(Profile&& other) noexcept
    : reporter_(std::exchange(other.reporter_, nullptr)),
      times_(std::move(other.times_)) {}

Profile::~Profile() {
  if (reporter_ != nullptr) reporter_->set_phase_times(nullptr);
}

std::string Profile::Line(absl::string_view label, int per) {
  if (reporter_ == nullptr) return "";
  std::string line = absl::StrCat(label, ":");
  for (int i = 0; i < kNumPhases; ++i) {
    const double ms = static_cast<double>(times_->phase_ns[i]) / 1e6;
    absl::StrAppend(&line, " ", Name(static_cast<Phase>(i)),
                    absl::StrFormat("=%.3f", per > 0 ? ms / per : 0.0));
  }
  const std::int64_t layers =
      times_->num_forwards > 0 ? times_->num_layers / times_->num_forwards : 0;
  times_->Clear();
  return absl::StrCat(line, " layers=", layers, "\n");
}

}  // namespace fucina::cli
