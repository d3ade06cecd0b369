#ifndef FUCINA_TESTS_CONFORMANCE_FAMILY_SUITE_H_
#define FUCINA_TESTS_CONFORMANCE_FAMILY_SUITE_H_

// What every decoder family must do: the promises of contract/decoder.h, on a
// small model that the author provides.

#include <string>

#include "fucina/plugin/registrar.h"
#include "tests/conformance/option_probe.h"
#include "tests/conformance/report.h"

namespace fucina::conformance {

// Checks `family`, with `options`, on the model at `path`, which must be of its
// architecture.
void CheckFamily(const Family& family, const std::string& path,
                 const OptionTexts& options, Report& report);

}  // namespace fucina::conformance

#endif  // FUCINA_TESTS_CONFORMANCE_FAMILY_SUITE_H_
