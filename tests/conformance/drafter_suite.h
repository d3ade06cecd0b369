#ifndef FUCINA_TESTS_CONFORMANCE_DRAFTER_SUITE_H_
#define FUCINA_TESTS_CONFORMANCE_DRAFTER_SUITE_H_

// What every drafter must do: the promises of contract/drafter.h, for a small
// model that the author provides.

#include "fucina/plugin/registrar.h"
#include "tests/conformance/option_probe.h"
#include "tests/conformance/report.h"

namespace fucina::conformance {

// Checks `kind`, made with `options` for `decoder`. An error of its factory:
// nothing was checked.
absl::Status CheckDrafter(const DrafterKind& kind, const Decoder& decoder,
                          const OptionTexts& options, Report& report);

}  // namespace fucina::conformance

#endif  // FUCINA_TESTS_CONFORMANCE_DRAFTER_SUITE_H_
