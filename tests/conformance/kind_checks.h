#ifndef FUCINA_TESTS_CONFORMANCE_KIND_CHECKS_H_
#define FUCINA_TESTS_CONFORMANCE_KIND_CHECKS_H_

// Which suites a plugin gets, and what they need.

#include <string>
#include <vector>

#include "registry/registry.h"
#include "tests/conformance/option_probe.h"
#include "tests/conformance/report.h"

namespace fucina::conformance {

struct Request {
  std::string model;    // empty: only notes
  std::string kind;     // family, drafter or constraint; empty: all
  std::string name;     // of one descriptor; empty: all
  OptionTexts options;  // for what is checked, defaults for the rest
};

// Runs the suites of what `registry`, which holds the plugin alone, offers.
// What was not checked and nobody asked for by kind gets a line in `notes`.
// False when the model, or the plugin for what was asked, cannot be used at
// all; the report says why.
bool CheckKinds(const Request& request, const Registry& registry,
                Report& report, std::vector<std::string>& notes);

}  // namespace fucina::conformance

#endif  // FUCINA_TESTS_CONFORMANCE_KIND_CHECKS_H_
