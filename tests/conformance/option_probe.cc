#include "tests/conformance/option_probe.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "fucina/diag/printable.h"

namespace fucina::conformance {
namespace {

std::vector<std::string> Probes(OptionType type) {
  switch (type) {
    case OptionType::kBool:
      return {"true", "false"};
    case OptionType::kInt:
      return {"-9223372036854775808", "-1", "0", "9223372036854775807"};
    case OptionType::kFloat:
      return {"-1e308", "-1", "0", "1e308"};
    case OptionType::kString:
      return {"(((", "\x01\xff", "no such value"};
    case OptionType::kStringList:
      return {"no such value", "-1", "2147483648"};
  }
  return {};
}

// A message may write "json schema" for the option json_schema, and one about a
// text may quote it instead.
bool Names(absl::string_view message, const OptionSpec& spec,
           absl::string_view value) {
  const bool is_text =
      spec.type == OptionType::kString || spec.type == OptionType::kStringList;
  return absl::StrContains(message, spec.name) ||
         absl::StrContains(message,
                           absl::StrReplaceAll(spec.name, {{"_", " "}})) ||
         (is_text && absl::StrContains(message, value));
}

}  // namespace

absl::Status BadOptionsAreNamed(
    std::span<const OptionSpec> specs, const OptionTexts& given,
    absl::FunctionRef<absl::Status(const Options&)> make) {
  if (specs.empty()) return absl::UnimplementedError("it has no options");
  for (const OptionSpec& spec : specs) {
    for (const std::string& value : Probes(spec.type)) {
      OptionTexts texts = given;
      texts[std::string(spec.name)] = value;
      const auto options = Options::Make(specs, texts);
      if (!options.ok()) continue;  // refused before the plugin sees it
      const absl::Status status = make(*options);
      if (status.ok()) continue;
      const bool expected =
          absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status);
      if (expected && Names(status.message(), spec, value)) continue;
      return absl::InternalError(absl::StrCat(
          spec.name, " = '", Printable(value), "': expected InvalidArgument ",
          "or ResourceExhausted with the option's name, found ",
          status.ToString()));
    }
  }
  return absl::OkStatus();
}

}  // namespace fucina::conformance
