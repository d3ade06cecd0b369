// Texts that users and strangers give as grammars: what is refused, and with
// which words.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plugins/llguidance/engine.h"
#include "plugins/llguidance/grammar_text.h"
#include "plugins/llguidance/token_bytes.h"
#include "tests/plugins/llguidance/refusals.h"

namespace fucina {
namespace {

using testing::Grammars;
using ::testing::HasSubstr;

TEST_F(Grammars, WrongRegexesAreRefusedWithTheirPlace) {
  EXPECT_EQ(Refusal("regex", "a("), "invalid regex: column 2: unclosed group");
  EXPECT_EQ(Refusal("regex", "*a"),
            "invalid regex: column 1: repetition operator missing expression");
  EXPECT_EQ(Refusal("regex", "x[z"),
            "invalid regex: column 2: unclosed character class");
  EXPECT_EQ(Refusal("regex", R"(ab\q)"),
            "invalid regex: column 3: unrecognized escape sequence");
  EXPECT_EQ(Refusal("regex", "(?=x)a"),
            "invalid regex: column 1: look-around, including look-ahead and "
            "look-behind, is not supported");
  EXPECT_THAT(Refusal("regex", R"((a)\1)"),
              HasSubstr("backreferences are not supported"));
}

TEST_F(Grammars, WrongLarkIsRefusedWithItsPlace) {
  EXPECT_EQ(Refusal("lark", "start: \"a\" foo"),
            "invalid lark grammar: line 1, column 8: unknown name: \"foo\"");
  EXPECT_THAT(Refusal("lark", "start: a\na: (\n"),
              HasSubstr("invalid lark grammar: line 2, column "));
  EXPECT_THAT(Refusal("lark", "start: /a(/"), HasSubstr("unclosed group"));
  EXPECT_THAT(Refusal("lark", "a: \"x\""), HasSubstr("start"));
}

TEST_F(Grammars, AttributesThatWouldNotActAreRefused) {
  EXPECT_EQ(Refusal("lark", "start: a\na[max_tokens=3]: /x+/\n"),
            "invalid lark grammar: line 2, column 3: max_tokens= is not "
            "supported; bound the rule itself, for example with {m,n}");
  EXPECT_THAT(Refusal("lark", "start[stop=\"x\"]: /.*/"),
              HasSubstr("line 1, column 7: stop= is not supported"));
  EXPECT_THAT(Refusal("lark", "start[temperature = 1]: /.*/"),
              HasSubstr("line 1, column 7: temperature= has no effect here"));
  // Nor in a nested grammar, nor behind what looks like a text's beginning.
  EXPECT_EQ(
      Refusal("lark", "start: %lark {\nstart: x\nx[max_tokens=3]: /x+/\n}"),
      "invalid lark grammar: line 3, column 3: max_tokens= is not "
      "supported; bound the rule itself, for example with {m,n}");
  EXPECT_EQ(Refusal("lark", "start: <a\"b> x\nx[stop=\"y\"]: /x+/"),
            "invalid lark grammar: line 2, column 3: stop= is not supported; "
            "bound the rule itself, for example with {m,n}");
  // Not where the words are text.
  EXPECT_EQ(Refusal("lark",
                    "// stop=1\nstart: \"stop=\" /temperature=/ "
                    "# max_tokens=1\n"),
            "accepted");
}

TEST_F(Grammars, OptionsThatLarkDoesNotHaveAreRefused) {
  EXPECT_EQ(Refusal("lark",
                    "%llguidance {\"no_forcing\":true,\"lazy\":1}\n"
                    "start: \"a\""),
            "invalid lark grammar: line 1, column 13: %llguidance has no "
            "option 'lazy', only allow_initial_skip, allow_invalid_utf8, "
            "ignore_once, no_forcing");
  EXPECT_EQ(Refusal("lark", "%llguidance {\"no_forcing\":true}\nstart: \"a\""),
            "accepted");
}

TEST_F(Grammars, WhatNoReplySatisfiesIsRefused) {
  // They compile, and then there is nothing that a reply could begin with.
  for (const char* lark :
       {"start: start", "start: a\na: b\nb: a", "start: start \"a\""}) {
    EXPECT_EQ(Refusal("lark", lark),
              "invalid lark grammar: no reply satisfies it")
        << lark;
  }
  for (const char* schema :
       {R"({"$ref":"#"})", R"({"anyOf":[{"$ref":"#"}]})",
        R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},
                                        "b":{"$ref":"#/$defs/a"}}})"}) {
    EXPECT_EQ(Refusal("json_schema", schema),
              "invalid json schema: no reply satisfies it")
        << schema;
  }
  EXPECT_EQ(Refusal("regex", "[a&&b]"), "invalid regex: no reply satisfies it");
}

TEST_F(Grammars, IdsOutsideTheVocabularyAreRefused) {
  EXPECT_EQ(Refusal("lark", "start: <[999999]>"),
            "invalid lark grammar: line 1, column 8: Token range end too "
            "large: 999999");
  EXPECT_EQ(Refusal("lark", "start: <[4294967296]>"),
            "invalid lark grammar: line 1, column 8: number too large to fit "
            "in target type");
  EXPECT_THAT(Refusal("lark", "start: <|nothing|>"),
              HasSubstr("line 1, column 8: unknown special token: "
                        "\"<|nothing|>\""));
}

TEST_F(Grammars, WrongJsonIsRefusedWithItsPlace) {
  EXPECT_EQ(Refusal("json_schema", "{\"a\":\n  tru}").substr(0, 52),
            "invalid json schema: line 2, column 6: not JSON: syn");
  EXPECT_THAT(Refusal("json_schema", "{} x"), HasSubstr("not JSON"));
  for (const char* other : {"3", "\"a\"", "null", "[]", "[\"a\",[2]]"}) {
    EXPECT_EQ(
        Refusal("json_schema", other),
        "invalid json schema: expected an object, or true or false, found "
        "another JSON value")
        << other;
  }
  EXPECT_THAT(Refusal("json_schema", std::string("{\"a\0\":1}", 8)),
              HasSubstr("line 1, column 4: a NUL byte"));
  EXPECT_THAT(Refusal("regex", "a\xFFz"),
              HasSubstr("line 1, column 2: not UTF-8"));
  EXPECT_THAT(Refusal("lark", "\n\xC0\x80"),
              HasSubstr("line 2, column 1: not UTF-8"));
}

TEST_F(Grammars, KeywordsThatAreNotSupportedAreNamedWithTheirPath) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"properties":{"a":{"not":{}}}})",
       "Unimplemented keys: [\"not\"] at #/properties/a/not"},
      {R"({"properties":{"not":{"type":"null"},
           "b/c":{"items":{"if":{},"then":{}}}}})",
       "at #/properties/b~1c/items/if"},
      {R"({"contains":{}})", "[\"contains\"] at #/contains"},
      {R"({"uniqueItems":true})", "[\"uniqueItems\"] at #/uniqueItems"},
      {R"({"propertyNames":{}})", "[\"propertyNames\"] at #/propertyNames"},
      {R"({"dependentRequired":{}})", "\"dependentRequired\""},
      {R"({"dependentSchemas":{}})", "\"dependentSchemas\""},
      {R"({"unevaluatedProperties":false})", "\"unevaluatedProperties\""},
      {R"({"unevaluatedItems":false})", "\"unevaluatedItems\""},
      {R"({"$dynamicRef":"#x"})", "\"$dynamicRef\""},
      {R"({"allOf":[{"else":{}}]})", "[\"else\"] at #/allOf/0/else"},
      {R"({"format":"regex"})", "Unknown format: regex"},
      {R"({"oneOf":[{"type":"integer"},{"minimum":2}]})",
       "oneOf constraints are not supported"},
      {R"({"$ref":"#/nowhere"})", "Pointer '/nowhere' does not exist"},
      {R"({"$ref":"http://example.com/a.json"})", "http://example.com/a.json"},
  };
  for (const auto& [schema, message] : cases) {
    const std::string refusal = Refusal("json_schema", schema);
    EXPECT_THAT(refusal, HasSubstr(message)) << schema;
    EXPECT_EQ(refusal.rfind("invalid json schema: ", 0), 0U) << refusal;
  }
}

TEST_F(Grammars, ASchemasOwnWhiteSpaceIsKept) {
  const std::string own =
      R"({"x-guidance":{"whitespace_flexible":false},"type":"null"})";
  EXPECT_EQ(llguidance::JsonSchemaGrammar(own, false)->text, own);
  EXPECT_THAT(
      std::string(llguidance::JsonSchemaGrammar(own, true).status().message()),
      HasSubstr("x-guidance"));
  // An inner one is no option of the whole.
  EXPECT_THAT(
      llguidance::JsonSchemaGrammar(R"({"$defs":{"x-guidance":{}}})", false)
          ->text,
      HasSubstr("whitespace_pattern"));
}

TEST_F(Grammars, CyclesAreHandledOrRefused) {
  for (
      const char* schema :
      {R"({"$ref":"#"})",
       R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})",
       R"({"allOf":[{"$ref":"#"}]})", R"({"items":{"$ref":"#"}})"}) {
    Refusal("json_schema", schema);  // either way it comes back
  }
  EXPECT_EQ(Refusal("json_schema", R"({"properties":{"next":{"$ref":"#"}}})"),
            "accepted");
  // A rule that begins with itself and never ends has no text.
  for (const char* lark : {"start: start \"a\"", "start: a\na: a\n",
                           "start: a\na: b\nb: a \"x\"\n"}) {
    Refusal("lark", lark);
  }
}

TEST_F(Grammars, TokenBytesFollowTheClass) {
  const std::vector<TokenId> stops = {toy_.end, 'q'};
  const auto tokens = llguidance::MakeTokenBytes(*toy_.tokenizer, stops);
  std::vector<std::string> bytes;
  std::size_t at = 0;
  for (const std::uint32_t length : tokens.lengths) {
    bytes.push_back(tokens.bytes.substr(at, length));
    at += length;
  }
  ASSERT_EQ(bytes.size(),
            static_cast<std::size_t>(toy_.tokenizer->vocab_size()));
  EXPECT_EQ(at, tokens.bytes.size());
  EXPECT_EQ(bytes['a'], "a");
  EXPECT_EQ(bytes[0xFF], "\xFF");  // the byte itself is ordinary
  EXPECT_EQ(bytes[0], std::string(1, '\0'));
  EXPECT_EQ(bytes[static_cast<std::size_t>(toy_.cab)], "cab");
  EXPECT_EQ(bytes[static_cast<std::size_t>(toy_.end)], "\xFF<|end|>");
  EXPECT_EQ(bytes['q'], "\xFFq");
  EXPECT_EQ(bytes[static_cast<std::size_t>(toy_.control)], "\xFF<|im_start|>");
  EXPECT_EQ(bytes[static_cast<std::size_t>(toy_.unknown)], "\xFF<unk>");
  EXPECT_EQ(bytes[static_cast<std::size_t>(toy_.user)], "<think>");
  EXPECT_EQ(bytes[static_cast<std::size_t>(toy_.unused)], "");
}

TEST_F(Grammars, ForcedTextOfAnyBytesEncodes) {
  llguidance::TokenizeBridge bridge(*toy_.tokenizer);
  EXPECT_EQ(bridge.Encode(""), std::vector<TokenId>());
  EXPECT_EQ(bridge.Encode("\xFF\x80"), (std::vector<TokenId>{0xFF, 0x80}));
  EXPECT_EQ(bridge.Encode("cab"), std::vector<TokenId>{toy_.cab});
  // Spellings of special tokens are text.
  EXPECT_EQ(bridge.Encode("<|end|>").size(), 7U);
  EXPECT_EQ(bridge.Encode("<think>").size(), 7U);
  bridge.Disconnect();
  EXPECT_EQ(bridge.Encode("cab"), std::vector<TokenId>());
}

TEST_F(Grammars, TheEngineIsTheOneThatIsPinned) {
  EXPECT_THAT(std::string(llguidance::EngineVersion()),
              HasSubstr("llguidance@1.8.0"));
}

}  // namespace
}  // namespace fucina
