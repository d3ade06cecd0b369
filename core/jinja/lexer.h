#ifndef FUCINA_JINJA_LEXER_H_
#define FUCINA_JINJA_LEXER_H_

// Template text to tokens. White-space control, trim_blocks, lstrip_blocks,
// raw blocks and comments end here: the parser sees text and expressions only.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/jinja/ast.h"
#include "fucina/jinja/template.h"

namespace fucina::jinja {

enum class TokenKind : std::uint8_t {
  kText,        // template text outside tags
  kPrintBegin,  // {{
  kPrintEnd,    // }}
  kBlockBegin,  // {%
  kBlockEnd,    // %}
  kName,
  kString,  // text is the decoded value
  kInt,
  kFloat,
  kOperator,  // text is its spelling
  kEnd,       // of the source
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  Place place;
  std::string text;
  std::int64_t integer = 0;
  double real = 0;
};

// InvalidArgument "NAME, line L, column C: MESSAGE".
absl::Status ErrorAt(absl::string_view name, Place place,
                     absl::string_view message);

// The tokens of `source`, the last one kEnd. InvalidArgument with line and
// column for an unclosed comment, raw block or string, a bad escape, brackets
// that do not match, and characters that start no token.
absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view name,
                                            absl::string_view source,
                                            const ParseOptions& options);

}  // namespace fucina::jinja

#endif  // FUCINA_JINJA_LEXER_H_
