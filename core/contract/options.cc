#include "fucina/contract/options.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "fucina/diag/check.h"
#include "fucina/diag/status_macros.h"

namespace fucina {
namespace {

constexpr char kOptionPayload[] = "fucina.option";

int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i) + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const int substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j + 1] + 1, row[j] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

absl::string_view Name(OptionType type) {
  switch (type) {
    case OptionType::kBool:
      return "true or false";
    case OptionType::kInt:
      return "an integer";
    case OptionType::kFloat:
      return "a number";
    case OptionType::kString:
      return "a text";
    case OptionType::kStringList:
      return "a list of texts";
  }
  return "";
}

absl::StatusOr<OptionValue> ParseOptionValue(OptionType type,
                                             absl::string_view text) {
  switch (type) {
    case OptionType::kBool: {
      if (text == "true") return OptionValue(true);
      if (text == "false") return OptionValue(false);
      break;
    }
    case OptionType::kInt: {
      std::int64_t value = 0;
      if (absl::SimpleAtoi(text, &value)) return OptionValue(value);
      break;
    }
    case OptionType::kFloat: {
      double value = 0;
      if (absl::SimpleAtod(text, &value) && std::isfinite(value)) {
        return OptionValue(value);
      }
      break;
    }
    case OptionType::kString:
      return OptionValue(std::string(text));
    case OptionType::kStringList: {
      std::vector<std::string> items;
      if (!text.empty()) items = absl::StrSplit(text, ',');
      return OptionValue(std::move(items));
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", Name(type), ", found '", text, "'"));
}

absl::StatusOr<Options> Options::Make(
    std::span<const OptionSpec> specs,
    const std::map<std::string, std::string>& values) {
  Options options;
  std::vector<std::string> names;
  for (const OptionSpec& spec : specs) {
    names.emplace_back(spec.name);
    auto value = ParseOptionValue(spec.type, spec.default_value);
    if (!value.ok()) {
      return absl::InternalError(absl::StrCat("default of option '", spec.name,
                                              "': ", value.status().message()));
    }
    options.values_[std::string(spec.name)] = *std::move(value);
  }
  for (const auto& [name, text] : values) {
    const auto spec = std::find_if(
        specs.begin(), specs.end(),
        [&name = name](const OptionSpec& s) { return s.name == name; });
    if (spec == specs.end()) {
      const std::string nearest = NearestName(name, names);
      return absl::InvalidArgumentError(absl::StrCat(
          "no option '", name, "'",
          nearest.empty()
              ? names.empty()
                    ? std::string("; it has none")
                    : absl::StrCat("; known: ", absl::StrJoin(names, ", "))
              : absl::StrCat("; did you mean '", nearest, "'")));
    }
    auto value = ParseOptionValue(spec->type, text);
    if (!value.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("option '", name, "': ", value.status().message()));
    }
    options.values_[name] = *std::move(value);
  }
  return options;
}

const OptionValue& Options::Get(absl::string_view name) const {
  const auto it = values_.find(std::string(name));
  FUCINA_CHECK(it != values_.end()) << "option '" << name << "' undeclared";
  return it->second;
}

bool Options::GetBool(absl::string_view name) const {
  return std::get<bool>(Get(name));
}

std::int64_t Options::GetInt(absl::string_view name) const {
  return std::get<std::int64_t>(Get(name));
}

double Options::GetFloat(absl::string_view name) const {
  return std::get<double>(Get(name));
}

const std::string& Options::GetString(absl::string_view name) const {
  return std::get<std::string>(Get(name));
}

const std::vector<std::string>& Options::GetStringList(
    absl::string_view name) const {
  return std::get<std::vector<std::string>>(Get(name));
}

absl::Status BlameOption(absl::string_view option, absl::Status status) {
  if (!status.ok()) status.SetPayload(kOptionPayload, absl::Cord(option));
  return status;
}

std::string BlamedOption(const absl::Status& status) {
  const auto option = status.GetPayload(kOptionPayload);
  return option.has_value() ? std::string(*option) : std::string();
}

std::string NearestName(absl::string_view name,
                        std::span<const std::string> candidates) {
  std::string nearest;
  // A third of the letters may be wrong before a suggestion misleads.
  int best = std::max<int>(2, static_cast<int>(name.size()) / 3) + 1;
  for (const std::string& candidate : candidates) {
    const int distance = EditDistance(name, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace fucina
