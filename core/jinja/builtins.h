#ifndef FUCINA_JINJA_BUILTINS_H_
#define FUCINA_JINJA_BUILTINS_H_

// Filters and tests by name.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/jinja/object.h"

namespace fucina::jinja {

class Evaluator;

// The arguments of a call, evaluated. `positional` includes a filter's input.
struct Arguments {
  std::vector<Var> positional;
  std::vector<std::pair<std::string, Var>> keywords;
};

struct Builtin {
  absl::string_view name;
  // Parameter names in order, comma-separated, the input excluded. One that
  // starts with '-' cannot be given by name. "..." takes anything.
  absl::string_view parameters;
  int required = 0;  // how many of them must be given
  // `arguments` holds the input, then one entry per parameter: kAbsent where
  // it was not given. With "..." they are passed as they came.
  absl::StatusOr<Var> (*call)(Evaluator& evaluator, Arguments& arguments);
};

// Null when there is no such filter or test.
const Builtin* FindFilter(absl::string_view name);
const Builtin* FindTest(absl::string_view name);

// Calls a filter or test with arguments as written; `what` is "filter" or
// "test" and stands in messages.
absl::StatusOr<Var> CallBuiltin(Evaluator& evaluator, absl::string_view what,
                                const Builtin& builtin, Arguments arguments);

// Orders positional and keyword arguments by a parameter list; see Builtin.
// `skip` leading positional arguments are kept in front. `what` names the
// function in messages.
absl::StatusOr<std::vector<Var>> BindArguments(absl::string_view what,
                                               absl::string_view parameters,
                                               int required,
                                               Arguments arguments,
                                               std::size_t skip);

}  // namespace fucina::jinja

#endif  // FUCINA_JINJA_BUILTINS_H_
