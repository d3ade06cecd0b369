#ifndef FUCINA_JINJA_METHODS_H_
#define FUCINA_JINJA_METHODS_H_

// The methods that strings, lists and dicts have, and what filters share with
// them.

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/jinja/object.h"

namespace fucina::jinja {

class Evaluator;

// Also true for methods of Python's types that are not supported: asking for
// one must not look like an absent key. Calling it is an error by name.
bool HasMethod(const Var& object, absl::string_view name);

// str.isupper and str.islower.
bool HasOneCase(absl::string_view bytes, bool upper);

// str.replace, with the result's size charged before it is made.
absl::StatusOr<Var> ReplaceText(Evaluator& evaluator, const Text& text,
                                absl::string_view from, const Text& to,
                                std::int64_t most);

}  // namespace fucina::jinja

#endif  // FUCINA_JINJA_METHODS_H_
