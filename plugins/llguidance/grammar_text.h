#ifndef FUCINA_PLUGINS_LLGUIDANCE_GRAMMAR_TEXT_H_
#define FUCINA_PLUGINS_LLGUIDANCE_GRAMMAR_TEXT_H_

// What is checked and completed in a grammar's text before the engine sees it.
// The engine's readers recurse, and a stack overflow is no error that anybody
// could catch: depth is bounded here.

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fucina::llguidance {

// Measured, the engine takes up to 30 bytes for a byte of text, 110 for one of
// an expression and 600 for a name or value: with these limits no text costs it
// 512 MiB.
inline constexpr std::size_t kMaxGrammarBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxExpressionBytes = std::size_t{1} << 20;
inline constexpr int kMaxSchemaParts = 500000;
inline constexpr int kMaxLarkParts = 200000;
// Its reader of Lark recurses once for a bracket and once for a rule, whose
// chains may be as long as the text.
inline constexpr int kMaxLarkRules = 50000;
// The engine's JSON reader ends at 128.
inline constexpr int kMaxJsonDepth = 120;
inline constexpr int kMaxBracketDepth = 512;
// Sum over a schema's minItems and maxItems. The engine writes arrays out item
// by item before it looks at limits of its own: 10^9 items are gigabytes.
inline constexpr double kMaxArrayItems = 50000;

enum class GrammarKind { kJsonSchema, kLark, kRegex };

struct Grammar {
  GrammarKind kind = GrammarKind::kRegex;
  std::string text;     // for the engine: UTF-8, no NUL
  std::string warning;  // what of it has no effect; empty for nothing
};

// "json schema", "lark grammar", "regex".
absl::string_view Name(GrammarKind kind);

// A JSON schema. White space outside of strings is bounded, so that no reply
// can go on with blanks for ever: to 40 characters in one place, or to none
// with `compact`. What a schema's own "x-guidance" says of it is kept.
//
// InvalidArgument with line and column for text that is not JSON, a schema that
// is neither object nor boolean, two values of one name, numbers that the
// engine would round, what is beyond the limits, and `compact` together with
// white space that "x-guidance" describes. Keywords that mean nothing are
// warned of.
absl::StatusOr<Grammar> JsonSchemaGrammar(absl::string_view text, bool compact);

// A Lark grammar. Embedded schemas (%json) are completed like those above.
// InvalidArgument with line and column for what the engine would take and not
// do as asked: the attributes max_tokens, stop and temperature, and options
// that %llguidance does not have.
absl::StatusOr<Grammar> LarkGrammar(absl::string_view text);

// A regular expression, to match the whole reply.
absl::StatusOr<Grammar> RegexGrammar(absl::string_view text);

// Where in the schema the keyword stands first, as a JSON pointer, or empty:
// "#/properties/a/not". Names of properties are not keywords. REQUIRES: the
// text passed JsonSchemaGrammar.
std::string FindKeyword(absl::string_view schema, absl::string_view keyword);

// Shared by the two readers below this line.

// Too long, a NUL or bytes that are not UTF-8.
absl::Status CheckText(absl::string_view text);
// "line 3, column 7" of a byte in the text; both count from 1.
std::string Place(absl::string_view text, std::size_t offset);
// Bounds length and nesting of ( and [ of what may be a regular expression.
absl::Status CheckExpression(absl::string_view text);

struct CompletedSchema {
  std::string text;
  std::string warning;
};

// Checks one JSON schema and puts "x-guidance" into it.
absl::StatusOr<CompletedSchema> CompleteSchema(absl::string_view text,
                                               bool compact);

}  // namespace fucina::llguidance

#endif  // FUCINA_PLUGINS_LLGUIDANCE_GRAMMAR_TEXT_H_
