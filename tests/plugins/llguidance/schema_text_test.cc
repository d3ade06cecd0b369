// JSON schemas as texts: what they say and the engine would not do.

#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plugins/llguidance/grammar_text.h"
#include "tests/plugins/llguidance/refusals.h"
#include "tests/plugins/llguidance/schema_instances.h"

namespace fucina {
namespace {

using llguidance::JsonSchemaGrammar;
using testing::Allowed;
using testing::Feed;
using testing::Grammars;
using ::testing::HasSubstr;
using testing::MakeConstraint;

constexpr char kBounded[] =
    R"("whitespace_pattern":"[\\x20\\x0A\\x0D\\x09]{1,40}")";

class SchemaText : public Grammars {
 protected:
  std::string SchemaRefusal(const std::string& schema) {
    const std::string refusal = Refusal("json_schema", schema);
    const std::string prefix = "invalid json schema: ";
    EXPECT_EQ(refusal.substr(0, prefix.size()), prefix) << schema;
    return refusal.substr(std::min(refusal.size(), prefix.size()));
  }
};

// The engine's numbers are doubles: it wrote 9007199254740992 for the integer
// behind it, and for what lies above that as an exclusive bound.
TEST_F(SchemaText, NumbersThatWouldBeRoundedAreRefused) {
  const auto refusal = [](const char* number, const char* place) {
    return absl::StrCat("the number ", number, " at ", place,
                        " is too large to be kept exactly; integers go up to "
                        "9007199254740992");
  };
  EXPECT_EQ(SchemaRefusal(R"({"const":9007199254740993})"),
            refusal("9007199254740993", "#/const"));
  EXPECT_EQ(SchemaRefusal(R"({"const":{"a":[0,-9007199254740993]}})"),
            refusal("-9007199254740993", "#/const/a/1"));
  EXPECT_EQ(SchemaRefusal(R"({"enum":[1,12345678901234567890123]})"),
            refusal("12345678901234567890123", "#/enum/1"));
  const auto exclusive = [](const char* number, const char* place) {
    return absl::StrCat("the number ", number, " at ", place,
                        " is too large to be kept exactly; exclusive bounds go "
                        "up to 9007199254740991");
  };
  EXPECT_EQ(
      SchemaRefusal(
          R"({"properties":{"a/b":{"exclusiveMinimum":9007199254740992}}})"),
      exclusive("9007199254740992", "#/properties/a~1b/exclusiveMinimum"));
  EXPECT_EQ(SchemaRefusal(R"({"type":"integer","exclusiveMaximum":1e16})"),
            exclusive("1e16", "#/exclusiveMaximum"));
  EXPECT_EQ(SchemaRefusal(R"({"maximum":9223372036854775807})"),
            refusal("9223372036854775807", "#/maximum"));
  EXPECT_EQ(SchemaRefusal(R"({"items":[{"minimum":-9223372036854775808}]})"),
            refusal("-9223372036854775808", "#/items/0/minimum"));
  EXPECT_EQ(SchemaRefusal(R"({"multipleOf":18446744073709551615})"),
            refusal("18446744073709551615", "#/multipleOf"));
  // The largest, numbers that govern nothing, and those behind a literal.
  for (const char* schema :
       {R"({"const":9007199254740992})", R"({"const":-9007199254740992})",
        R"({"exclusiveMaximum":9007199254740991})", R"({"maximum":1e18})",
        R"({"type":"null","default":9007199254740993})",
        R"({"enum":[[1],{"a":2}],"description":"9007199254740993"})",
        R"({"const":[1],"examples":[9007199254740993]})"}) {
    EXPECT_EQ(Refusal("json_schema", schema), "accepted") << schema;
  }
  auto made = MakeConstraint(
      *toy_.tokenizer, {{"json_schema", R"({"const":9007199254740992})"}});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(Feed(**made, toy_.rows, "9007199254740992"));
  EXPECT_TRUE((*made)->IsComplete());
}

TEST_F(SchemaText, TwoValuesOfOneNameAreRefused) {
  EXPECT_EQ(SchemaRefusal(R"({"type":"string","type":"integer"})"),
            "it has two values for #/type");
  EXPECT_EQ(SchemaRefusal(R"({"properties":{"a":{},"b":{"c":1,"c":2}}})"),
            "it has two values for #/properties/b/c");
  // The same name in different objects.
  EXPECT_EQ(Refusal("json_schema",
                    R"({"properties":{"a":{"type":"null"},
                                      "b":{"type":"null"}}})"),
            "accepted");
}

TEST_F(SchemaText, KeywordsThatMeanNothingAreWarnedOf) {
  const auto warning = [](absl::string_view schema) {
    const auto grammar = JsonSchemaGrammar(schema, false);
    return grammar.ok() ? grammar->warning : grammar.status().ToString();
  };
  EXPECT_EQ(warning(R"({"type":"string","maxLenght":5,"nullable":true})"),
            "unknown keywords have no effect: #/maxLenght, #/nullable");
  // Once by name, wherever a schema stands, and nowhere else.
  EXPECT_EQ(warning(R"({"anyOf":[{"a":1},{"a":2}],
                        "properties":{"b":{"items":{"c":0}},"d":{}},
                        "$defs":{"e":{"f":{"g":1}}},
                        "const":{"h":1},"default":{"i":1}})"),
            "unknown keywords have no effect: #/anyOf/0/a, "
            "#/properties/b/items/c, #/$defs/e/f");
  EXPECT_EQ(
      warning(R"({"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,
                  "j":0})"),
      "unknown keywords have no effect: #/a, #/b, #/c, #/d, #/e, #/f, #/g, "
      "#/h and 2 more");
  // What is known, and what only describes.
  EXPECT_EQ(
      warning(R"({"$schema":"https://json-schema.org/draft/2020-12/schema",
                        "$id":"x","title":"t","description":"d","default":1,
                        "examples":[{}],"deprecated":true,"readOnly":true,
                        "x-order":3,"type":"object","required":["a"],
                        "properties":{"a":{"format":"date"}}})"),
      "");
  EXPECT_EQ(
      llguidance::LarkGrammar("start: \"a\"\n %json {\"typ\":1}")->warning,
      "line 2, column 8: in this schema: unknown keywords have no "
      "effect: #/typ");
}

TEST_F(SchemaText, WhiteSpaceIsBoundedWhateverElseXGuidanceSays) {
  const auto completed = [](absl::string_view schema, bool compact = false) {
    const auto grammar = JsonSchemaGrammar(schema, compact);
    return grammar.ok() ? grammar->text : grammar.status().ToString();
  };
  EXPECT_EQ(completed(R"({"x-guidance":{}})"),
            absl::StrCat(R"({"x-guidance":{)", kBounded, "}}"));
  EXPECT_EQ(completed(R"({"a":["x-guidance",{"x-guidance":1}],"b":"{",
                          "x-guidance" : {"lenient":true}})"),
            absl::StrCat(R"({"a":["x-guidance",{"x-guidance":1}],"b":"{",
                          "x-guidance" : {)",
                         kBounded, R"(,"lenient":true}})"));
  EXPECT_EQ(completed(R"({"x-guidance":{"whitespace_flexible":true}})"),
            absl::StrCat(R"({"x-guidance":{)", kBounded,
                         R"(,"whitespace_flexible":true}})"));
  EXPECT_EQ(completed(R"({"x-guidance":{"lenient":true}})", true),
            R"({"x-guidance":{"whitespace_flexible":false,"lenient":true}})");
  // The engine says what is wrong with these.
  EXPECT_EQ(SchemaRefusal(R"({"x-guidance":null})"),
            "invalid type: null, expected struct JsonCompileOptions");
  EXPECT_EQ(SchemaRefusal(R"({"x-guidance":"a"})"),
            "invalid type: string \"a\", expected struct JsonCompileOptions");
  EXPECT_THAT(SchemaRefusal(R"({"x-guidance":{"whitespace":1}})"),
              HasSubstr("unknown field `whitespace`, expected one of "));
  EXPECT_EQ(SchemaRefusal(R"({"x\u002dguidance":{}})"),
            "x-guidance is spelled with escapes, which is not supported");
  // Any document of a Lark grammar.
  const auto made =
      MakeConstraint(*toy_.tokenizer, {{"lark", "start: %json true"}});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(Feed(**made, toy_.rows, "[" + std::string(40, '\n')));
  EXPECT_EQ(Allowed(**made, toy_.rows).count('\n'), 0U);
}

TEST_F(SchemaText, WrongExpressionsAreRefusedWithTheirPlace) {
  EXPECT_EQ(SchemaRefusal(R"({"properties":{"a":{"pattern":"xa("}}})"),
            "in the expression 'xa(', column 3: unclosed group");
  EXPECT_EQ(SchemaRefusal(R"({"pattern":"^[^a]("})"),
            "in the expression '^[^a](', column 6: unclosed group");
  EXPECT_EQ(Refusal("regex", "^[^a]("),
            "invalid regex: column 6: unclosed group");
  EXPECT_EQ(SchemaRefusal(R"({"patternProperties":{"*":{}}})"),
            "in the expression '*', column 1: repetition operator missing "
            "expression");
}

// The engine cuts long values in the middle of a character and panics.
TEST_F(SchemaText, APanicOfTheEngineIsARefusalInOneLine) {
  const std::string refusal =
      SchemaRefusal("{\"minimum\":\"" + testing::Repeat("é", 80) + "\"}");
  EXPECT_THAT(refusal,
              HasSubstr("the engine fails at it (end byte index 100 is not a "
                        "char boundary"));
  EXPECT_EQ(refusal.find("backtrace"), std::string::npos) << refusal;
  EXPECT_EQ(refusal.find("\\n"), std::string::npos) << refusal;
}

// Replies under these were held against python jsonschema 4.26.0.
class Flaws : public SchemaText {
 protected:
  // Whether the document can be a reply.
  bool Takes(const std::string& schema, const std::string& document) {
    const auto made =
        MakeConstraint(*toy_.tokenizer, {{"json_schema", schema}});
    EXPECT_TRUE(made.ok()) << schema << made.status();
    return made.ok() && testing::Accepts(**made, *toy_.tokenizer, document);
  }
};

// 65537 * 65539 is 2^32 + 262147: the engine's product was 262147.
TEST_F(Flaws, MultiplesThatMeetAreBounded) {
  const auto refusal = [](const char* place) {
    return absl::StrCat(
        "several multipleOf may govern one number (the last is at ", place,
        "), and their least common multiple without its decimal point is more "
        "than 65535, with which the engine cannot count; write one of them "
        "instead");
  };
  EXPECT_EQ(SchemaRefusal(
                R"({"allOf":[{"type":"integer","multipleOf":65537},
                       {"multipleOf":65539}]})"),
            refusal("#/allOf/1/multipleOf"));
  EXPECT_EQ(
      SchemaRefusal(R"({"multipleOf":0.01,"anyOf":[{"multipleOf":656}]})"),
      refusal("#/anyOf/0/multipleOf"));
  EXPECT_EQ(SchemaRefusal(R"({"type":"object","patternProperties":{
                                "a":{"multipleOf":70000}},
                              "properties":{"a":{"multipleOf":3}}})"),
            refusal("#/properties/a/multipleOf"));
  // One value twice, through references.
  EXPECT_EQ(SchemaRefusal(R"({"allOf":[{"$ref":"#/$defs/a"},
                                       {"$ref":"#/$defs/a"}],
                              "$defs":{"a":{"multipleOf":100000}}})"),
            refusal("#/$defs/a/multipleOf"));
  // Those that do not meet, and those that may.
  for (const char* schema :
       {R"({"properties":{"a":{"multipleOf":70000},
                          "b":{"multipleOf":0.01}}})",
        R"({"properties":{"a":{"$ref":"#/$defs/a","title":"A"},
                          "b":{"multipleOf":0.01}},
            "$defs":{"a":{"multipleOf":70000}}})",
        R"({"anyOf":[{"multipleOf":70000},{"multipleOf":0.01}],"title":"t"})",
        R"({"allOf":[{"type":"integer"},{"multipleOf":100000}]})",
        R"({"allOf":[{"multipleOf":257},{"multipleOf":255}]})",
        R"({"allOf":[{"const":{"multipleOf":70000}},{"multipleOf":0.01}]})"}) {
    EXPECT_EQ(Refusal("json_schema", schema), "accepted") << schema;
  }
  const std::string largest =
      R"({"allOf":[{"type":"number","multipleOf":257},{"multipleOf":255},
                   {"multipleOf":65535}]})";
  EXPECT_TRUE(Takes(largest, "65535"));
  EXPECT_TRUE(Takes(largest, "-131070"));
  EXPECT_FALSE(Takes(largest, "257"));
  EXPECT_FALSE(Takes(largest, "65534"));
}

// The engine wrote 813 where multiples of 4000000000 were asked for.
TEST_F(Flaws, StepsThatTheEngineCannotCountAreRefused) {
  const auto refusal = [](const char* number) {
    return absl::StrCat("the engine cannot count in steps of ", number,
                        " (#/multipleOf); multipleOf may have 8 decimals and "
                        "go up to 339496729 without its decimal point, and "
                        "some fractions, as 0.07, it cannot read");
  };
  for (const char* number : {"4000000000", "339496730", "1e-9", "0.000000001",
                             "3.39496731", "0.07", "0.123456789"}) {
    EXPECT_EQ(SchemaRefusal(absl::StrCat("{\"multipleOf\":", number, "}")),
              refusal(number));
  }
  // Large ones, against multiples written as texts.
  const std::string whole = R"({"type":"integer","multipleOf":300000000})";
  const std::string fine = R"({"type":"number","multipleOf":0.00000125})";
  for (const std::int64_t factor :
       std::vector<std::int64_t>{1, 7, 10, 99, 8589934592}) {
    const std::int64_t multiple = factor * 300000000;
    EXPECT_TRUE(Takes(whole, absl::StrCat(multiple))) << multiple;
    EXPECT_TRUE(Takes(whole, absl::StrCat("-", multiple))) << multiple;
    EXPECT_FALSE(Takes(whole, absl::StrCat(multiple + 1))) << multiple;
    EXPECT_FALSE(Takes(whole, absl::StrCat(multiple + 100000000)));
    const auto decimal = [](std::int64_t units) {
      return absl::StrFormat("%d.%08d", units / 100000000, units % 100000000);
    };
    EXPECT_TRUE(Takes(fine, decimal(factor * 125))) << factor;
    EXPECT_FALSE(Takes(fine, decimal(factor * 125 + 25))) << factor;
    EXPECT_FALSE(Takes(fine, decimal(factor * 125 - 1))) << factor;
  }
}

TEST_F(Flaws, ExclusiveIntegersNextToAnotherBoundAreRefused) {
  const auto refusal = [](const char* place) {
    return absl::StrCat(
        "an exclusive bound is an integer and another one less than 1 from it "
        "(",
        place,
        "), where the engine would take the integer too; write the exclusive "
        "one as a fraction");
  };
  EXPECT_EQ(SchemaRefusal(R"({"type":"number","exclusiveMinimum":9,
                              "exclusiveMaximum":9.3})"),
            refusal("#/exclusiveMaximum"));
  EXPECT_EQ(SchemaRefusal(R"({"type":"number","maximum":0.5,
                              "exclusiveMinimum":0})"),
            refusal("#/exclusiveMinimum"));
  EXPECT_EQ(SchemaRefusal(R"({"minimum":-2.59,"exclusiveMaximum":-2.0})"),
            refusal("#/exclusiveMaximum"));
  EXPECT_EQ(SchemaRefusal(R"({"minimum":-0.5,"exclusiveMaximum":0})"),
            refusal("#/exclusiveMaximum"));
  EXPECT_EQ(SchemaRefusal(R"({"allOf":[{"exclusiveMinimum":3},
                                       {"maximum":3.5}]})"),
            refusal("#/allOf/1/maximum"));
  EXPECT_EQ(SchemaRefusal(R"({"minimum":9,"maximum":9.3,
                              "exclusiveMinimum":true})"),
            refusal("#/exclusiveMinimum"));
  EXPECT_EQ(SchemaRefusal(R"({"exclusiveMaximum":true,"maximum":-9,
                              "minimum":-9.3})"),
            refusal("#/minimum"));
  // What the engine keeps.
  const std::string unit =
      R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1})";
  EXPECT_FALSE(Takes(unit, "0"));
  EXPECT_TRUE(Takes(unit, "0.1"));
  EXPECT_FALSE(Takes(unit, "1"));
  const std::string fraction =
      R"({"type":"number","exclusiveMinimum":9.01,"maximum":9.3})";
  EXPECT_FALSE(Takes(fraction, "9"));
  EXPECT_FALSE(Takes(fraction, "9.01"));
  EXPECT_TRUE(Takes(fraction, "9.3"));
  const std::string inclusive =
      R"({"type":"number","minimum":9,"exclusiveMaximum":9.3})";
  EXPECT_TRUE(Takes(inclusive, "9"));
  EXPECT_FALSE(Takes(inclusive, "9.3"));
}

std::string WithPattern(const char* pattern) {
  return nlohmann::json{{"type", "string"}, {"pattern", pattern}}.dump();
}

TEST_F(Flaws, ClassesThatExcludeQuotesAreKept) {
  for (const char* pattern :
       {R"(^[^"]*$)", R"(^[^\\"]+$)", R"(^[^/\\:*?"<>|]+$)", R"(^[^\u0022]$)",
        R"(^[^\x22]$)", R"(^[^!-~]+$)", R"(^[^ -z]+$)", R"(^[\x00-!]+$)",
        R"(^[^\p{P}]+$)", R"(^\P{P}+$)", R"(^[^a&&[^"]]+$)"}) {
    const std::string schema = WithPattern(pattern);
    if (absl::string_view(pattern) != R"(^[\x00-!]+$)") {
      EXPECT_TRUE(Takes(schema, R"("\n")")) << schema;
    }
    EXPECT_FALSE(Takes(schema, R"("\\")")) << schema;
    if (absl::string_view(pattern) != R"(^[^ -z]+$)") {
      EXPECT_FALSE(Takes(schema, R"("\"")")) << schema;
    }
    const auto grammar = JsonSchemaGrammar(schema, false);
    EXPECT_EQ(grammar->warning,
              "no text will have a \" or \\: of the pattern at #/pattern the "
              "engine cannot tell whether it excludes them")
        << schema;
  }
  // Those that hold both, and those without control characters.
  for (const char* pattern : {R"(^[^a-z]+$)", R"(^[^@]+$)", R"(^.$)", R"(^\S$)",
                              R"(^\W$)", R"(^[^\d]$)", R"(^["\\]$)",
                              R"(^\x22$)", R"(^[^\p{L}]$)", R"(^\P{N}$)"}) {
    const std::string schema = WithPattern(pattern);
    EXPECT_TRUE(Takes(schema, R"("\"")")) << schema;
    EXPECT_EQ(JsonSchemaGrammar(schema, false)->warning, "") << schema;
  }
  for (const char* pattern : {R"(^[a-z]*$)", R"(^\p{Letter}+$)", R"(^\d$)"}) {
    const std::string schema = WithPattern(pattern);
    EXPECT_FALSE(Takes(schema, R"("\"")")) << schema;
    EXPECT_EQ(JsonSchemaGrammar(schema, false)->warning, "") << schema;
  }
  // A literal would be written without its quotes.
  EXPECT_EQ(SchemaRefusal(R"({"anyOf":[{"pattern":"^[^\"]*$"},
                                       {"enum":["a\"b"]}]})"),
            "the text with \" or \\ at #/anyOf/1/enum/0 cannot stand beside "
            "the pattern at #/anyOf/0/pattern, of which the engine cannot tell "
            "whether it excludes them");
}

// {"":1,"":2} has one property for those who read it.
TEST_F(Flaws, ANumberOfPropertiesThatOneNameCouldMakeIsRefused) {
  EXPECT_EQ(SchemaRefusal(R"({"additionalProperties":{},"minProperties":2})"),
            "minProperties 2 of a schema that requires 0 names is not "
            "supported: one name may come twice");
  EXPECT_EQ(SchemaRefusal(R"({"items":{"required":["a"],"minProperties":3}})"),
            "minProperties 3 of a schema that requires 1 names is not "
            "supported: one name may come twice");
  EXPECT_TRUE(Takes(R"({"type":"object","minProperties":1})", R"({"a":1})"));
  EXPECT_FALSE(Takes(R"({"type":"object","minProperties":1})", "{}"));
  EXPECT_TRUE(
      Takes(R"({"type":"object","required":["a","b"],"minProperties":2})",
            R"({"a":1,"b":2})"));
  EXPECT_EQ(Refusal("json_schema",
                    R"({"properties":{"minProperties":{"minimum":7}}})"),
            "accepted");
}

TEST_F(Flaws, ANameInOtherSpellingIsNoOtherName) {
  const std::string named = R"({"properties":{"b":{"type":"null"}},
                                "type":"object"})";
  EXPECT_TRUE(Takes(named, R"({"b":null})"));
  EXPECT_FALSE(Takes(named, R"({"b":1})"));
  EXPECT_FALSE(Takes(named, R"({"\u0062":1})"));
  EXPECT_TRUE(Takes(named, R"({"\"":1})"));
  const std::string matched = R"({"patternProperties":{"b":{"type":"null"}},
                                  "type":"object"})";
  EXPECT_FALSE(Takes(matched, R"({"\u0062":1})"));
  EXPECT_FALSE(Takes(matched, R"({"b\u00e9":1})"));
  // Elsewhere control characters are written so.
  EXPECT_TRUE(Takes(R"({"const":"a\u0000"})", R"("a\u0000")"));
  EXPECT_EQ(SchemaRefusal(R"({"properties":{"b":{"const":"a\u0000"}}})"),
            "the text with a control character at #/properties/b/const is not "
            "supported in a schema that names properties");
}

TEST_F(SchemaText, NumbersBeyondDoublesAreNoJson) {
  EXPECT_EQ(SchemaRefusal(R"({"minimum":1e400})"),
            "line 1, column 16: not JSON: number overflow parsing '1e400'");
}

}  // namespace
}  // namespace fucina
