#ifndef FUCINA_TESTS_CONFORMANCE_OPTION_PROBE_H_
#define FUCINA_TESTS_CONFORMANCE_OPTION_PROBE_H_

// How a factory behaves with values that nobody should give it.

#include <map>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "fucina/contract/options.h"

namespace fucina::conformance {

using OptionTexts = std::map<std::string, std::string>;

// Gives each option values at the ends of its type, the others as in `given`:
// `make` takes them, or refuses them as InvalidArgument or ResourceExhausted
// with the option's name in the message, or with the refused text.
// Unimplemented without options.
absl::Status BadOptionsAreNamed(
    std::span<const OptionSpec> specs, const OptionTexts& given,
    absl::FunctionRef<absl::Status(const Options&)> make);

}  // namespace fucina::conformance

#endif  // FUCINA_TESTS_CONFORMANCE_OPTION_PROBE_H_
