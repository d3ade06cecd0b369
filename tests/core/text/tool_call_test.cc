// Calls of tools in replies, as Qwen and GLM write them.

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fucina/text/reply_splitter.h"
#include "gtest/gtest.h"
#include "tests/core/text/reply_pieces.h"

namespace fucina {
namespace {

using testing::Case;
using testing::ExpectAll;
using testing::Glm;
using testing::Hermes;
using testing::InPieces;
using testing::kTools;
using testing::Make;
using testing::Whole;

// CHAT-7.
TEST(ToolCalls, QwenCallsAreJsonInTags) {
  const std::string call =
      "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
      "\"Paris\"}}\n</tool_call>";
  const std::string want = "F(get_weather {\"city\":\"Paris\"})";
  ExpectAll(
      Hermes(),
      {
          {call, want},
          {"Checking.\n" + call + "\n" + call + "\n",
           "C(Checking.)" + want + want},
          {"<think>\nhm\n</think>\n\n" + call, "T(hm)" + want},
          {"<think>" + call + "</think>x", "T(" + call + ")C(x)"},
          {call + " and more", want + "C(and more)"},
          {"a " + call + " b ", "C(a)" + want + "C(b )"},
          {"<tool_call>{\"name\":\"f\"}</tool_call>", "F(f {})"},
          {"<tool_call>{\"name\":\"f\",\"arguments\":null}</tool_call>",
           "F(f {})"},
          {"<tool_call>{\"name\":\"f\",\"arguments\":\"{\\\"a\\\": "
           "[1]}\"}</tool_call>",
           "F(f {\"a\":[1]})"},
          {"<tool_call>{\"arguments\":{\"é\":1.50,\"b\":1e2},\"name\":\"f\"}"
           "</tool_call>",
           "F(f {\"é\":1.5,\"b\":100.0})"},
          // The other family's spelling.
          {"<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Rome"
           "</arg_value>\n</tool_call>",
           "F(get_weather {\"city\":\"Rome\"})"},
      });
}

// CHAT-7.
TEST(ToolCalls, GlmCallsAreKeysAndValues) {
  auto pair = [](const std::string& key, const std::string& value) {
    return absl::StrCat("<arg_key>", key, "</arg_key>\n<arg_value>", value,
                        "</arg_value>\n");
  };
  ExpectAll(
      Glm(),
      {
          {"\n<tool_call>get_weather\n" + pair("city", "Paris") +
               "</tool_call>",
           "F(get_weather {\"city\":\"Paris\"})"},
          // The schema decides: a city is a text even if it reads as a number.
          {"<tool_call>get_weather\n" + pair("city", "5") + pair("n", "5") +
               pair("any", "7") + pair("num", "7") + pair("list", "[1, {}]") +
               pair("free", "true") + pair("other", "not json") +
               "</tool_call>",
           "F(get_weather {\"city\":\"5\",\"n\":5,\"any\":\"7\",\"num\":7,"
           "\"list\":[1,{}],\"free\":true,\"other\":\"not json\"})"},
          {"<tool_call>get_weather\n" + pair("any", "null") + "</tool_call>",
           "F(get_weather {\"any\":null})"},
          {"<tool_call>get_weather\n" + pair("city", " two\nlines ") +
               "</tool_call>",
           "F(get_weather {\"city\":\" two\\nlines \"})"},
          {"<tool_call>now</tool_call>", "F(now {})"},
          {"<tool_call>now\n</tool_call>", "F(now {})"},
          {"<tool_call>get_weather<arg_key>city</arg_key><arg_value>x"
           "</arg_value></tool_call>",
           "F(get_weather {\"city\":\"x\"})"},
          {"Hm.\n<tool_call>a</tool_call>\n<tool_call>b</tool_call>",
           "C(Hm.)F(a {})F(b {})"},
          {"<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>",
           "F(f {})"},
          {"<tool_call>mcp.files:read-all_2</tool_call>",
           "F(mcp.files:read-all_2 {})"},
          {"<tool_call>get_weather\r\n<arg_key>city</arg_key>\r\n<arg_value>x"
           "</arg_value>\r\n</tool_call>",
           "F(get_weather {\"city\":\"x\"})"},
          // The last one counts, as in JSON.
          {"<tool_call>get_weather\n" + pair("n", "1") + pair("n", "2") +
               "</tool_call>",
           "F(get_weather {\"n\":2})"},
      });
}

// A name that nothing declares must look like one; a declared one may be
// anything.
TEST(ToolCalls, GlmKnowsDeclaredNames) {
  const ReplySplitterOptions declared = {
      .tool_calls = ToolCallFormat::kGlm,
      .tools_json = R"([{"type":"function","function":{"name":"für alle"}}])"};
  ExpectAll(declared, {{"<tool_call>für alle</tool_call>", "F(für alle {})"},
                       {"<tool_call>für wen</tool_call>",
                        "C(<tool_call>für wen</tool_call>)"}});
}

// The other ways in which a schema says text: what reads as a number stays one
// only where numbers are allowed.
TEST(ToolCalls, GlmArgumentTypesFollowTheSchema) {
  const ReplySplitterOptions options = {
      .tool_calls = ToolCallFormat::kGlm,
      .tools_json =
          R"([{"type":"function","function":{"name":"f","parameters":{)"
          R"("$defs":{"Size":{"enum":["1","2"]},"Loop":{"anyOf":[)"
          R"({"$ref":"#/$defs/Loop"},{"$ref":"#/$defs/Loop"}]}},)"
          R"("properties":{)"
          R"("maybe":{"anyOf":[{"type":"string"},{"type":"null"}]},)"
          R"("either":{"oneOf":[{"type":"string"},{"type":"integer"}]},)"
          R"("digits":{"enum":["1","2"]},"count":{"enum":[1,2]},)"
          R"("fixed":{"const":"7"},"size":{"$ref":"#/$defs/Size"},)"
          R"("loop":{"$ref":"#/$defs/Loop"},"lost":{"$ref":"#/$defs/No/x"},)"
          R"("odd":{"type":5,"anyOf":7,"enum":{}},"none":5}}}}])"};
  const auto call = [](const std::string& key, const std::string& value) {
    return absl::StrCat("<tool_call>f\n<arg_key>", key,
                        "</arg_key>\n<arg_value>", value,
                        "</arg_value>\n</tool_call>");
  };
  ExpectAll(options, {
                         {call("maybe", "5"), "F(f {\"maybe\":\"5\"})"},
                         {call("maybe", "true"), "F(f {\"maybe\":\"true\"})"},
                         {call("maybe", "null"), "F(f {\"maybe\":null})"},
                         {call("either", "5"), "F(f {\"either\":5})"},
                         {call("either", "5.5"), "F(f {\"either\":\"5.5\"})"},
                         {call("digits", "2"), "F(f {\"digits\":\"2\"})"},
                         {call("count", "2"), "F(f {\"count\":2})"},
                         {call("fixed", "7"), "F(f {\"fixed\":\"7\"})"},
                         {call("size", "1"), "F(f {\"size\":\"1\"})"},
                         {call("loop", "1"), "F(f {\"loop\":1})"},
                         {call("lost", "1"), "F(f {\"lost\":1})"},
                         {call("odd", "1"), "F(f {\"odd\":1})"},
                         {call("none", "[1"), "F(f {\"none\":\"[1\"})"},
                     });
}

TEST(ToolCalls, ABareJsonCallIsOneWhenTheToolExists) {
  const std::string call =
      "{\"name\": \"get_weather\", \"arguments\": {\"n\": 2}}";
  for (const ReplySplitterOptions& options : {Hermes(), Glm()}) {
    ExpectAll(
        options,
        {
            {call, "F(get_weather {\"n\":2})"},
            {"\n" + call + "\n", "F(get_weather {\"n\":2})"},
            {"<think>x</think>" + call, "T(x)F(get_weather {\"n\":2})"},
            {"{\"name\": \"nope\", \"arguments\": {}}",
             "C({\"name\": \"nope\", \"arguments\": {}})"},
            {"{\"name\": \"get_weather\"", "C({\"name\": \"get_weather\")"},
            {call + " is it", "C(" + call + " is it)"},
            {"{\"a\": 1}", "C({\"a\": 1})"},
            {"{\"na", "C({\"na)"},
            {"{}", "C({})"},
        });
  }
}

// CHAT-8, in both families.
TEST(ToolCalls, MalformedCallsAreText) {
  std::vector<std::string> bodies = {
      "{\"name\": \"f\", \"arguments\": {",
      "{\"name\": \"f\"",
      "",
      " ",
      "{}",
      "{\"name\": \"\"}",
      "{\"name\": 5}",
      "[1]",
      "{\"name\": \"f\", \"arguments\": 5}",
      "{\"name\": \"f\", \"arguments\": \"no\"}",
      "{\"name\": \"f\", \"arguments\": []}",
      "{\"name\": \"f}",
      "{\"name\": \"f\", \"arguments\": {\"city\": \"Paris}}",
      "{\"name\": \"f\"} and more",
      "{\"name\": \"\xFF\"}",
      "{'name': 'f'}",
      "a plain sentence",
      "a<b",
      "<arg_key>a</arg_key><arg_value>b</arg_value>",
      "\n<arg_key>a</arg_key>\n<arg_value>b</arg_value>\n",
      "f<arg_key>a</arg_key>",
      "f<arg_key>a",
      "f\n<arg_key>a</arg_key>\n<arg_value>b",
      "f\n<arg_key>a</arg_key>\n<arg_value>b</arg_value",
      "f\n<arg_key>a</arg_key>\n<arg_value>b</arg_value>\ntail",
      "f x<arg_value>b</arg_value>",
      "f<arg_key>a</arg_key>x<arg_value>b</arg_value>",
      "f<arg_key> </arg_key><arg_value>b</arg_value>",
      // A closing tag is missing and the next pair's would do.
      "f<arg_key>a<arg_value>1</arg_value><arg_key>b</arg_key><arg_value>2"
      "</arg_value>",
      "f<arg_key>a</arg_key><arg_value>1<arg_key>b</arg_key><arg_value>2"
      "</arg_value>",
      "f<arg_key>a</arg_key><arg_key>b</arg_key><arg_value>2</arg_value>",
      "<tool_call>{\"name\":\"f\"}",
      "f\n<tool_call>f",
      "{\"name\":\"f\",\"arguments\":{\"a\":" + std::string(5000, '[') +
          std::string(5000, ']') + "}}",
  };
  for (const ReplySplitterOptions& options : {Hermes(), Glm()}) {
    std::vector<Case> cases;
    for (const std::string& body : bodies) {
      const std::string text =
          absl::StrCat("<tool_call>", body, "</tool_call>");
      cases.push_back({text, absl::StrCat("C(", text, ")")});
      const std::string cut = absl::StrCat("a\n<tool_call>", body);
      cases.push_back({cut, absl::StrCat("C(", cut, ")")});
    }
    cases.push_back({"a <tool_cal", "C(a <tool_cal)"});
    cases.push_back({"a <tool_call", "C(a <tool_call)"});
    // What is well formed around it is a call all the same.
    cases.push_back(
        {"<tool_call>{\"name\":\"f\"}</tool_call>\n<tool_call>{</tool_call>\n"
         "<tool_call>{\"name\":\"g\"}</tool_call>\n<tool_call>{\"na",
         "F(f {})C(<tool_call>{</tool_call>)F(g {})C(<tool_call>{\"na)"});
    ExpectAll(options, cases);
  }
  // Qwen always writes JSON; in GLM's form a bare name is a call.
  ExpectAll(Hermes(), {{"<tool_call>plain</tool_call>",
                        "C(<tool_call>plain</tool_call>)"}});
}

TEST(ToolCalls, WithoutToolsCallsAreText) {
  const std::string call = "<tool_call>{\"name\":\"f\"}</tool_call>\n";
  ExpectAll({.tool_calls = ToolCallFormat::kHermes},
            {{call, "C(" + call + ")"}});
  ExpectAll({.tools_json = kTools}, {{call, "C(" + call + ")"}});
  const auto splitter = Make(Hermes());
  splitter->Push("<tool_call>{\"name\":\"f\"}</tool_call>");
  EXPECT_TRUE(splitter->has_tool_call());
  EXPECT_FALSE(Make(Hermes())->has_tool_call());
}

// CHAT-7: text, calls of either spelling and broken calls in any order, cut
// anywhere, come apart as they were put together. Line ends stand between them;
// those next to a call are the template's and belong to nobody.
TEST(ToolCalls, RepliesComeApartAsTheyWerePutTogether) {
  std::mt19937 random(7);
  auto pick = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  // As they stand in a GLM value, and in JSON.
  const std::vector<std::pair<std::string, std::string>> cities = {
      {"Paris", "Paris"},
      {"São Tomé", "São Tomé"},
      {"5", "5"},
      {"a \"b\"", "a \\\"b\\\""},
      {"x\ny", "x\\ny"},
      {"</tool", "</tool"},
      {"<think>", "<think>"},
      {"{\"name\":", "{\\\"name\\\":"},
      {"null", "null"},
      {"C:\\temp", "C:\\\\temp"},
      {"\xF0\x9F\xA6\x89", "\xF0\x9F\xA6\x89"}};
  const std::vector<std::string> texts = {
      "Checking.", "a < b", "<tool", "né", "</tool_call>", "<arg_key>"};
  const std::vector<std::string> broken = {
      "<tool_call>{\"name\":</tool_call>", "<tool_call></tool_call>",
      "<tool_call>f<arg_key>a</tool_call>",
      "<tool_call>{\"name\": \"get_weather}</tool_call>"};
  for (int round = 0; round < 1500; ++round) {
    const ReplySplitterOptions options = pick(2) == 0 ? Hermes() : Glm();
    const bool glm = options.tool_calls == ToolCallFormat::kGlm;
    std::string reply, want, open;
    if (pick(2) == 0) {
      reply = "<think>\nhm\n</think>\n\n";
      want = "T(hm)";
    }
    for (std::size_t i = 0, n = 1 + pick(5); i < n; ++i) {
      if (i > 0) reply += "\n";
      if (pick(2) == 0) {
        const std::string part = pick(2) == 0 ? texts[pick(texts.size())]
                                              : broken[pick(broken.size())];
        reply += part;
        absl::StrAppend(&open, open.empty() ? "" : "\n", part);
        continue;
      }
      const auto& [city, json] = cities[pick(cities.size())];
      const std::string number = std::to_string(pick(100));
      const std::string arguments =
          absl::StrCat("{\"city\":\"", json, "\",\"n\":", number, "}");
      // Now and then the other family's spelling.
      if (glm != (pick(8) == 0)) {
        absl::StrAppend(&reply, "<tool_call>get_weather\n<arg_key>city",
                        "</arg_key>\n<arg_value>", city,
                        "</arg_value>\n<arg_key>n</arg_key>\n<arg_value>",
                        number, "</arg_value>\n</tool_call>");
      } else {
        absl::StrAppend(&reply, "<tool_call>\n{\"name\": \"get_weather\", ",
                        "\"arguments\": ", arguments, "}\n</tool_call>");
      }
      if (!open.empty()) absl::StrAppend(&want, "C(", open, ")");
      open.clear();
      absl::StrAppend(&want, "F(get_weather ", arguments, ")");
    }
    if (!open.empty()) absl::StrAppend(&want, "C(", open, ")");
    ASSERT_EQ(Whole(options, reply), want) << reply;
    for (int cutting = 0; cutting < 4; ++cutting) {
      std::vector<std::size_t> cuts;
      for (std::size_t at = 1; at < reply.size(); ++at) {
        if (cutting == 0 || pick(1 + 4 * cutting) == 0) cuts.push_back(at);
      }
      ASSERT_EQ(InPieces(options, reply, cuts), want) << reply;
    }
  }
}

}  // namespace
}  // namespace fucina
