#ifndef FUCINA_JINJA_PYTHON_H_
#define FUCINA_JINJA_PYTHON_H_

// What Python's operators and conversions do, on the evaluator's values. Errors
// are those that Python would raise, in our words; they carry no place, the
// evaluator adds it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/jinja/ast.h"
#include "core/jinja/object.h"

namespace fucina::jinja {

class Evaluator;

// The error for using an undefined value.
absl::Status UndefinedError(const Var& value);
// InvalidArgument with `message`.
absl::Status TypeError(absl::string_view message);

bool Truthy(const Var& value);

// str(x), repr(x). Undefined prints as nothing.
absl::StatusOr<Text> Str(Evaluator& evaluator, const Var& value);
absl::StatusOr<Text> Repr(Evaluator& evaluator, const Var& value);
std::string FloatRepr(double value);

// json.dumps. An indent of nullopt is Python's None.
struct JsonOptions {
  bool ensure_ascii = false;
  std::optional<std::string> indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};
absl::StatusOr<Text> ToJson(Evaluator& evaluator, const Var& value,
                            const JsonOptions& options);

absl::StatusOr<bool> Equal(Evaluator& evaluator, const Var& a, const Var& b);
// a < b; an error for types that have no order.
absl::StatusOr<bool> Less(Evaluator& evaluator, const Var& a, const Var& b);
absl::StatusOr<bool> Compare(Evaluator& evaluator, Operator op, const Var& a,
                             const Var& b);
// `item in container`.
absl::StatusOr<bool> Contains(Evaluator& evaluator, const Var& container,
                              const Var& item);
absl::StatusOr<Var> Arithmetic(Evaluator& evaluator, Operator op, const Var& a,
                               const Var& b);
absl::StatusOr<Var> Negate(const Var& value);
// len(x).
absl::StatusOr<std::int64_t> Length(Evaluator& evaluator, const Var& value);

// int(x), float(x) of texts: nullopt where Python raises ValueError; an error
// for an integer past 64 bits.
absl::StatusOr<std::optional<std::int64_t>> ParseInt(absl::string_view text,
                                                     int base);
std::optional<double> ParseFloat(absl::string_view text);

// Stable sort by Less over `keys`; permutes `items` with them.
absl::Status SortByKey(Evaluator& evaluator, std::vector<Var>* keys,
                       std::vector<Var>* items, bool reverse);

}  // namespace fucina::jinja

#endif  // FUCINA_JINJA_PYTHON_H_
