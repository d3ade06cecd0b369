#ifndef FUCINA_JINJA_PARSER_H_
#define FUCINA_JINJA_PARSER_H_

// Tokens to a tree. Precedences and quirks are those of Jinja 3.1: filters bind
// tighter than arithmetic, `**` groups to the left, comparisons chain.

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/jinja/ast.h"
#include "fucina/jinja/template.h"

namespace fucina::jinja {

// InvalidArgument with line and column, see Template::Parse.
absl::StatusOr<ParsedTemplate> ParseTemplate(absl::string_view name,
                                             absl::string_view source,
                                             const ParseOptions& options);

}  // namespace fucina::jinja

#endif  // FUCINA_JINJA_PARSER_H_
