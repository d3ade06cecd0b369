#ifndef FUCINA_TEXT_JSON_VALUE_H_
#define FUCINA_TEXT_JSON_VALUE_H_

// JSON text to the values that templates see, and back. The JSON library stays
// behind this door.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/jinja/value.h"

namespace fucina {

// Parses one JSON value; key order is kept, a repeated key keeps its last
// value, integers of any size keep their digits, strings are data. `what`
// names the text in messages. InvalidArgument with the byte position for text
// that is no JSON, or that nests deeper than 100 levels.
absl::StatusOr<jinja::Value> ParseJson(absl::string_view what,
                                       absl::string_view text);

// Compact JSON: no blanks, non-ASCII as it is.
std::string WriteJson(const jinja::Value& value);

}  // namespace fucina

#endif  // FUCINA_TEXT_JSON_VALUE_H_
