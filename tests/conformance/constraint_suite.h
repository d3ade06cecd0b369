#ifndef FUCINA_TESTS_CONFORMANCE_CONSTRAINT_SUITE_H_
#define FUCINA_TESTS_CONFORMANCE_CONSTRAINT_SUITE_H_

// What every constraint must do: the promises of contract/constraint.h, with
// the vocabulary of a model and the options that the author gives.

#include "fucina/plugin/registrar.h"
#include "fucina/text/tokenizer.h"
#include "tests/conformance/option_probe.h"
#include "tests/conformance/report.h"

namespace fucina::conformance {

// Checks `kind`, made with `options`. An error of its factory: nothing was
// checked.
absl::Status CheckConstraint(const ConstraintKind& kind,
                             const Tokenizer& tokenizer,
                             const OptionTexts& options, Report& report);

}  // namespace fucina::conformance

#endif  // FUCINA_TESTS_CONFORMANCE_CONSTRAINT_SUITE_H_
