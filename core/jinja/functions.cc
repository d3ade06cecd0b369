// The global functions that a template may call.

#include <cstdlib>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/jinja/evaluator.h"
#include "core/jinja/python.h"
#include "fucina/diag/status_macros.h"

namespace fucina::jinja {
namespace {

// As Jinja's sandbox has it.
constexpr std::int64_t kMaxRange = 100'000;

absl::StatusOr<Var> Range(Evaluator& evaluator, Arguments arguments) {
  FUCINA_ASSIGN_OR_RETURN(
      const std::vector<Var> args,
      BindArguments("range", "-start,-stop,-step", 1, std::move(arguments), 0));
  std::int64_t bounds[3] = {0, 0, 1};
  for (std::size_t i = 0; i < 3; ++i) {
    if (args[i].is_absent()) continue;
    if (args[i].is_undefined()) return UndefinedError(args[i]);
    if (!args[i].is_integral()) {
      return TypeError(
          absl::StrCat("range needs integers, found ", TypeName(args[i])));
    }
    bounds[i] = args[i].integer();
  }
  if (args[1].is_absent()) std::swap(bounds[0], bounds[1]);
  const auto [start, stop, step] = bounds;
  if (step == 0) return TypeError("the step of range cannot be 0");
  std::vector<Var> items;
  for (std::int64_t at = start; step > 0 ? at < stop : at > stop;) {
    if (static_cast<std::int64_t>(items.size()) >= kMaxRange) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "range is longer than the ", kMaxRange, " numbers allowed"));
    }
    items.push_back(Var::Int(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return evaluator.NewSequence(Sequence::Flavor::kRange, std::move(items));
}

// dict(mapping or pairs, key=value …); also what namespace() and update() take.
absl::StatusOr<Var> MakeDict(Evaluator& evaluator, absl::string_view what,
                             Arguments arguments) {
  FUCINA_ASSIGN_OR_RETURN(Var out, evaluator.NewDict());
  if (arguments.positional.size() > 1) {
    return TypeError(absl::StrCat(what, " takes at most one argument"));
  }
  if (!arguments.positional.empty()) {
    const Var& source = arguments.positional[0];
    if (source.is_dict()) {
      const auto entries = source.dict().entries;
      for (const auto& [key, value] : entries) {
        FUCINA_RETURN_IF_ERROR(evaluator.SetKey(out.dict(), key, value));
      }
    } else {
      FUCINA_ASSIGN_OR_RETURN(const std::vector<Var> pairs,
                              evaluator.Items(source));
      for (const Var& pair : pairs) {
        FUCINA_ASSIGN_OR_RETURN(const std::vector<Var> parts,
                                evaluator.Items(pair));
        if (parts.size() != 2) {
          return TypeError(absl::StrCat(what, " needs pairs, found ",
                                        parts.size(), " elements"));
        }
        FUCINA_RETURN_IF_ERROR(
            evaluator.SetKey(out.dict(), parts[0], parts[1]));
      }
    }
  }
  for (auto& [name, value] : arguments.keywords) {
    FUCINA_ASSIGN_OR_RETURN(Var key,
                            evaluator.NewString(name, Origin::kTemplate));
    FUCINA_RETURN_IF_ERROR(
        evaluator.SetKey(out.dict(), std::move(key), std::move(value)));
  }
  return out;
}

absl::StatusOr<Var> StrftimeNow(Evaluator& evaluator, Arguments arguments) {
  FUCINA_ASSIGN_OR_RETURN(
      const std::vector<Var> args,
      BindArguments("strftime_now", "format", 1, std::move(arguments), 0));
  if (!args[0].is_string()) return TypeError("strftime_now needs a text");
  const std::time_t now = evaluator.options().now.value_or(std::time(nullptr));
  std::tm local{};
  if (localtime_r(&now, &local) == nullptr) {
    return TypeError("strftime_now: the time cannot be told");
  }
  const std::string& format = args[0].bytes();
  if (format.size() > 1000) {
    return TypeError("strftime_now: a format over 1000 bytes");
  }
  // Only what C and Python agree on.
  static constexpr absl::string_view kKnown =
      "aAbBcdHIjmMpSUwWxXyYZ%zeDFTRuVGghnt";
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') continue;
    ++i;
    if (i < format.size() && format[i] == '-') ++i;  // no padding
    if (i >= format.size() ||
        kKnown.find(format[i]) == absl::string_view::npos) {
      return TypeError(
          absl::StrCat("unsupported format of strftime_now: '", format, "'"));
    }
  }
  if (format.empty()) return evaluator.NewString("", Origin::kTemplate);
  std::string out(format.size() * 32 + 64, '\0');
// The format was checked above.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  out.resize(std::strftime(out.data(), out.size(), format.c_str(), &local));
#pragma GCC diagnostic pop
  return evaluator.NewString(out, Origin::kTemplate);
}

}  // namespace

absl::StatusOr<Var> Evaluator::CallFunction(Function function,
                                            Arguments arguments) {
  switch (function) {
    case Function::kCycler: {
      if (arguments.positional.empty() || !arguments.keywords.empty()) {
        return TypeError("cycler needs values");
      }
      FUCINA_RETURN_IF_ERROR(
          ChargeBytes(arguments.positional.size() * sizeof(Var)));
      auto* cycler = New<Cycler>();
      cycler->items = std::move(arguments.positional);
      return Var::Of(VarKind::kCycler, cycler);
    }
    case Function::kDict:
      return MakeDict(*this, "dict", std::move(arguments));
    case Function::kJoiner: {
      FUCINA_ASSIGN_OR_RETURN(
          const std::vector<Var> args,
          BindArguments("joiner", "sep", 0, std::move(arguments), 0));
      auto* joiner = New<Joiner>();
      joiner->separator = args[0];
      if (args[0].is_absent()) {
        FUCINA_ASSIGN_OR_RETURN(joiner->separator,
                                NewString(", ", Origin::kTemplate));
      }
      FUCINA_RETURN_IF_ERROR(ChargeBytes(sizeof(Joiner)));
      return Var::Of(VarKind::kJoiner, joiner);
    }
    case Function::kNamespace: {
      FUCINA_ASSIGN_OR_RETURN(
          const Var dict, MakeDict(*this, "namespace", std::move(arguments)));
      return Var::Of(VarKind::kNamespace, &dict.dict());
    }
    case Function::kRaiseException: {
      FUCINA_ASSIGN_OR_RETURN(const std::vector<Var> args,
                              BindArguments("raise_exception", "message", 1,
                                            std::move(arguments), 0));
      FUCINA_ASSIGN_OR_RETURN(const Text text, Str(*this, args[0]));
      return absl::InvalidArgumentError(
          absl::StrCat("the template refuses: ", text.bytes()));
    }
    case Function::kRange:
      return Range(*this, std::move(arguments));
    case Function::kStrftimeNow:
      return StrftimeNow(*this, std::move(arguments));
  }
  return absl::InternalError("unknown function");
}

}  // namespace fucina::jinja
