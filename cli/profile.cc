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

std::string FormatPhases(absl::string_view label, const PhaseTimes& times,
                         int per) {
  std::string line = absl::StrCat(label, ":");
  for (int i = 0; i < kNumPhases; ++i) {
    const double ms = static_cast<double>(times.phase_ns[i]) / 1e6;
    absl::StrAppend(&line, " ", Name(static_cast<Phase>(i)),
                    absl::StrFormat("=%.3f", per > 0 ? ms / per : 0.0));
  }
  const std::int64_t layers =
      times.num_forwards > 0 ? times.num_layers / times.num_forwards : 0;
  return absl::StrCat(line, " layers=", layers, "\n");
}

std::string Profile::Line(absl::string_view label, int per) {
  if (reporter_ == nullptr) return "";
  std::string line = FormatPhases(label, *times_, per);
  times_->Clear();
  return line;
}

void Profile::Take(PhaseTimes& sum) {
  for (int i = 0; i < kNumPhases; ++i) {
    sum.phase_ns[i] += times_->phase_ns[i];
  }
  sum.num_forwards += times_->num_forwards;
  sum.num_layers += times_->num_layers;
  times_->Clear();
}

}  // namespace fucina::cli
