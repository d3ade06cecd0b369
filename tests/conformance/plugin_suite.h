#ifndef FUCINA_TESTS_CONFORMANCE_PLUGIN_SUITE_H_
#define FUCINA_TESTS_CONFORMANCE_PLUGIN_SUITE_H_

// What every plugin must do, whatever it offers.

#include <string>

#include "registry/registry.h"
#include "tests/conformance/report.h"

namespace fucina::conformance {

// Checks the file at `path` and loads it into `registry`. An error means that
// there is nothing further to check.
absl::Status CheckPlugin(const std::string& path, Registry& registry,
                         Report& report);

}  // namespace fucina::conformance

#endif  // FUCINA_TESTS_CONFORMANCE_PLUGIN_SUITE_H_
