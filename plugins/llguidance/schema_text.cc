// JSON schemas as texts: checked, and completed by options of the engine.

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "grammar_text.h"
#include "schema_readers.h"

namespace fucina::llguidance {
namespace {

constexpr char kBoundedSpace[] =
    R"("whitespace_pattern":"[\\x20\\x0A\\x0D\\x09]{1,40}")";
constexpr char kNoSpace[] = R"("whitespace_flexible":false)";
constexpr char kGuidance[] = "\"x-guidance\"";

// The value of the schema's own "x-guidance", or an empty one. REQUIRES: the
// text is JSON.
absl::string_view FindGuidance(absl::string_view text) {
  int depth = 0;
  std::size_t found = 0;  // where the value begins, 0: not yet
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (found > 0 && i >= found && depth == 1) {
      return text.substr(found, i + 1 - found);
    }
    if (c != '"') continue;
    const bool is_name =
        depth == 1 && absl::StartsWith(text.substr(i), kGuidance);
    for (++i; text[i] != '"'; ++i) {
      if (text[i] == '\\') ++i;
    }
    if (!is_name) continue;
    const std::size_t next = text.find_first_not_of(" \t\r\n", i + 1);
    // A string value of the same text has no colon behind it.
    if (text[next] != ':') continue;
    found = text.find_first_not_of(" \t\r\n", next + 1);
    i = found - 1;
  }
  return {};
}

// Whether it says itself how white space is written.
bool SaysSpace(const Json& guidance) {
  const auto flexible = guidance.find("whitespace_flexible");
  return guidance.contains("whitespace_pattern") ||
         (flexible != guidance.end() && *flexible == false);
}

// The characters that may stand behind a backslash in a reply's texts, where
// the engine's own choice is wrong, as an option; else empty.
//
// Names that are taken are told by their plain spelling: "\u0062" passed for a
// name other than "b", with a value of any type. Without \u no text has control
// characters but those with an escape of their own.
std::string Escapes(const SchemaReader& reader) {
  const bool quotes = reader.lossy_pattern().empty();
  const bool numbers = !reader.has_names();
  if (quotes && numbers) return "";
  return absl::StrCat(R"("json_allowed_escapes":"nrbtf)",
                      quotes ? R"(\"\\)" : "", numbers ? "u" : "", "\"");
}

// The engine leaves out the characters of a literal that have no escape.
absl::Status CheckLiterals(const SchemaReader& reader) {
  if (!reader.lossy_pattern().empty() && !reader.quoted_literal().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the text with \" or \\ at ", reader.quoted_literal(),
        " cannot stand beside the pattern at ", reader.lossy_pattern(),
        ", of which the engine cannot tell whether it excludes them"));
  }
  if (reader.has_names() && !reader.numbered_literal().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the text with a control character at ", reader.numbered_literal(),
        " is not supported in a schema that names properties"));
  }
  return absl::OkStatus();
}

// `text` with what its "x-guidance" does not say.
absl::StatusOr<std::string> WithGuidance(absl::string_view text,
                                         const SchemaReader& reader,
                                         bool compact) {
  std::vector<std::string> options = {compact ? kNoSpace : kBoundedSpace};
  const std::string escapes = Escapes(reader);
  if (!reader.has_guidance()) {
    if (!escapes.empty()) options.push_back(escapes);
    const std::size_t open = text.find('{') + 1;
    return absl::StrCat(text.substr(0, open), kGuidance, ":{",
                        absl::StrJoin(options, ","), "}",
                        reader.has_keys() ? "," : "", text.substr(open));
  }
  const absl::string_view value = FindGuidance(text);
  if (value.empty()) {
    return absl::InvalidArgumentError(
        "x-guidance is spelled with escapes, which is not supported");
  }
  const Json guidance = Json::parse(value.begin(), value.end(), nullptr,
                                    /*allow_exceptions=*/false);
  // The engine says what is wrong with another value.
  if (!guidance.is_object()) return std::string(text);
  if (SaysSpace(guidance)) {
    if (compact) {
      return absl::InvalidArgumentError(
          "the schema says itself how white space is written (x-guidance), so "
          "that it cannot be made compact");
    }
    options.clear();
  }
  if (!escapes.empty() && !guidance.contains("json_allowed_escapes")) {
    options.push_back(escapes);
  }
  const auto open = static_cast<std::size_t>(value.data() - text.data()) + 1;
  return absl::StrCat(text.substr(0, open), absl::StrJoin(options, ","),
                      guidance.empty() || options.empty() ? "" : ",",
                      text.substr(open));
}

// The keywords that mean nothing, each with its first place; empty for none.
std::string UnknownKeywords(absl::string_view text) {
  constexpr std::size_t kMostNamed = 8;
  std::set<std::string> seen;
  std::vector<std::string> named;
  KeywordReader reader(
      [&](absl::string_view name, bool sure, const Position& at) {
        if (!sure || IsOneOf(kKeywords, name) || IsOneOf(kAnnotations, name) ||
            absl::StartsWith(name, "x-") || !seen.emplace(name).second) {
          return true;
        }
        if (named.size() < kMostNamed) named.push_back(at.Pointer());
        return true;
      });
  Json::sax_parse(text.begin(), text.end(), &reader);
  if (named.empty()) return "";
  std::string list = absl::StrJoin(named, ", ");
  if (seen.size() > named.size()) {
    absl::StrAppend(&list, " and ", seen.size() - named.size(), " more");
  }
  return absl::StrCat("unknown keywords have no effect: ", list);
}

}  // namespace

absl::StatusOr<CompletedSchema> CompleteSchema(absl::string_view text,
                                               bool compact) {
  SchemaReader reader;
  if (!Json::sax_parse(text.begin(), text.end(), &reader)) {
    if (!reader.status().ok()) {
      return absl::InvalidArgumentError(
          Printable(reader.status().message(), 400));
    }
    return absl::InvalidArgumentError(
        absl::StrCat(Place(text, reader.position()),
                     ": not JSON: ", Printable(reader.error(), 200)));
  }
  if (!reader.root_is_schema()) {
    return absl::InvalidArgumentError(
        "expected an object, or true or false, found another JSON value");
  }
  const absl::string_view bare = absl::StripAsciiWhitespace(text);
  if (bare == "true") {
    return CompletedSchema{
        absl::StrCat("{", kGuidance, ":{", compact ? kNoSpace : kBoundedSpace,
                     "}}"),
        ""};
  }
  if (bare == "false") return CompletedSchema{std::string(bare), ""};
  if (const std::string place = reader.lossy_multiple(); !place.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "several multipleOf may govern one number (the last is at ", place,
        "), and their least common multiple without its decimal point is more "
        "than ",
        Multiples::kMaxCommon,
        ", with which the engine cannot count; write one of them instead"));
  }
  FUCINA_RETURN_IF_ERROR(CheckLiterals(reader));
  FUCINA_ASSIGN_OR_RETURN(std::string schema,
                          WithGuidance(text, reader, compact));
  std::vector<std::string> warnings;
  if (!reader.lossy_pattern().empty()) {
    warnings.push_back(
        absl::StrCat("no text will have a \" or \\: of the pattern at ",
                     reader.lossy_pattern(),
                     " the engine cannot tell whether it excludes them"));
  }
  std::string unknown = UnknownKeywords(text);
  if (!unknown.empty()) warnings.push_back(std::move(unknown));
  return CompletedSchema{std::move(schema), absl::StrJoin(warnings, "; ")};
}

absl::StatusOr<Grammar> JsonSchemaGrammar(absl::string_view text,
                                          bool compact) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");
  FUCINA_RETURN_IF_ERROR(CheckText(text));
  FUCINA_ASSIGN_OR_RETURN(CompletedSchema schema,
                          CompleteSchema(text, compact));
  return Grammar{GrammarKind::kJsonSchema, std::move(schema.text),
                 std::move(schema.warning)};
}

std::string FindKeyword(absl::string_view schema, absl::string_view keyword) {
  std::string found;
  KeywordReader reader([&](absl::string_view name, bool, const Position& at) {
    if (name == keyword) found = at.Pointer();
    return found.empty();
  });
  Json::sax_parse(schema.begin(), schema.end(), &reader);
  return found;
}

}  // namespace fucina::llguidance
