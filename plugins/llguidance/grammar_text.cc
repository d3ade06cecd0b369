#include "grammar_text.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"

namespace fucina::llguidance {
namespace {

using Json = nlohmann::json;

constexpr char kBoundedSpace[] =
    R"("x-guidance":{"whitespace_pattern":"[\\x20\\x0A\\x0D\\x09]{1,40}"})";
constexpr char kNoSpace[] = R"("x-guidance":{"whitespace_flexible":false})";

absl::Status TooDeep(absl::string_view what, int limit) {
  return absl::InvalidArgumentError(absl::StrCat(
      what, " are nested deeper than ", limit, ", which is not supported"));
}

// Takes the parser's events; the parser keeps its own stack and never recurses.
class SchemaReader {
 public:
  bool null() { return Value(); }
  bool boolean(bool) {
    if (depth_ == 0) root_is_schema_ = true;
    return true;
  }
  bool number_integer(Json::number_integer_t value) {
    return Number(static_cast<double>(value));
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    return Number(static_cast<double>(value));
  }
  bool number_float(Json::number_float_t value, const std::string&) {
    return Number(value);
  }
  // A string may be a regular expression, whose reader recurses too.
  bool string(std::string& text) {
    return Value() && Keep(CheckRegexDepth(text));
  }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) {
    if (depth_ == 0) root_is_schema_ = true;
    return Open();
  }
  bool key(std::string& text) {
    if (depth_ == 1) {
      has_keys_ = true;
      has_guidance_ |= text == "x-guidance";
    }
    bounds_items_ = text == "minItems" || text == "maxItems";
    return Keep(CheckRegexDepth(text));
  }
  bool end_object() { return Close(); }
  bool start_array(std::size_t) { return Open(); }
  bool end_array() { return Close(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) {
    // The text behind the library's own name and number.
    const absl::string_view what = error.what();
    const std::size_t at = what.find(": ");
    error_ =
        std::string(at == absl::string_view::npos ? what : what.substr(at + 2));
    position_ = position > 0 ? position - 1 : 0;
    return false;
  }

  const absl::Status& status() const { return status_; }
  const std::string& error() const { return error_; }
  std::size_t position() const { return position_; }
  bool root_is_schema() const { return root_is_schema_; }
  bool has_keys() const { return has_keys_; }
  bool has_guidance() const { return has_guidance_; }

 private:
  bool Value() {
    bounds_items_ = false;
    return true;
  }
  bool Number(double value) {
    if (bounds_items_ && value > 0) items_ += value;
    return Value() && (items_ <= kMaxArrayItems ||
                       Keep(absl::InvalidArgumentError(absl::StrCat(
                           "its minItems and maxItems add up to more than ",
                           kMaxArrayItems, ", which is not supported"))));
  }
  bool Keep(absl::Status status) {
    status_.Update(status);
    return status_.ok();
  }
  bool Open() {
    bounds_items_ = false;
    return ++depth_ <= kMaxJsonDepth ||
           Keep(TooDeep("its objects and arrays", kMaxJsonDepth));
  }
  bool Close() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  bool root_is_schema_ = false;
  bool has_keys_ = false;
  bool has_guidance_ = false;
  bool bounds_items_ = false;  // the value to come is minItems or maxItems
  double items_ = 0;           // their sum
  std::string error_;
  std::size_t position_ = 0;
  absl::Status status_;
};

absl::string_view WithoutMark(absl::string_view text) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");
  return text;
}

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

std::string Pointer(const std::string& at, absl::string_view key) {
  return absl::StrCat(at, "/",
                      absl::StrReplaceAll(key, {{"~", "~0"}, {"/", "~1"}}));
}

// Depth-first, in the order of the text as far as objects keep it.
std::string Search(const nlohmann::ordered_json& schema,
                   absl::string_view keyword, const std::string& at) {
  static constexpr absl::string_view kMaps[] = {
      "properties", "patternProperties", "$defs", "definitions",
      "dependentSchemas"};
  static constexpr absl::string_view kData[] = {"enum", "const", "default",
                                                "examples", "x-guidance"};
  const auto is_one_of = [](std::span<const absl::string_view> names,
                            absl::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (schema.is_array()) {
    for (std::size_t i = 0; i < schema.size(); ++i) {
      std::string found = Search(schema[i], keyword, absl::StrCat(at, "/", i));
      if (!found.empty()) return found;
    }
  }
  if (!schema.is_object()) return "";
  for (const auto& [key, value] : schema.items()) {
    if (key == keyword) return Pointer(at, key);
    if (is_one_of(kData, key)) continue;
    if (is_one_of(kMaps, key) && value.is_object()) {
      for (const auto& [name, child] : value.items()) {
        std::string found =
            Search(child, keyword, Pointer(Pointer(at, key), name));
        if (!found.empty()) return found;
      }
      continue;
    }
    std::string found = Search(value, keyword, Pointer(at, key));
    if (!found.empty()) return found;
  }
  return "";
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

absl::Status CheckRegexDepth(absl::string_view regex) {
  int depth = 0;
  for (std::size_t i = 0; i < regex.size(); ++i) {
    const char c = regex[i];
    if (c == '\\') {
      ++i;
    } else if (c == '(' || c == '[') {
      if (++depth > kMaxBracketDepth) {
        return TooDeep("its brackets", kMaxBracketDepth);
      }
    } else if (c == ')' || c == ']') {
      depth = std::max(0, depth - 1);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> CompleteSchema(absl::string_view text,
                                           bool compact) {
  SchemaReader reader;
  if (!Json::sax_parse(text.begin(), text.end(), &reader)) {
    FUCINA_RETURN_IF_ERROR(reader.status());
    return absl::InvalidArgumentError(
        absl::StrCat(Place(text, reader.position()),
                     ": not JSON: ", Printable(reader.error(), 200)));
  }
  if (!reader.root_is_schema()) {
    return absl::InvalidArgumentError(
        "expected an object, or true or false, found another JSON value");
  }
  if (reader.has_guidance()) {
    if (!compact) return std::string(text);
    return absl::InvalidArgumentError(
        "the schema says itself how white space is written (x-guidance), so "
        "that it cannot be made compact");
  }
  const absl::string_view bare = absl::StripAsciiWhitespace(text);
  const char* guidance = compact ? kNoSpace : kBoundedSpace;
  if (bare == "true") return absl::StrCat("{", guidance, "}");
  if (bare == "false") return std::string(bare);
  const std::size_t open = text.find('{') + 1;
  return absl::StrCat(text.substr(0, open), guidance,
                      reader.has_keys() ? "," : "", text.substr(open));
}

absl::StatusOr<Grammar> JsonSchemaGrammar(absl::string_view text,
                                          bool compact) {
  text = WithoutMark(text);
  FUCINA_RETURN_IF_ERROR(CheckText(text));
  FUCINA_ASSIGN_OR_RETURN(std::string schema, CompleteSchema(text, compact));
  return Grammar{GrammarKind::kJsonSchema, std::move(schema)};
}

absl::StatusOr<Grammar> RegexGrammar(absl::string_view text) {
  FUCINA_RETURN_IF_ERROR(CheckText(text));
  FUCINA_RETURN_IF_ERROR(CheckRegexDepth(text));
  return Grammar{GrammarKind::kRegex, std::string(text)};
}

std::string FindKeyword(absl::string_view schema, absl::string_view keyword) {
  const auto parsed = nlohmann::ordered_json::parse(
      schema.begin(), schema.end(), nullptr, /*allow_exceptions=*/false);
  return parsed.is_discarded() ? "" : Search(parsed, keyword, "#");
}

}  // namespace fucina::llguidance
