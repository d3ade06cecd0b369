#include "fucina/text/reply_splitter.h"

#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/core/text/reply_pieces.h"

namespace fucina {
namespace {

using testing::ExpectAll;
using testing::Hermes;
using testing::InPieces;
using testing::kTools;
using testing::Log;
using testing::Make;
using testing::Whole;

ReplySplitterOptions Thinking(PromptThinking thinking) {
  return {.thinking = thinking};
}

TEST(ReplySplitter, ALeadingBlockIsThinking) {
  ExpectAll(
      Thinking(PromptThinking::kUndecided),
      {
          {"Yes", "C(Yes)"},
          {"", ""},
          {"<think>\nhm\n</think>\n\nYes", "T(hm)C(Yes)"},
          {"\n <think>hm</think>Yes\n", "T(hm)C(Yes\n)"},
          {"<think>\n\n</think>\n\nYes", "C(Yes)"},
          {"<think>a\n\nb</think> x", "T(a\n\nb)C(x)"},
          {"<think>cut", "T(cut)"},
          {"<think>cut\n\n", "T(cut)"},
          {"<think>cut</thi", "T(cut</thi)"},
          {"<think>a</thinker></think>b", "T(a</thinker>)C(b)"},
          {"</think>\n\nYes", "C(Yes)"},
          {"<thinker>", "C(<thinker>)"},
          {"<thi", "C(<thi)"},
          {"  ", "C(  )"},
          {"  x", "C(  x)"},
          {"Yes <think>a</think>", "C(Yes <think>a</think>)"},
          {"<think>a</think>b<think>c</think>", "T(a)C(b<think>c</think>)"},
      });
}

TEST(ReplySplitter, APromptThatOpenedTheBlockStartsInside) {
  ExpectAll(Thinking(PromptThinking::kOpen),
            {
                {"hm\n</think>\n\nYes", "T(hm)C(Yes)"},
                {"\nhm", "T(hm)"},
                {"</think>Yes", "C(Yes)"},
                {"no end", "T(no end)"},
            });
}

TEST(ReplySplitter, AClosedBlockStaysClosed) {
  ExpectAll(Thinking(PromptThinking::kClosed),
            {
                {"Yes", "C(Yes)"},
                {"\n</think>\nYes", "C(Yes)"},
                {"\nYes\nNo", "C(Yes\nNo)"},
                {"  Yes", "C(  Yes)"},
                {"<think>a</think>b", "C(<think>a</think>b)"},
            });
}

TEST(ReplySplitter, WithoutMarkersAllIsContent) {
  ExpectAll({.think_open = "", .think_close = ""},
            {{"<think>a</think>b", "C(<think>a</think>b)"}});
  ExpectAll({.think_open = "[THINK]", .think_close = "[/THINK]"},
            {{"[THINK]a[/THINK]b", "T(a)C(b)"}});
}

TEST(ReplySplitter, TellsWhetherItIsThinking) {
  const auto splitter = Make({});
  EXPECT_FALSE(splitter->in_thinking());
  splitter->Push("<think>");
  EXPECT_TRUE(splitter->in_thinking());
  splitter->Push("a</thi");
  EXPECT_TRUE(splitter->in_thinking());
  splitter->Push("nk>b");
  EXPECT_FALSE(splitter->in_thinking());
  EXPECT_TRUE(Make({.thinking = PromptThinking::kOpen})->in_thinking());
  EXPECT_FALSE(
      Make({.raw = true, .thinking = PromptThinking::kOpen})->in_thinking());
}

TEST(ReplySplitter, StopStringsEndTheReplyBeforeThem) {
  ExpectAll({.stop = {"END", "\n\n"}}, {
                                           {"abcENDdef", "C(abc)#0"},
                                           {"abc\n\nEND", "C(abc)#1"},
                                           {"abcEN", "C(abcEN)"},
                                           {"abcENEND", "C(abcEN)#0"},
                                           {"END", "#0"},
                                           {"<think>a\n\nb", "T(a)#1"},
                                           {"\nENx\nE", "C(\nENx\nE)"},
                                       });
  // The match that starts first wins, although the other ends first.
  ExpectAll({.stop = {"bc", "abcd"}}, {
                                          {"xabcd", "C(x)#1"},
                                          {"xabce", "C(xa)#0"},
                                          {"xabc", "C(xa)#0"},
                                      });
  // Then the order of the list.
  ExpectAll({.stop = {"ab", "abc"}}, {{"xabc", "C(x)#0"}});
  ExpectAll({.stop = {"abc", "ab"}},
            {{"xabc", "C(x)#0"}, {"xabd", "C(x)#1"}, {"xab", "C(x)#1"}});
  // A stop string inside a call cuts it.
  ReplySplitterOptions options = Hermes();
  options.stop = {"}}"};
  ExpectAll(options,
            {{"<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>",
              "C(<tool_call>{\"name\":\"f\",\"arguments\":{)#0"}});
}

TEST(ReplySplitter, NothingOfAStopStringIsShown) {
  const auto splitter = Make({.stop = {"</answer>"}});
  Log log;
  for (const char c : std::string("fine</answe")) {
    log.Add(splitter->Push(std::string(1, c)));
    EXPECT_FALSE(splitter->stopped());
  }
  log.Add(splitter->Push("r> tail"));
  EXPECT_TRUE(splitter->stopped());
  EXPECT_TRUE(splitter->Push("more").empty());
  EXPECT_TRUE(splitter->Finish().empty());
  EXPECT_EQ(log.Take(), "C(fine)");
}

TEST(ReplySplitter, RawShowsEverythingAndStillStops) {
  ExpectAll(
      {.raw = true,
       .tool_calls = ToolCallFormat::kHermes,
       .tools_json = kTools,
       .stop = {"END"}},
      {{" <think>a</think>\n<tool_call>{\"name\":\"f\"}</tool_call>END",
        "C( <think>a</think>\n<tool_call>{\"name\":\"f\"}</tool_call>)#0"}});
}

TEST(ReplySplitter, TextComesOutAsSoonAsItIsCertain) {
  const auto splitter = Make(Hermes());
  auto push = [&](const std::string& bytes) {
    Log log;
    log.Add(splitter->Push(bytes));
    return log.Take();
  };
  EXPECT_EQ(push("Hello"), "C(Hello)");
  EXPECT_EQ(push(" there <"), "C( there)");
  EXPECT_EQ(push("b"), "C( <b)");
  EXPECT_EQ(push("old"), "C(old)");
  EXPECT_EQ(push("\n<tool_call>{\"name\":"), "");
  EXPECT_EQ(push("\"f\"}</tool_call>"), "F(f {})");
}

TEST(ReplySplitter, BadOptionsAreRefused) {
  EXPECT_EQ(ReplySplitter::Create({.stop = {"a", ""}}).status(),
            absl::InvalidArgumentError("stop: an empty string stops nothing"));
  EXPECT_EQ(ReplySplitter::Create({.stop = std::vector<std::string>(65, "x")})
                .status(),
            absl::InvalidArgumentError("stop: at most 64 strings, found 65"));
  EXPECT_EQ(ReplySplitter::Create({.tools_json = "{}"}).status(),
            absl::InvalidArgumentError(
                "tools: expected a JSON array of declarations"));
  EXPECT_EQ(ReplySplitter::Create({.tools_json = "[1"}).status(),
            absl::InvalidArgumentError(
                "tools: expected JSON, found something else at byte 2"));
}

TEST(ReplySplitter, OptionsComeFromTemplateAndPrompt) {
  const auto t = ChatTemplate::FromText(
      "t", "{{ messages[0].content }}<tool_call> arguments <think>\n");
  ASSERT_TRUE(t.ok());
  const ChatMessage hi{.role = "user", .content = "Hi"};
  const auto prompt = (*t)->Render({&hi, 1});
  ASSERT_TRUE(prompt.ok());
  const ReplySplitterOptions options = ReplySplitter::OptionsFor(**t, *prompt);
  EXPECT_EQ(options.thinking, PromptThinking::kOpen);
  EXPECT_EQ(options.think_open, "<think>");
  EXPECT_EQ(options.think_close, "</think>");
  EXPECT_EQ(options.tool_calls, ToolCallFormat::kHermes);
  EXPECT_FALSE(options.raw);
}

// Replies put together from the tokens that matter, cut anywhere, give what
// they give whole.
TEST(ReplySplitter, CutsDoNotMatter) {
  const std::vector<std::string> parts = {
      "<think>",
      "</think>",
      "<tool_call>",
      "</tool_call>",
      "\n",
      " ",
      "x",
      "{\"name\": \"get_weather\", \"arguments\": {\"n\": 1}}",
      "{\"name\"",
      "<arg_key>",
      "</arg_key>",
      "<arg_value>",
      "</arg_value>",
      "city",
      "<th",
      "</",
      "<tool",
      "STOP",
      "ST",
      "O",
      "\xE2\x82\xAC",
      "}",
      "get_weather"};
  std::mt19937 random(20240726);
  auto pick = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  for (int round = 0; round < 6000; ++round) {
    ReplySplitterOptions options;
    options.thinking = static_cast<PromptThinking>(pick(3));
    options.tool_calls = static_cast<ToolCallFormat>(pick(3));
    if (pick(4) != 0) options.tools_json = kTools;
    if (pick(3) == 0) options.stop = {"STOP", "OP", "x\n"};
    if (pick(8) == 0) options.raw = true;
    std::string reply;
    for (std::size_t i = pick(12); i > 0; --i)
      reply += parts[pick(parts.size())];
    const std::string whole = Whole(options, reply);
    for (int cutting = 0; cutting < 4; ++cutting) {
      std::vector<std::size_t> cuts;
      for (std::size_t at = 1; at < reply.size(); ++at) {
        if (cutting == 0 || pick(3) == 0) cuts.push_back(at);
      }
      ASSERT_EQ(InPieces(options, reply, cuts), whole) << reply;
    }
  }
}

// Long holds must not cost quadratic time.
TEST(ReplySplitter, LongRepliesAreLinear) {
  for (const std::string unit : {"x", "\n", "<", "<tool_call>", "STO", " <"}) {
    ReplySplitterOptions options = Hermes();
    options.stop = {"STOP"};
    const auto splitter = Make(options);
    std::size_t bytes = 0;
    auto count = [&](const std::vector<ReplyPiece>& pieces) {
      for (const ReplyPiece& piece : pieces) bytes += piece.text.size();
    };
    for (int i = 0; i < 30'000; ++i) count(splitter->Push(unit));
    count(splitter->Finish());
    EXPECT_EQ(bytes, 30'000 * unit.size()) << unit;
  }
}

}  // namespace
}  // namespace fucina
