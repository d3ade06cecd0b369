// `fucina run --repl` at a terminal and behind a pipe.

#include <unistd.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/program.h"
#include "tests/cli/terminal.h"

namespace fucina {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramOptions;
using testing::ProgramResult;
using testing::RunFucina;
using testing::Terminal;

constexpr char kCtrlC[] = "\x03";
constexpr char kCtrlD[] = "\x04";

std::vector<std::string> Repl(const std::vector<std::string>& more = {}) {
  std::vector<std::string> args = {"run", "--repl", "--no-think", "--temp",
                                   "0"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// Dice at this temperature: a reply that goes on for thousands of tokens.
std::vector<std::string> LongReplies() {
  return Repl({"--temp", "30", "--top-k", "0", "--top-p", "1", "--gen",
               "100000", "--threads", "1", "--kernel-level", "scalar"});
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

// CLI-1.
TEST(Repl, EndOfInputLeaves) {
  Terminal terminal(Repl());
  ASSERT_TRUE(terminal.WaitForPrompt());
  terminal.Type(kCtrlD);
  EXPECT_EQ(terminal.WaitForEnd(), 0);
  EXPECT_EQ(terminal.reply(), "");
}

TEST(Repl, AnEmptyLineLeavesAndIsNotSent) {
  for (const char* line : {"\r", "  \t \r"}) {
    Terminal terminal(Repl({"--show-prompt"}));
    ASSERT_TRUE(terminal.WaitForPrompt());
    terminal.Type(line);
    EXPECT_EQ(terminal.WaitForEnd(), 0);
    EXPECT_EQ(terminal.reply(), "");
    EXPECT_THAT(terminal.screen(), Not(HasSubstr("--- prompt")));
  }
}

TEST(Repl, EndOfInputAfterATurnLeaves) {
  Terminal terminal(Repl());
  ASSERT_TRUE(terminal.WaitForPrompt());
  terminal.Type("What is the capital of Norway?\r");
  ASSERT_TRUE(terminal.WaitForReply("Oslo"));
  ASSERT_TRUE(terminal.WaitForPrompt());
  terminal.Type(kCtrlD);
  EXPECT_EQ(terminal.WaitForEnd(), 0);
  EXPECT_EQ(Count(terminal.reply(), "\n"), 1);
}

// Pressed while the reply is written, when no editor reads keys.
TEST(Repl, EndOfInputTypedAheadLeavesAfterTheReply) {
  Terminal terminal(Repl({"--threads", "1", "--kernel-level", "scalar"}));
  ASSERT_TRUE(terminal.WaitForPrompt());
  terminal.Type("What is the capital of Norway?\r");
  ASSERT_TRUE(terminal.WaitForMoreReply(1));
  terminal.Type(kCtrlD);
  EXPECT_EQ(terminal.WaitForEnd(), 0);
  EXPECT_THAT(terminal.reply(), HasSubstr("Oslo"));
}

// CLI-2.
TEST(Repl, InterruptAtThePromptLeaves) {
  Terminal terminal(Repl());
  ASSERT_TRUE(terminal.WaitForPrompt());
  terminal.Type("half a mess");
  ASSERT_TRUE(terminal.WaitForScreen("half a mess"));
  terminal.Type(kCtrlC);
  EXPECT_EQ(terminal.WaitForEnd(), 130);
  EXPECT_EQ(terminal.reply(), "");
}

TEST(Repl, InterruptStopsTheReplyAndKeepsTheConversation) {
  Terminal terminal(LongReplies());
  ASSERT_TRUE(terminal.WaitForPrompt());
  terminal.Type("What is the capital of Norway?\r");
  ASSERT_TRUE(terminal.WaitForMoreReply(20));
  terminal.Type(kCtrlC);
  ASSERT_TRUE(terminal.WaitForScreen("ended by cancelled"));
  ASSERT_TRUE(terminal.WaitForPrompt());
  // The next turn continues the same conversation: its tokens are reused.
  terminal.Type("And its currency?\r");
  ASSERT_TRUE(terminal.WaitForMoreReply(20));
  terminal.Type(kCtrlC);
  ASSERT_TRUE(terminal.WaitForScreen(" reused)"));
  ASSERT_TRUE(terminal.WaitForScreen("ended by cancelled"));
  ASSERT_TRUE(terminal.WaitForPrompt());
  terminal.Type(kCtrlC);
  EXPECT_EQ(terminal.WaitForEnd(), 130);
}

TEST(Repl, InterruptTwiceLeaves) {
  Terminal terminal(LongReplies());
  ASSERT_TRUE(terminal.WaitForPrompt());
  terminal.Type("What is the capital of Norway?\r");
  ASSERT_TRUE(terminal.WaitForMoreReply(20));
  terminal.Type(kCtrlC);
  usleep(20000);  // two presses, not one signal
  terminal.Type(kCtrlC);
  EXPECT_EQ(terminal.WaitForEnd(), 130);
}

// CLI-3.
TEST(Repl, PastedLinesAreOneMessage) {
  Terminal terminal(Repl({"--show-prompt"}));
  ASSERT_TRUE(terminal.WaitForPrompt());
  terminal.Type("one\rtwo\r\rfour\r");
  ASSERT_TRUE(
      terminal.WaitForScreen("user\r\none\r\ntwo\r\n\r\nfour<|im_end|>"));
  ASSERT_TRUE(terminal.WaitForScreen("ended by"));
  ASSERT_TRUE(terminal.WaitForPrompt());
  terminal.Type(kCtrlD);
  EXPECT_EQ(terminal.WaitForEnd(), 0);
  EXPECT_EQ(Count(terminal.screen(), "--- prompt"), 1);
}

TEST(Repl, ABackslashContinuesTheMessage) {
  Terminal terminal(Repl({"--show-prompt"}));
  ASSERT_TRUE(terminal.WaitForScreen("\\ at the end of a line continues it"));
  ASSERT_TRUE(terminal.WaitForPrompt());
  terminal.Type("one\\\r");
  ASSERT_TRUE(terminal.WaitForScreen("| "));
  usleep(100000);  // a person, not a paste
  terminal.Type("two\r");
  ASSERT_TRUE(terminal.WaitForScreen("user\r\none\r\ntwo<|im_end|>"));
  ASSERT_TRUE(terminal.WaitForScreen("ended by"));
  ASSERT_TRUE(terminal.WaitForPrompt());
  terminal.Type(kCtrlD);
  EXPECT_EQ(terminal.WaitForEnd(), 0);
  EXPECT_EQ(Count(terminal.screen(), "--- prompt"), 1);
}

TEST(Repl, CharactersOfSeveralBytesArriveWhole) {
  Terminal terminal(Repl({"--show-prompt"}));
  ASSERT_TRUE(terminal.WaitForPrompt());
  terminal.Type("né 🦉 東\r");
  ASSERT_TRUE(terminal.WaitForScreen("user\r\nné 🦉 東<|im_end|>"));
  ASSERT_TRUE(terminal.WaitForScreen("ended by"));
  ASSERT_TRUE(terminal.WaitForPrompt());
  terminal.Type(kCtrlD);
  EXPECT_EQ(terminal.WaitForEnd(), 0);
}

// CLI-1: whole text from a pipe is one message, line ends and all.
TEST(Repl, PipedTextIsOneMessageOfChat) {
  ProgramOptions options;
  options.input = "one\n\ntwo\r\nthree\n";
  const ProgramResult result = RunFucina(
      {"run", "--chat", "-", "--no-think", "--temp", "0", "--show-prompt"},
      options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("user\none\n\ntwo\nthree<|im_end|>"));
  EXPECT_EQ(Count(result.err, "--- prompt"), 1);
  options.input = "";
  EXPECT_EQ(RunFucina({"run", "--chat", "-"}, options).exit_code, 2);
}

TEST(Repl, BehindAPipeThereIsNoPromptSign) {
  ProgramOptions options;
  options.input = "What is the capital of Norway?";  // no line end
  const ProgramResult result = RunFucina(Repl(), options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Oslo"));
  EXPECT_EQ(Count(result.out, "\n"), 1);
  EXPECT_THAT(result.out + result.err,
              AllOf(Not(HasSubstr("> ")), Not(HasSubstr("Ctrl-D"))));
}

// CTX-6 and CTX-1: the end of the context is seen coming, and is an end.
TEST(Repl, TheEndOfTheContextIsAnnounced) {
  ProgramOptions options;
  for (int i = 0; i < 12; ++i) {
    options.input += "What is the capital of Norway?\n";
  }
  const ProgramResult result = RunFucina(Repl({"--ctx", "160"}), options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::size_t warned =
      result.err.find(" of 160 tokens of the context are used");
  const std::size_t full =
      result.err.find("[context full — restart to continue]");
  EXPECT_NE(warned, std::string::npos) << result.err;
  EXPECT_NE(full, std::string::npos) << result.err;
  EXPECT_LT(warned, full);
  EXPECT_EQ(Count(result.err, "tokens of the context are used"), 1);
}

}  // namespace
}  // namespace fucina
