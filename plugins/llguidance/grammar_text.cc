#include "grammar_text.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "fucina/diag/status_macros.h"

namespace fucina::llguidance {
namespace {

// Bytes of the character at the front of `text`, 0 when it is none.
std::size_t CharacterBytes(absl::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint8_t>(text[i]);
  };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // No overlong forms, no surrogates, nothing beyond U+10FFFF.
  const std::uint8_t second = byte(1);
  const bool bad =
      (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
      (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
  return bad ? 0 : size;
}

}  // namespace

absl::string_view Name(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::kJsonSchema:
      return "json schema";
    case GrammarKind::kLark:
      return "lark grammar";
    case GrammarKind::kRegex:
      return "regex";
  }
  return "";
}

std::string Place(absl::string_view text, std::size_t offset) {
  const absl::string_view before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column =
      start == absl::string_view::npos ? offset + 1 : offset - start;
  return absl::StrCat("line ", line, ", column ", column);
}

absl::Status CheckText(absl::string_view text) {
  if (text.size() > kMaxGrammarBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the text has ", text.size(), " bytes, at most ",
                     kMaxGrammarBytes, " are read"));
  }
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t size = CharacterBytes(text.substr(i));
    if (size == 0 || text[i] == '\0') {
      return absl::InvalidArgumentError(absl::StrCat(
          Place(text, i), ": ", size == 0 ? "not UTF-8" : "a NUL byte"));
    }
    i += size;
  }
  return absl::OkStatus();
}

absl::Status CheckExpression(absl::string_view text) {
  if (text.size() > kMaxExpressionBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a text in it has ", text.size(), " bytes, at most ",
                     kMaxExpressionBytes, " are read"));
  }
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\') {
      ++i;
    } else if (c == '(' || c == '[') {
      if (++depth > kMaxBracketDepth) {
        return absl::InvalidArgumentError(
            absl::StrCat("its brackets are nested deeper than ",
                         kMaxBracketDepth, ", which is not supported"));
      }
    } else if (c == ')' || c == ']') {
      depth = std::max(0, depth - 1);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Grammar> RegexGrammar(absl::string_view text) {
  FUCINA_RETURN_IF_ERROR(CheckText(text));
  FUCINA_RETURN_IF_ERROR(CheckExpression(text));
  return Grammar{GrammarKind::kRegex, std::string(text), ""};
}

}  // namespace fucina::llguidance
