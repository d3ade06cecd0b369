#ifndef FUCINA_PLUGINS_LLGUIDANCE_SCHEMA_READERS_H_
#define FUCINA_PLUGINS_LLGUIDANCE_SCHEMA_READERS_H_

// Readers of a schema's events: neither depth nor size costs them more than the
// text itself, and the parser keeps its own stack and never recurses.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "grammar_text.h"
#include "schema_flaws.h"

namespace fucina::llguidance {

using Json = nlohmann::json;
using Names = std::span<const absl::string_view>;

// 2^53: the engine holds numbers as doubles, and integers beyond this one would
// be rounded. It adds one to an exclusive bound.
inline constexpr std::uint64_t kMaxInteger = 9007199254740992;

// What describes and governs nothing.
inline constexpr absl::string_view kAnnotations[] = {"$anchor",
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
inline constexpr absl::string_view kKeywords[] = {"$dynamicAnchor",
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
inline constexpr absl::string_view kMaps[] = {
    "$defs", "definitions", "dependentSchemas", "patternProperties",
    "properties"};
// Whose values are no schemas.
inline constexpr absl::string_view kData[] = {"const", "default", "enum",
                                              "examples", "x-guidance"};
inline constexpr absl::string_view kExclusive[] = {"exclusiveMaximum",
                                                   "exclusiveMinimum"};
inline constexpr absl::string_view kNumbers[] = {
    "exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"};
inline constexpr absl::string_view kLiterals[] = {"const", "enum"};
// With which several schemas may govern one value: these with any other
// keyword beside them, and those for themselves.
inline constexpr absl::string_view kAlternatives[] = {"$ref", "anyOf", "oneOf"};
inline constexpr absl::string_view kConjunctions[] = {"allOf",
                                                      "patternProperties"};

inline bool IsOneOf(Names names, absl::string_view name) {
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

// What is to be refused, and what is to be known for the completion.
class SchemaReader {
 public:
  bool null() { return Value(); }
  bool boolean(bool value) {
    if (at_.depth() == 0) root_is_schema_ = true;
    if (value && IsOneOf(kExclusive, key_) && !bounds_.AddExclusive()) {
      return RefuseBounds();
    }
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
    if (key_ == "pattern") CheckPattern(text);
    if (literal_depth_ > 0 || IsOneOf(kLiterals, key_)) NoteLiteral(text);
    if (required_depth_ > 0 && at_.depth() == required_depth_) {
      ++objects_.back().required;
    }
    return Keep(CheckExpression(text)) && Value();
  }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) {
    if (at_.depth() == 0) root_is_schema_ = true;
    objects_.emplace_back();
    return Open(false);
  }
  bool key(std::string& text) {
    at_.Key(text);
    if (!objects_.back().names.insert(text).second) {
      return Refuse(absl::StrCat("it has two values for ", at_.Pointer()));
    }
    if (at_.depth() == 1) {
      has_keys_ = true;
      has_guidance_ |= text == "x-guidance";
    }
    key_ = text;
    has_names_ |= text == "properties" || text == "patternProperties";
    // It may be a pattern of properties.
    CheckPattern(text);
    return Keep(CheckExpression(text)) && CountPart();
  }
  bool end_object() {
    const Object& object = objects_.back();
    if (object.min_properties > std::max(1, object.required)) {
      return Refuse(
          absl::StrCat("minProperties ", object.min_properties,
                       " of a schema that requires ", object.required,
                       " names is not supported: one name may come twice"));
    }
    NoteConjunction(object.names);
    objects_.pop_back();
    return Close();
  }
  bool start_array(std::size_t) {
    if (key_ == "required") required_depth_ = at_.depth() + 1;
    return Open(true);
  }
  bool end_array() {
    if (at_.depth() == required_depth_) required_depth_ = 0;
    return Close();
  }
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
  // Where the last multipleOf is if several may govern one number and the
  // engine could not count with all of them; else empty.
  std::string lossy_multiple() const {
    const bool meet = has_conjunction_ && (multiples_seen_ > 1 || has_ref_);
    return meet && !multiples_.CanMeet() ? last_multiple_ : "";
  }
  // Whether it names properties.
  bool has_names() const { return has_names_; }
  // Where a pattern LosesEscapes first, or empty.
  const std::string& lossy_pattern() const { return lossy_pattern_; }
  // Where const or enum has a text with " or \, or with a character that only
  // \u can write, first; or empty.
  const std::string& quoted_literal() const { return quoted_literal_; }
  const std::string& numbered_literal() const { return numbered_literal_; }

 private:
  void CheckPattern(absl::string_view pattern) {
    if (lossy_pattern_.empty() && LosesEscapes(pattern)) {
      lossy_pattern_ = at_.Pointer();
    }
  }
  void NoteLiteral(absl::string_view text) {
    const auto is_numbered = [](char c) {
      return (static_cast<unsigned char>(c) < 0x20 &&
              absl::string_view("\b\f\n\r\t").find(c) ==
                  absl::string_view::npos) ||
             c == '\x7F';
    };
    if (quoted_literal_.empty() &&
        text.find_first_of("\"\\") != absl::string_view::npos) {
      quoted_literal_ = at_.Pointer();
    }
    if (numbered_literal_.empty() &&
        std::any_of(text.begin(), text.end(), is_numbered)) {
      numbered_literal_ = at_.Pointer();
    }
  }
  void NoteConjunction(const std::set<std::string>& names) {
    const auto has = [&names](absl::string_view name) {
      return names.count(std::string(name)) > 0;
    };
    has_ref_ |= has("$ref");
    has_conjunction_ |=
        std::any_of(std::begin(kConjunctions), std::end(kConjunctions), has);
    if (std::any_of(std::begin(kAlternatives), std::end(kAlternatives), has)) {
      has_conjunction_ |=
          std::count_if(std::begin(kKeywords), std::end(kKeywords), has) > 1;
    }
  }
  bool RefuseBounds() {
    return Refuse(absl::StrCat(
        "an exclusive bound is an integer and another one less than 1 from it "
        "(",
        at_.Pointer(),
        "), where the engine would take the integer too; write the exclusive "
        "one as a fraction"));
  }
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
    if (!bounds_.Add(key_, value)) return RefuseBounds();
    if (key_ == "multipleOf" && literal_depth_ == 0) {
      ++multiples_seen_;
      last_multiple_ = at_.Pointer();
      if (!multiples_.Add(value)) {
        return Refuse(absl::StrCat(
            "the engine cannot count in steps of ", text, " (", last_multiple_,
            "); multipleOf may have ", Multiples::kMaxDecimals,
            " decimals and go up to ", Multiples::kMax,
            " without its decimal point, and some fractions, as 0.07, it "
            "cannot read"));
      }
    }
    if (key_ == "minProperties") objects_.back().min_properties = value;
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

  struct Object {
    std::set<std::string> names;
    double min_properties = 0;
    int required = 0;  // names
  };

  Position at_;
  std::vector<Object> objects_;  // that are open
  std::string key_;              // of the value to come, empty in an array
  int parts_ = 0;
  int required_depth_ = 0;  // inside of "required"; 0: outside
  int literal_depth_ = 0;   // where const or enum began; 0: outside
  double items_ = 0;        // sum of minItems and maxItems
  bool root_is_schema_ = false;
  bool has_keys_ = false;
  bool has_guidance_ = false;
  bool has_names_ = false;
  std::string lossy_pattern_;
  std::string quoted_literal_;
  std::string numbered_literal_;
  ExclusiveBounds bounds_;
  Multiples multiples_;
  int multiples_seen_ = 0;
  std::string last_multiple_;
  bool has_ref_ = false;
  bool has_conjunction_ = false;  // where several schemas govern one value
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

}  // namespace fucina::llguidance

#endif  // FUCINA_PLUGINS_LLGUIDANCE_SCHEMA_READERS_H_
