#ifndef FUCINA_JINJA_METHOD_TABLE_H_
#define FUCINA_JINJA_METHOD_TABLE_H_

// How the methods of a type are listed, and what their arguments share.

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/jinja/object.h"

namespace fucina::jinja {

class Evaluator;

struct MethodEntry {
  absl::string_view name;
  absl::string_view parameters;  // as in Builtin
  int required;
  // Null for a method that Python has and this does not. `args` are bound:
  // [self, parameter…].
  absl::StatusOr<Var> (*call)(Evaluator& evaluator, std::vector<Var>& args);
};

std::span<const MethodEntry> StrMethods();

// TypeError unless `value` is a text; `what` names the method.
absl::Status NeedText(absl::string_view what, const Var& value);

// `fallback` for an absent argument and for None; TypeError for no integer.
absl::StatusOr<std::int64_t> IntOr(absl::string_view what, const Var& value,
                                   std::int64_t fallback);

}  // namespace fucina::jinja

#endif  // FUCINA_JINJA_METHOD_TABLE_H_
