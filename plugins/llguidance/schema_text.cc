// JSON schemas as texts: checked event by event, so that neither depth nor size
// costs more than the text itself.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "grammar_text.h"

namespace fucina::llguidance {
namespace {

using Json = nlohmann::json;
using Names = std::span<const absl::string_view>;

constexpr char kBoundedSpace[] =
    R"("whitespace_pattern":"[\\x20\\x0A\\x0D\\x09]{1,40}")";
constexpr char kNoSpace[] = R"("whitespace_flexible":false)";
constexpr char kGuidance[] = "\"x-guidance\"";

// 2^53: the engine holds numbers as doubles, and integers beyond this one would
// be rounded. It adds one to an exclusive bound.
constexpr std::uint64_t kMaxInteger = 9007199254740992;

// What describes and governs nothing.
constexpr absl::string_view kAnnotations[] = {"$anchor",
                                              "$comment",
                                              "$defs",
                                              "$id",
                                              "$schema",
                                              "$vocabulary",
                                              "contentEncoding",
                                              "contentMediaType",
                                              "contentSchema",
                                              "default",
                                              "definitions",
                                              "deprecated",
                                              "description",
                                              "examples",
                                              "id",
                                              "readOnly",
                                              "title",
                                              "writeOnly"};
// Those that the engine implements and those that it refuses by name.
constexpr absl::string_view kKeywords[] = {"$dynamicAnchor",
                                           "$dynamicRef",
                                           "$recursiveAnchor",
                                           "$recursiveRef",
                                           "$ref",
                                           "additionalItems",
                                           "additionalProperties",
                                           "allOf",
                                           "anyOf",
                                           "const",
                                           "contains",
                                           "dependencies",
                                           "dependentRequired",
                                           "dependentSchemas",
                                           "else",
                                           "enum",
                                           "exclusiveMaximum",
                                           "exclusiveMinimum",
                                           "format",
                                           "if",
                                           "items",
                                           "maxContains",
                                           "maxItems",
                                           "maxLength",
                                           "maxProperties",
                                           "maximum",
                                           "minContains",
                                           "minItems",
                                           "minLength",
                                           "minProperties",
                                           "minimum",
                                           "multipleOf",
                                           "not",
                                           "oneOf",
                                           "pattern",
                                           "patternProperties",
                                           "prefixItems",
                                           "properties",
                                           "propertyNames",
                                           "required",
                                           "then",
                                           "type",
                                           "unevaluatedItems",
                                           "unevaluatedProperties",
                                           "uniqueItems"};
// Whose members are schemas under names of the user's.
constexpr absl::string_view kMaps[] = {"$defs", "definitions",
                                       "dependentSchemas", "patternProperties",
                                       "properties"};
// Whose values are no schemas.
constexpr absl::string_view kData[] = {"const", "default", "enum", "examples",
                                       "x-guidance"};
constexpr absl::string_view kExclusive[] = {"exclusiveMaximum",
                                            "exclusiveMinimum"};
constexpr absl::string_view kNumbers[] = {
    "exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"};
constexpr absl::string_view kLiterals[] = {"const", "enum"};

bool IsOneOf(Names names, absl::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Where in the document a reader of events stands.
class Position {
 public:
  void Key(const std::string& key) { steps_.back().key = key; }
  void Open(bool is_array) { steps_.emplace_back().is_array = is_array; }
  void Close() {
    steps_.pop_back();
    Passed();
  }
  // A value is over.
  void Passed() {
    if (!steps_.empty()) ++steps_.back().index;
  }
  int depth() const { return static_cast<int>(steps_.size()); }

  // "#/properties/a/0".
  std::string Pointer() const {
    std::string pointer = "#";
    for (const Step& step : steps_) {
      absl::StrAppend(
          &pointer, "/",
          step.is_array
              ? absl::StrCat(step.index)
              : absl::StrReplaceAll(step.key, {{"~", "~0"}, {"/", "~1"}}));
    }
    return pointer;
  }

 private:
  struct Step {
    bool is_array = false;
    int index = 0;
    std::string key;
  };
  std::vector<Step> steps_;
};

// Takes the parser's events; the parser keeps its own stack and never recurses.
class SchemaReader {
 public:
  bool null() { return Value(); }
  bool boolean(bool) {
    if (at_.depth() == 0) root_is_schema_ = true;
    return Value();
  }
  bool number_integer(Json::number_integer_t value) {
    return Number(static_cast<double>(value), absl::StrCat(value),
                  0 - static_cast<std::uint64_t>(value));  // it is negative
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    return Number(static_cast<double>(value), absl::StrCat(value), value);
  }
  bool number_float(Json::number_float_t value, const std::string& text) {
    // An integer that has no type of 64 bits comes this way too.
    const bool is_integer = text.find_first_of(".eE") == std::string::npos;
    return Number(value, text,
                  is_integer ? std::numeric_limits<std::uint64_t>::max() : 0);
  }
  // A string may be a regular expression, whose reader recurses too.
  bool string(std::string& text) {
    return Keep(CheckExpression(text)) && Value();
  }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) {
    if (at_.depth() == 0) root_is_schema_ = true;
    names_.emplace_back();
    return Open(false);
  }
  bool key(std::string& text) {
    at_.Key(text);
    if (!names_.back().insert(text).second) {
      return Refuse(absl::StrCat("it has two values for ", at_.Pointer()));
    }
    if (at_.depth() == 1) {
      has_keys_ = true;
      has_guidance_ |= text == "x-guidance";
    }
    key_ = text;
    return Keep(CheckExpression(text)) && CountPart();
  }
  bool end_object() {
    names_.pop_back();
    return Close();
  }
  bool start_array(std::size_t) { return Open(true); }
  bool end_array() { return Close(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) {
    // The text behind the library's own name and number.
    absl::string_view what = error.what();
    const std::size_t name = what.find("] ");
    if (name != absl::string_view::npos) what.remove_prefix(name + 2);
    const std::size_t place = what.find(": ");
    if (absl::StartsWith(what, "parse error") &&
        place != absl::string_view::npos) {
      what.remove_prefix(place + 2);
    }
    error_ = std::string(what);
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
  bool Keep(absl::Status status) {
    status_.Update(status);
    return status_.ok();
  }
  bool Refuse(absl::string_view why) {
    return Keep(absl::InvalidArgumentError(why));
  }
  bool CountPart() {
    return ++parts_ <= kMaxSchemaParts ||
           Refuse(absl::StrCat("it has more than ", kMaxSchemaParts,
                               " names and values, which is not supported"));
  }
  bool Value() {
    at_.Passed();
    key_.clear();
    return CountPart();
  }
  // `magnitude` of an integer, 0 for other numbers.
  bool Number(double value, absl::string_view text, std::uint64_t magnitude) {
    if ((key_ == "minItems" || key_ == "maxItems") && value > 0) {
      items_ += value;
    }
    if (items_ > kMaxArrayItems) {
      return Refuse(
          absl::StrCat("its minItems and maxItems add up to more than ",
                       kMaxArrayItems, ", which is not supported"));
    }
    const bool counts = literal_depth_ > 0 || IsOneOf(kNumbers, key_) ||
                        IsOneOf(kLiterals, key_);
    const bool is_exclusive = IsOneOf(kExclusive, key_);
    if ((counts && magnitude > kMaxInteger) ||
        (is_exclusive && std::abs(value) >= static_cast<double>(kMaxInteger))) {
      return Refuse(absl::StrCat("the number ", text, " at ", at_.Pointer(),
                                 " is too large to be kept exactly; ",
                                 is_exclusive ? "exclusive bounds" : "integers",
                                 " go up to ",
                                 is_exclusive ? kMaxInteger - 1 : kMaxInteger));
    }
    return Value();
  }
  bool Open(bool is_array) {
    at_.Open(is_array);
    if (literal_depth_ == 0 && IsOneOf(kLiterals, key_)) {
      literal_depth_ = at_.depth();
    }
    key_.clear();
    if (at_.depth() > kMaxJsonDepth) {
      return Refuse(
          absl::StrCat("its objects and arrays are nested deeper than ",
                       kMaxJsonDepth, ", which is not supported"));
    }
    return CountPart();
  }
  bool Close() {
    if (at_.depth() == literal_depth_) literal_depth_ = 0;
    at_.Close();
    return true;
  }

  Position at_;
  std::vector<std::set<std::string>> names_;  // of the objects that are open
  std::string key_;  // of the value to come, empty in an array
  int parts_ = 0;
  int literal_depth_ = 0;  // where const or enum began; 0: outside
  double items_ = 0;       // sum of minItems and maxItems
  bool root_is_schema_ = false;
  bool has_keys_ = false;
  bool has_guidance_ = false;
  std::string error_;
  std::size_t position_ = 0;
  absl::Status status_;
};

// Tells of every keyword: its name, whether one of a schema that the engine
// reads for sure, and where it stands.
class KeywordReader {
 public:
  // False ends the reading.
  using Listener = std::function<bool(absl::string_view name, bool sure,
                                      const Position& at)>;

  explicit KeywordReader(Listener listener) : listener_(std::move(listener)) {}

  bool null() { return Value(); }
  bool boolean(bool) { return Value(); }
  bool number_integer(Json::number_integer_t) { return Value(); }
  bool number_unsigned(Json::number_unsigned_t) { return Value(); }
  bool number_float(Json::number_float_t, const std::string&) {
    return Value();
  }
  bool string(std::string&) { return Value(); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return Open(false); }
  bool start_array(std::size_t) { return Open(true); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool key(std::string& text) {
    at_.Key(text);
    const Part part = parts_.back();
    next_ = part;
    if (part == Part::kMap) next_ = Part::kSchema;
    if (part != Part::kSchema && part != Part::kOther) return true;
    if (IsOneOf(kData, text)) {
      next_ = Part::kValue;
    } else if (IsOneOf(kMaps, text)) {
      next_ = Part::kMap;
    } else if (!IsOneOf(kKeywords, text)) {
      next_ = Part::kOther;
    }
    return listener_(text, part == Part::kSchema, at_);
  }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception&) {
    return false;
  }

 private:
  enum class Part {
    kSchema,
    kMap,    // members are schemas
    kValue,  // nothing in it is a schema
    kOther,  // below an unknown keyword: a schema when a $ref says so
  };

  bool Value() {
    at_.Passed();
    return true;
  }
  bool Open(bool is_array) {
    at_.Open(is_array);
    parts_.push_back(next_);
    return true;
  }
  bool Close() {
    at_.Close();
    next_ = parts_.back();
    parts_.pop_back();
    return true;
  }

  Listener listener_;
  Position at_;
  std::vector<Part> parts_;
  Part next_ = Part::kSchema;  // of the value to come
};

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

// `text` with `space` among what its "x-guidance" says.
absl::StatusOr<std::string> WithSpace(absl::string_view text,
                                      absl::string_view space, bool has_keys,
                                      bool has_guidance, bool compact) {
  if (!has_guidance) {
    const std::size_t open = text.find('{') + 1;
    return absl::StrCat(text.substr(0, open), kGuidance, ":{", space, "}",
                        has_keys ? "," : "", text.substr(open));
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
  if (!SaysSpace(guidance)) {
    const auto open = static_cast<std::size_t>(value.data() - text.data()) + 1;
    return absl::StrCat(text.substr(0, open), space,
                        guidance.empty() ? "" : ",", text.substr(open));
  }
  if (!compact) return std::string(text);
  return absl::InvalidArgumentError(
      "the schema says itself how white space is written (x-guidance), so "
      "that it cannot be made compact");
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
  const char* space = compact ? kNoSpace : kBoundedSpace;
  const absl::string_view bare = absl::StripAsciiWhitespace(text);
  if (bare == "true") {
    return CompletedSchema{absl::StrCat("{", kGuidance, ":{", space, "}}"), ""};
  }
  if (bare == "false") return CompletedSchema{std::string(bare), ""};
  FUCINA_ASSIGN_OR_RETURN(std::string schema,
                          WithSpace(text, space, reader.has_keys(),
                                    reader.has_guidance(), compact));
  return CompletedSchema{std::move(schema), UnknownKeywords(text)};
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
