#ifndef FUCINA_CLI_PROFILE_H_
#define FUCINA_CLI_PROFILE_H_

// `--profile`: the time of each phase of a forward, as one line. Measuring adds
// clock reads and changes nothing else.

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/contract/decoder.h"
#include "fucina/contract/phase_times.h"

namespace fucina::cli {

// "LABEL: attn_prep=… … layers=N", milliseconds divided by `per`.
std::string FormatPhases(absl::string_view label, const PhaseTimes& times,
                         int per);

// Measures the forwards of a decoder while it exists.
class Profile {
 public:
  // With `wanted` false it measures nothing. Unimplemented when the decoder
  // cannot tell.
  static absl::StatusOr<Profile> Start(Decoder& decoder, bool wanted);
  Profile(Profile&& other) noexcept;
  Profile& operator=(Profile&&) = delete;
  ~Profile();

  // FormatPhases of what was measured, and starts anew; empty when nothing is
  // measured.
  std::string Line(absl::string_view label, int per);
  // Adds what was measured to `sum` and starts anew.
  void Take(PhaseTimes& sum);

 private:
  explicit Profile(PhaseReporter* reporter);

  PhaseReporter* reporter_;            // null: nothing is measured
  std::unique_ptr<PhaseTimes> times_;  // stays in place when moved
};

}  // namespace fucina::cli

#endif  // FUCINA_CLI_PROFILE_H_
