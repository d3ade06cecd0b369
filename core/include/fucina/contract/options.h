#ifndef FUCINA_CONTRACT_OPTIONS_H_
#define FUCINA_CONTRACT_OPTIONS_H_

// Options of a plugin's descriptor, typed, without YAML in the plugin. The
// plugin declares OptionSpecs; the program parses and validates values against
// them and hands over an Options with every declared name set.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/export.h"

namespace fucina {

enum class OptionType { kBool, kInt, kFloat, kString, kStringList };

FUCINA_API absl::string_view Name(OptionType type);

// Static storage in the plugin: names and texts are views.
struct OptionSpec {
  absl::string_view name = {};  // [a-z][a-z0-9_]*
  OptionType type = OptionType::kString;
  // Spelled as in YAML; empty for an empty text.
  absl::string_view default_value = {};
  absl::string_view doc = {};  // one line: meaning, unit, range
};

using OptionValue = std::variant<bool, std::int64_t, double, std::string,
                                 std::vector<std::string>>;

// Reads `text` as a value of `type`. InvalidArgument says what was expected.
// A list is split at commas.
FUCINA_API absl::StatusOr<OptionValue> ParseOptionValue(OptionType type,
                                                        absl::string_view text);

class FUCINA_API Options {
 public:
  Options() = default;

  // Defaults of every spec, then `values` over them. InvalidArgument for a name
  // that no spec has (with the nearest one) or a value of another type.
  static absl::StatusOr<Options> Make(
      std::span<const OptionSpec> specs,
      const std::map<std::string, std::string>& values);

  // REQUIRES: the name was declared with this type.
  bool GetBool(absl::string_view name) const;
  std::int64_t GetInt(absl::string_view name) const;
  double GetFloat(absl::string_view name) const;
  const std::string& GetString(absl::string_view name) const;
  const std::vector<std::string>& GetStringList(absl::string_view name) const;

 private:
  const OptionValue& Get(absl::string_view name) const;

  std::map<std::string, OptionValue> values_;
};

// Marks an error as that of an option's value. A `load` that refuses a value
// returns it so, and the user hears of the flag or line that gave the value
// instead of a model file that cannot be used.
FUCINA_API absl::Status BlameOption(absl::string_view option,
                                    absl::Status status);
// The option that the error is marked with, or empty.
FUCINA_API std::string BlamedOption(const absl::Status& status);

// The candidate nearest to `name` by edit distance, or empty when none is near
// enough to suggest.
FUCINA_API std::string NearestName(absl::string_view name,
                                   std::span<const std::string> candidates);

}  // namespace fucina

#endif  // FUCINA_CONTRACT_OPTIONS_H_
