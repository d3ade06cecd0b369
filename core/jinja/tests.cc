// The tests that `is` knows.

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/jinja/builtins.h"
#include "core/jinja/evaluator.h"
#include "core/jinja/methods.h"
#include "core/jinja/python.h"
#include "fucina/diag/status_macros.h"

namespace fucina::jinja {
namespace {

using absl::string_view;

template <VarKind kKind>
absl::StatusOr<Var> IsKind(Evaluator&, Arguments& arguments) {
  return Var::Bool(arguments.positional[0].kind() == kKind);
}

absl::StatusOr<Var> IsDefined(Evaluator&, Arguments& arguments) {
  return Var::Bool(!arguments.positional[0].is_undefined());
}

template <bool kValue>
absl::StatusOr<Var> IsBool(Evaluator&, Arguments& arguments) {
  const Var& value = arguments.positional[0];
  return Var::Bool(value.kind() == VarKind::kBool &&
                   value.bool_value() == kValue);
}

absl::StatusOr<Var> IsInteger(Evaluator&, Arguments& arguments) {
  const VarKind kind = arguments.positional[0].kind();
  return Var::Bool(kind == VarKind::kInt || kind == VarKind::kNumber);
}

absl::StatusOr<Var> IsNumber(Evaluator&, Arguments& arguments) {
  const Var& value = arguments.positional[0];
  return Var::Bool(value.is_numeric() || value.kind() == VarKind::kNumber);
}

absl::StatusOr<Var> IsCallable(Evaluator&, Arguments& arguments) {
  switch (arguments.positional[0].kind()) {
    case VarKind::kMacro:
    case VarKind::kFunction:
    case VarKind::kMethod:
    case VarKind::kLoop:
    case VarKind::kJoiner:
    case VarKind::kUndefined:  // Python's Undefined has a call operator
      return Var::Bool(true);
    default:
      return Var::Bool(false);
  }
}

absl::StatusOr<Var> IsIterable(Evaluator&, Arguments& arguments) {
  switch (arguments.positional[0].kind()) {
    case VarKind::kUndefined:
    case VarKind::kString:
    case VarKind::kSequence:
    case VarKind::kDict:
    case VarKind::kLoop:
      return Var::Bool(true);
    default:
      return Var::Bool(false);
  }
}

// Has a length and can be indexed; of dicts and undefined values, too.
absl::StatusOr<Var> IsSequence(Evaluator&, Arguments& arguments) {
  const Var& value = arguments.positional[0];
  if (value.is_sequence()) {
    const Sequence::Flavor flavor = value.sequence().flavor;
    return Var::Bool(flavor != Sequence::Flavor::kView &&
                     flavor != Sequence::Flavor::kIterator);
  }
  return Var::Bool(value.is_string() || value.is_dict() ||
                   value.is_undefined());
}

template <Operator kOp>
absl::StatusOr<Var> IsCompared(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(const bool holds,
                          Compare(evaluator, kOp, arguments.positional[0],
                                  arguments.positional[1]));
  return Var::Bool(holds);
}

absl::StatusOr<Var> Modulo(Evaluator& evaluator, const Var& value,
                           const Var& divisor) {
  if (value.is_string()) {
    return TypeError("a text cannot be divided");
  }
  return Arithmetic(evaluator, Operator::kModulo, value, divisor);
}

template <int kRest>
absl::StatusOr<Var> IsParity(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(
      const Var rest, Modulo(evaluator, arguments.positional[0], Var::Int(2)));
  return Var::Bool(rest.AsDouble() == kRest);
}

absl::StatusOr<Var> IsDivisible(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(
      const Var rest,
      Modulo(evaluator, arguments.positional[0], arguments.positional[1]));
  return Var::Bool(!Truthy(rest));
}

absl::StatusOr<Var> IsSame(Evaluator& evaluator, Arguments& arguments) {
  const Var& a = arguments.positional[0];
  const Var& b = arguments.positional[1];
  if (a.kind() != b.kind()) return Var::Bool(false);
  switch (a.kind()) {
    case VarKind::kSequence:
    case VarKind::kDict:
      return Var::Bool(a.object() == b.object());
    default: {
      FUCINA_ASSIGN_OR_RETURN(const bool equal, Equal(evaluator, a, b));
      return Var::Bool(equal);
    }
  }
}

template <bool kUpper>
absl::StatusOr<Var> IsCase(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(const Text text,
                          Str(evaluator, arguments.positional[0]));
  return Var::Bool(HasOneCase(text.bytes(), kUpper));
}

template <bool kFilter>
absl::StatusOr<Var> IsKnown(Evaluator&, Arguments& arguments) {
  const Var& name = arguments.positional[0];
  if (!name.is_string()) return TypeError("a name must be a text");
  return Var::Bool(
      (kFilter ? FindFilter(name.bytes()) : FindTest(name.bytes())) != nullptr);
}

constexpr Builtin kTests[] = {
    {"boolean", "", 0, IsKind<VarKind::kBool>},
    {"callable", "", 0, IsCallable},
    {"defined", "", 0, IsDefined},
    {"divisibleby", "num", 1, IsDivisible},
    {"eq", "other", 1, IsCompared<Operator::kEqual>},
    {"equalto", "other", 1, IsCompared<Operator::kEqual>},
    {"==", "other", 1, IsCompared<Operator::kEqual>},
    {"even", "", 0, IsParity<0>},
    {"false", "", 0, IsBool<false>},
    {"filter", "", 0, IsKnown<true>},
    {"float", "", 0, IsKind<VarKind::kFloat>},
    {"ge", "other", 1, IsCompared<Operator::kGreaterEqual>},
    {">=", "other", 1, IsCompared<Operator::kGreaterEqual>},
    {"greaterthan", "other", 1, IsCompared<Operator::kGreater>},
    {"gt", "other", 1, IsCompared<Operator::kGreater>},
    {">", "other", 1, IsCompared<Operator::kGreater>},
    {"in", "seq", 1, IsCompared<Operator::kIn>},
    {"integer", "", 0, IsInteger},
    {"iterable", "", 0, IsIterable},
    {"le", "other", 1, IsCompared<Operator::kLessEqual>},
    {"<=", "other", 1, IsCompared<Operator::kLessEqual>},
    {"lessthan", "other", 1, IsCompared<Operator::kLess>},
    {"lower", "", 0, IsCase<false>},
    {"lt", "other", 1, IsCompared<Operator::kLess>},
    {"<", "other", 1, IsCompared<Operator::kLess>},
    {"mapping", "", 0, IsKind<VarKind::kDict>},
    {"ne", "other", 1, IsCompared<Operator::kNotEqual>},
    {"!=", "other", 1, IsCompared<Operator::kNotEqual>},
    {"none", "", 0, IsKind<VarKind::kNone>},
    {"number", "", 0, IsNumber},
    {"odd", "", 0, IsParity<1>},
    {"sameas", "other", 1, IsSame},
    {"sequence", "", 0, IsSequence},
    {"string", "", 0, IsKind<VarKind::kString>},
    {"test", "", 0, IsKnown<false>},
    {"true", "", 0, IsBool<true>},
    {"undefined", "", 0, IsKind<VarKind::kUndefined>},
    {"upper", "", 0, IsCase<true>},
};

}  // namespace

const Builtin* FindTest(string_view name) {
  for (const Builtin& test : kTests) {
    if (test.name == name) return &test;
  }
  return nullptr;
}

}  // namespace fucina::jinja
