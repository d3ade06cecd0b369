#ifndef FUCINA_TESTS_CONFORMANCE_DRAFTER_CHECKS_H_
#define FUCINA_TESTS_CONFORMANCE_DRAFTER_CHECKS_H_

// The properties of drafter_suite.cc, each a function: OK when it holds,
// Unimplemented when the drafter does not offer it, else what was found.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fucina/plugin/registrar.h"
#include "tests/conformance/drafter_run.h"
#include "tests/conformance/option_probe.h"
#include "tests/conformance/report.h"

namespace fucina::conformance {

class DrafterChecks {
 public:
  // Borrows what it is given.
  DrafterChecks(const DrafterKind& kind, const Decoder& decoder,
                const OptionTexts& options);

  // Makes one; errors of the kind.
  absl::Status MakeIt();

  // drafter_drafts.cc
  absl::Status DraftsFit() const;
  absl::Status ClassesAreKnown() const;
  absl::Status SameHistorySameDrafts() const;
  absl::Status PiecesDoNotMatter() const;
  absl::Status CutLeavesNoTrace() const;
  absl::Status RewindInPlaceIsNothing() const;
  absl::Status RewindGoesOn() const;
  absl::Status LongHistoryIsHarmless() const;
  absl::Status RepliesStayTheSame() const;

  // drafter_lives.cc
  absl::Status DraftersAreIndependent() const;
  absl::Status AnyThreadWorks() const;
  absl::Status CandidatesArePossible() const;
  absl::Status TapKeepsItsMind() const;
  absl::Status DocumentsAreTakenOrRefused() const;
  absl::Status ReportIsOneLine() const;
  absl::Status OtherFamilyIsTakenOrRefused() const;
  absl::Status OptionsAreRefusedByName() const;

 private:
  // The text of a seed, as long as the model's context allows.
  std::vector<TokenId> Text(std::uint32_t seed) const;
  absl::StatusOr<std::unique_ptr<Drafter>> Make(const Decoder& target) const;
  // After MakeIt: that it cannot is no answer any more.
  absl::StatusOr<std::unique_ptr<Drafter>> Another() const;
  struct Started {
    std::unique_ptr<Drafter> drafter;
    std::unique_ptr<DrafterRun> run;
  };
  // A new drafter that has begun with the script, which is borrowed.
  absl::StatusOr<Started> Start(const std::vector<TokenId>& script) const;
  // All drafts of a script that is read up to a third.
  absl::StatusOr<std::vector<Draft>> Drafts(const std::vector<TokenId>& script,
                                            std::size_t chunk) const;
  absl::StatusOr<std::vector<TokenId>> Reply(Drafter* drafter,
                                             double temperature) const;

  const DrafterKind& kind_;
  const Decoder& decoder_;
  const OptionTexts& options_;
};

// OK when they are the same.
absl::Status SameDrafts(const std::vector<Draft>& found,
                        const std::vector<Draft>& expected);

}  // namespace fucina::conformance

#endif  // FUCINA_TESTS_CONFORMANCE_DRAFTER_CHECKS_H_
