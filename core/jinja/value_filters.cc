// Filters of one value: text, numbers, JSON.

#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/jinja/evaluator.h"
#include "core/jinja/filters.h"
#include "core/jinja/methods.h"
#include "core/jinja/python.h"
#include "core/jinja/string_ops.h"
#include "fucina/diag/status_macros.h"

namespace fucina::jinja {
namespace {

using absl::string_view;

absl::StatusOr<Var> Abs(Evaluator&, Arguments& arguments) {
  const Var& value = arguments.positional[0];
  if (value.kind() == VarKind::kFloat) {
    return Var::Float(std::fabs(value.real()));
  }
  if (value.is_undefined()) return UndefinedError(value);
  if (!value.is_integral()) {
    return TypeError(
        absl::StrCat("'abs' needs a number, found ", TypeName(value)));
  }
  if (value.integer() < 0) return Negate(value);
  return Var::Int(value.integer());
}

template <Case kCase>
absl::StatusOr<Var> MapCaseFilter(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(const Text text,
                          Str(evaluator, arguments.positional[0]));
  return evaluator.NewString(MapCase(text, kCase));
}

absl::StatusOr<Var> Default(Evaluator& evaluator, Arguments& arguments) {
  const Var& value = arguments.positional[0];
  const bool absent = value.is_undefined() ||
                      (BoolArgument(arguments, 2, false) && !Truthy(value));
  if (!absent) return value;
  if (!arguments.positional[1].is_absent()) return arguments.positional[1];
  return evaluator.NewString("", Origin::kTemplate);
}

absl::StatusOr<Var> ToFloat(Evaluator&, Arguments& arguments) {
  const Var& value = arguments.positional[0];
  const Var fallback = arguments.positional[1].is_absent()
                           ? Var::Float(0)
                           : arguments.positional[1];
  if (value.is_undefined()) return UndefinedError(value);
  if (value.is_numeric()) return Var::Float(value.AsDouble());
  if (value.is_string()) {
    if (const auto real = ParseFloat(value.bytes())) return Var::Float(*real);
  }
  return fallback;
}

absl::StatusOr<Var> ToInt(Evaluator&, Arguments& arguments) {
  const Var& value = arguments.positional[0];
  const Var fallback = arguments.positional[1].is_absent()
                           ? Var::Int(0)
                           : arguments.positional[1];
  FUCINA_ASSIGN_OR_RETURN(const std::int64_t base,
                          IntArgument("int", arguments, 2, 10));
  if (base != 2 && base != 8 && base != 10 && base != 16) {
    return TypeError("unsupported base of 'int'; 2, 8, 10 and 16 are known");
  }
  if (value.is_undefined()) return UndefinedError(value);
  double real = 0;
  if (value.is_integral()) return Var::Int(value.integer());
  if (value.kind() == VarKind::kNumber) return value;
  if (value.kind() == VarKind::kFloat) {
    real = value.real();
  } else if (value.is_string()) {
    FUCINA_ASSIGN_OR_RETURN(const auto whole,
                            ParseInt(value.bytes(), static_cast<int>(base)));
    if (whole.has_value()) return Var::Int(*whole);
    const auto parsed = ParseFloat(value.bytes());
    if (!parsed.has_value()) return fallback;
    real = *parsed;
  } else {
    return fallback;
  }
  if (!std::isfinite(real)) return fallback;
  if (std::fabs(real) >= 9.2e18) {
    return TypeError("the result of 'int' does not fit 64 bits");
  }
  return Var::Int(static_cast<std::int64_t>(real));
}

absl::StatusOr<Var> Indent(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(Text text, Str(evaluator, arguments.positional[0]));
  Text margin;
  const Var& width = arguments.positional[1];
  if (width.is_string()) {
    margin = width.text();
  } else {
    FUCINA_ASSIGN_OR_RETURN(const std::int64_t spaces,
                            IntArgument("indent", arguments, 1, 4));
    if (spaces > 1000) return TypeError("'indent' by more than 1000 blanks");
    margin.Append(
        std::string(static_cast<std::size_t>(std::max<std::int64_t>(spaces, 0)),
                    ' '),
        Origin::kTemplate);
  }
  const bool first = BoolArgument(arguments, 2, false);
  const bool blank = BoolArgument(arguments, 3, false);
  // The newline makes splitlines keep a last empty line.
  text.Append("\n", Origin::kTemplate);
  const std::vector<Text> lines = SplitLines(text, /*keep_ends=*/false);
  FUCINA_RETURN_IF_ERROR(
      evaluator.ChargeBytes(lines.size() * (margin.size() + sizeof(Text))));
  Text out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.Append("\n", Origin::kTemplate);
    if (i == 0 ? first : (blank || !lines[i].empty())) out.Append(margin);
    out.Append(lines[i]);
  }
  return evaluator.NewString(std::move(out));
}

absl::StatusOr<Var> LengthFilter(Evaluator& evaluator, Arguments& arguments) {
  const Var& value = arguments.positional[0];
  if (value.is_string()) {
    FUCINA_RETURN_IF_ERROR(evaluator.Charge(value.text().size() / 64));
  }
  FUCINA_ASSIGN_OR_RETURN(const std::int64_t length, Length(evaluator, value));
  return Var::Int(length);
}

absl::StatusOr<Var> ReplaceFilter(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(const Text text,
                          Str(evaluator, arguments.positional[0]));
  FUCINA_ASSIGN_OR_RETURN(const Text from,
                          Str(evaluator, arguments.positional[1]));
  FUCINA_ASSIGN_OR_RETURN(const Text to,
                          Str(evaluator, arguments.positional[2]));
  FUCINA_ASSIGN_OR_RETURN(const std::int64_t most,
                          IntArgument("replace", arguments, 3, -1));
  return ReplaceText(evaluator, text, from.bytes(), to, most);
}

// Python rounds the exact decimal value, halves to even; so does printf.
double RoundTo(double value, std::int64_t digits) {
  if (digits >= 0) {
    double out = value;
    if (digits < 330 && std::isfinite(value) &&
        absl::SimpleAtod(
            absl::StrFormat("%.*f", static_cast<int>(digits), value), &out)) {
      return out;
    }
    return value;
  }
  const double scale = std::pow(10.0, static_cast<double>(-digits));
  const double out = std::nearbyint(value / scale) * scale;
  return std::isfinite(out) ? out : 0.0;
}

absl::StatusOr<Var> Round(Evaluator&, Arguments& arguments) {
  const Var& value = arguments.positional[0];
  if (value.is_undefined()) return UndefinedError(value);
  if (!value.is_numeric()) {
    return TypeError(
        absl::StrCat("'round' needs a number, found ", TypeName(value)));
  }
  FUCINA_ASSIGN_OR_RETURN(const std::int64_t digits,
                          IntArgument("round", arguments, 1, 0));
  string_view method = "common";
  if (Given(arguments, 2)) {
    const Var& name = arguments.positional[2];
    method = name.is_string() ? string_view(name.bytes()) : string_view();
  }
  if (method == "common") {
    if (value.is_integral()) {
      if (digits >= 0) return Var::Int(value.integer());
      return TypeError("unsupported: 'round' of an integer to tens");
    }
    return Var::Float(RoundTo(value.real(), digits));
  }
  if (method != "ceil" && method != "floor") {
    return TypeError("'round' knows the methods common, ceil and floor");
  }
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = value.AsDouble() * scale;
  return Var::Float(
      (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

absl::StatusOr<Var> Safe(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(Text text, Str(evaluator, arguments.positional[0]));
  FUCINA_ASSIGN_OR_RETURN(const Var out, evaluator.NewString(std::move(text)));
  return out.AsMarkup();
}

absl::StatusOr<Var> ToString(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.positional[0].is_string()) return arguments.positional[0];
  FUCINA_ASSIGN_OR_RETURN(Text text, Str(evaluator, arguments.positional[0]));
  return evaluator.NewString(std::move(text));
}

absl::StatusOr<Var> Trim(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(const Text text,
                          Str(evaluator, arguments.positional[0]));
  std::optional<string_view> chars;
  if (Given(arguments, 1)) {
    if (!arguments.positional[1].is_string()) {
      return TypeError("'trim' needs a text");
    }
    chars = arguments.positional[1].bytes();
  }
  return evaluator.NewString(Strip(text, chars, true, true));
}

// Hugging Face's filter, not Jinja's: nothing is escaped for HTML.
absl::StatusOr<Var> ToJsonFilter(Evaluator& evaluator, Arguments& arguments) {
  JsonOptions options;
  options.ensure_ascii = BoolArgument(arguments, 1, false);
  options.sort_keys = BoolArgument(arguments, 4, false);
  if (Given(arguments, 2)) {
    const Var& indent = arguments.positional[2];
    if (indent.is_string()) {
      options.indent = indent.bytes();
    } else {
      FUCINA_ASSIGN_OR_RETURN(const std::int64_t width,
                              IntArgument("tojson", arguments, 2, 0));
      if (width > 1000) return TypeError("'tojson' with an indent over 1000");
      options.indent = std::string(
          static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
    }
    options.item_separator.resize(1);  // ", " loses its blank
  }
  if (Given(arguments, 3)) {
    FUCINA_ASSIGN_OR_RETURN(const std::vector<Var> separators,
                            evaluator.Items(arguments.positional[3]));
    if (separators.size() != 2 || !separators[0].is_string() ||
        !separators[1].is_string()) {
      return TypeError("'tojson' needs two texts as separators");
    }
    options.item_separator = separators[0].bytes();
    options.key_separator = separators[1].bytes();
  }
  FUCINA_ASSIGN_OR_RETURN(Text text,
                          ToJson(evaluator, arguments.positional[0], options));
  return evaluator.NewString(std::move(text));
}

constexpr Builtin kFilters[] = {
    {"abs", "", 0, Abs},
    {"capitalize", "", 0, MapCaseFilter<Case::kCapitalize>},
    {"count", "", 0, LengthFilter},
    {"d", "default_value,boolean", 0, Default},
    {"default", "default_value,boolean", 0, Default},
    {"float", "default", 0, ToFloat},
    {"indent", "width,first,blank", 0, Indent},
    {"int", "default,base", 0, ToInt},
    {"length", "", 0, LengthFilter},
    {"lower", "", 0, MapCaseFilter<Case::kLower>},
    {"replace", "old,new,count", 2, ReplaceFilter},
    {"round", "precision,method", 0, Round},
    {"safe", "", 0, Safe},
    {"string", "", 0, ToString},
    {"title", "", 0, MapCaseFilter<Case::kTitleWords>},
    {"tojson", "ensure_ascii,indent,separators,sort_keys", 0, ToJsonFilter},
    {"trim", "chars", 0, Trim},
    {"upper", "", 0, MapCaseFilter<Case::kUpper>},
};

}  // namespace

std::span<const Builtin> ValueFilters() { return kFilters; }

bool Given(const Arguments& arguments, std::size_t at) {
  const Var& value = arguments.positional[at];
  return !value.is_absent() && !value.is_none();
}

absl::StatusOr<std::int64_t> IntArgument(string_view what,
                                         const Arguments& arguments,
                                         std::size_t at,
                                         std::int64_t fallback) {
  if (!Given(arguments, at)) return fallback;
  const Var& value = arguments.positional[at];
  if (value.is_undefined()) return UndefinedError(value);
  if (!value.is_integral()) {
    return TypeError(
        absl::StrCat("'", what, "' needs an integer, found ", TypeName(value)));
  }
  return value.integer();
}

bool BoolArgument(const Arguments& arguments, std::size_t at, bool fallback) {
  const Var& value = arguments.positional[at];
  return value.is_absent() ? fallback : Truthy(value);
}

const Builtin* FindFilter(string_view name) {
  for (const std::span<const Builtin> table :
       {ValueFilters(), SequenceFilters()}) {
    for (const Builtin& filter : table) {
      if (filter.name == name) return &filter;
    }
  }
  return nullptr;
}

}  // namespace fucina::jinja
