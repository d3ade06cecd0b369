// Grammar flags as a user gives them. With the plugin: what comes out is what
// was asked for, in every mode. Without it: refused, never free text.

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/program.h"

namespace fucina {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramOptions;
using testing::ProgramResult;
using testing::RunFucina;
using testing::RunModel;
using testing::TemporaryDirectory;
using testing::WriteFile;

void ExpectUsage(const std::vector<std::string>& args,
                 const std::string& message) {
  const ProgramResult result = RunModel(args);
  EXPECT_EQ(result.exit_code, 2) << args[0];
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr(message));
}

// What the flags alone say; no plugin is needed to hear it.
TEST(GrammarFlags, AreChecked) {
  ExpectUsage({"--gen", "2", "--regex", "a", "--lark", "start: \"a\""},
              "--json-schema, --lark and --regex are mutually exclusive");
  ExpectUsage({"--gen", "2", "--json-schema", "{}", "--json-schema", "true"},
              "--json-schema is given twice; a reply follows one");
  ExpectUsage({"--gen", "2", "--lark=a", "--lark=b"},
              "--lark is given twice; a reply follows one");
  ExpectUsage({"--gen", "2", "--json-schema"},
              "missing value for --json-schema");
  ExpectUsage({"--gen", "2", "--json-schema="},
              "missing value for --json-schema");
  ExpectUsage({"--gen", "2", "--json-schema", "@"},
              "--json-schema: expected a path after '@'");
  ExpectUsage({"--gen", "2", "--lark", "@/no/such/file"},
              "--lark: '/no/such/file' cannot be read: No such file");
  ExpectUsage({"--gen", "2", "--json-schema", "@/tmp"},
              "--json-schema: '/tmp' is not a regular file");
  ExpectUsage({"--gen", "2", "--json-compact", "--regex", "a"},
              "--json-compact goes with --json-schema only");
  ExpectUsage({"--check-grammar"}, "--check-grammar needs a grammar");
  ExpectUsage({"--json-schema", "{}"},
              "--json-schema goes with --chat, --repl, --gen and "
              "--check-grammar only");
  ExpectUsage({"--regex", "a", "--verify-batch", "2"}, "--regex goes with");
  const std::string folder = TemporaryDirectory();
  WriteFile(folder + "/big.json", std::string((16U << 20) + 1, ' '));
  ExpectUsage({"--gen", "2", "--json-schema", "@" + folder + "/big.json"},
              "big.json' has 16777217 bytes, at most 16777216 are read");
  ExpectUsage({"--gen", "2", "--json-schema", "@/dev/zero"},
              "--json-schema: '/dev/zero' is not a regular file");
  WriteFile(folder + "/empty.json", "");
  ExpectUsage({"--gen", "2", "--json-schema", "@" + folder + "/empty.json"},
              "--json-schema: expected a grammar, found nothing");
}

TEST(GrammarFlags, AFlagReplacesThePipelinesConstraint) {
  const std::string folder = TemporaryDirectory();
  WriteFile(
      folder + "/p.yaml",
      "version: 1\nconstraint: {kind: llguidance, options: {regex: a}}\n");
  const ProgramResult result =
      RunModel({"--config", folder + "/p.yaml", "--lark", "start: \"b\"",
                "--dump-config"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("lark"), Not(HasSubstr("regex"))));
}

#if !FUCINA_HAS_LLGUIDANCE

TEST(WithoutThePlugin, AGrammarIsRefusedAndSaysWhatIsMissing) {
  for (const std::vector<std::string>& mode :
       {std::vector<std::string>{"--chat", "Hi"},
        std::vector<std::string>{"--prompt", "Hi", "--gen", "3"},
        std::vector<std::string>{"--check-grammar"}}) {
    std::vector<std::string> args = mode;
    args.insert(args.end(), {"--json-schema", "{}"});
    ExpectUsage(
        args, "constrained decoding needs the llguidance plugin (not built: ");
  }
  const std::string folder = TemporaryDirectory();
  WriteFile(
      folder + "/p.yaml",
      "version: 1\nconstraint: {kind: llguidance, options: {regex: a}}\n");
  ExpectUsage({"--config", folder + "/p.yaml", "--chat", "Hi"},
              "p.yaml:2: constraint.kind: constrained decoding needs the "
              "llguidance plugin");
}

#else

using nlohmann::json;

constexpr char kSchema[] =
    R"({"type":"object","properties":{"capital":{"type":"string","maxLength":16},
        "population":{"type":"integer","minimum":0,"maximum":9999}},
        "required":["capital","population"],"additionalProperties":false})";

void ExpectDocument(const std::string& text) {
  const json document = json::parse(text, nullptr, false);
  ASSERT_TRUE(document.is_object()) << text;
  EXPECT_EQ(document.size(), 2U) << text;
  EXPECT_TRUE(document.at("capital").is_string());
  EXPECT_LE(document.at("population").get<int>(), 9999);
}

TEST(Constrained, AChatAnswersInTheForm) {
  for (const char* seed : {"1", "2", "3", "4"}) {
    const ProgramResult result =
        RunModel({"--chat", "Describe Peru.", "--no-think", "--seed", seed,
                  "--temp", "1", "--quiet", "--json-schema", kSchema});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    ExpectDocument(result.out);
    EXPECT_THAT(result.err, Not(HasSubstr("incomplete")));
  }
}

TEST(Constrained, ThinkingIsFreeAndTheAnswerIsNot) {
  for (const char* seed : {"1", "2", "3"}) {
    const ProgramResult result =
        RunModel({"--chat", "What is the capital of Peru?", "--seed", seed,
                  "--regex", "[A-Z]{3,5}!"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(std::regex_match(
        result.out, std::regex("<think>\n[^]+\n</think>\n+[A-Z]{3,5}!\n")))
        << result.out;
    EXPECT_THAT(result.err, HasSubstr("thinking "));
  }
}

TEST(Constrained, ARepliesLimitWhileThinkingIsIncomplete) {
  const ProgramResult result =
      RunModel({"--chat", "What is the capital of Peru?", "--gen", "5",
                "--regex", "[A-Z]{3,5}!"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("reply is incomplete (constraint not satisfied)"));
}

TEST(Constrained, EveryTurnOfAConversationStartsAnew) {
  ProgramOptions options;
  options.input = "Describe Peru.\nDescribe Norway.\nAnd Chad?\n";
  const ProgramResult result = RunModel(
      {"--repl", "--no-think", "--quiet", "--json-schema", kSchema}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::size_t at = 0;
  int replies = 0;
  for (std::size_t end = result.out.find("}\n"); end != std::string::npos;
       end = result.out.find("}\n", at)) {
    ExpectDocument(result.out.substr(at, end + 1 - at));
    at = end + 2;
    ++replies;
  }
  EXPECT_EQ(replies, 3) << result.out;
}

TEST(Constrained, ACompletionEndsWithItsGrammar) {
  const ProgramResult result =
      RunModel({"--prompt", "The capital of Peru is", "--gen", "30", "--regex",
                " [A-Z][a-z]{2,8}\\."});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(std::regex_search(
      result.out,
      std::regex(
          "text:   The capital of Peru is [A-Z][a-z]{2,8}\\.<\\|[a-z_]+\\|>")))
      << result.out;
}

TEST(Constrained, AnEndlessNumberIsCutAndSaysSo) {
  const ProgramResult result =
      RunModel({"--prompt", "1 2 3", "--gen", "40", "--regex", "[0-9]{500}"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("generated 40:"));
  EXPECT_THAT(result.err,
              HasSubstr("reply is incomplete (constraint not satisfied)"));
}

TEST(Constrained, StreamsHaveAGrammarEach) {
  const ProgramResult result =
      RunModel({"--prompt", "The capital of Peru is", "--prompt", "Oslo",
                "--gen", "24", "--streams", "4", "--temp", "1", "--regex",
                " ([a-z]{2,4}|[0-9]{3})\\."});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("outputs: batch == sequential"));
  const std::regex line("text [0-3]:  ([a-z]{2,4}|[0-9]{3})\\.<\\|[a-z_]+\\|>");
  const auto begin =
      std::sregex_iterator(result.out.begin(), result.out.end(), line);
  EXPECT_EQ(std::distance(begin, std::sregex_iterator()), 4) << result.out;
}

TEST(Constrained, DraftingChangesNoReplyAndForcesTokens) {
  for (const char* temperature : {"0", "1"}) {
    for (const char* thinking : {"--no-think", "--quiet"}) {
      const std::vector<std::string> plain = {"--chat",        "Describe Peru.",
                                              "--temp",        temperature,
                                              "--seed",        "5",
                                              thinking,        "--json-compact",
                                              "--json-schema", kSchema};
      const ProgramResult expected = RunModel(plain);
      ASSERT_EQ(expected.exit_code, 0) << expected.err;
      std::vector<std::string> drafted = plain;
      drafted.insert(drafted.end(), {"--spec", "--no-spec-gate"});
      const ProgramResult found = RunModel(drafted);
      EXPECT_EQ(found.exit_code, 0) << found.err;
      EXPECT_EQ(found.out, expected.out);
    }
  }
  const ProgramResult figures =
      RunModel({"--chat", "Describe Peru.", "--no-think", "--json-compact",
                "--json-schema", kSchema});
  std::smatch match;
  ASSERT_TRUE(std::regex_search(
      figures.err, match,
      std::regex("constraint ([0-9]+) masks, ([0-9]+) us each \\(p99 ([0-9]+) "
                 "us, max ([0-9]+) us\\), ([0-9]+) tokens forced, complete;")))
      << figures.err;
  EXPECT_LE(std::stoi(match[2]), std::stoi(match[4])) << figures.err;
  EXPECT_LE(std::stoi(match[3]), std::stoi(match[4])) << figures.err;
  EXPECT_GE(std::stoi(match[5]), 3) << figures.err;
  ASSERT_TRUE(std::regex_search(
      figures.err, match,
      std::regex(" \\| constraint llguidance, compiled in ([0-9.]+) ms\n")))
      << figures.err;
  EXPECT_GT(std::stod(match[1]), 0);
  EXPECT_THAT(
      RunModel({"--prompt", "x", "--gen", "3", "--regex", "[a-z]{9}"}).out,
      HasSubstr(" tokens forced, incomplete\n"));
}

TEST(Constrained, AStopTokenThatTheGrammarNeedsIsNamed) {
  std::vector<std::string> args = {"--prompt", "x",       "--gen",
                                   "5",        "--regex", "a"};
  // Token 64 is "a".
  EXPECT_THAT(RunModel(args).out, HasSubstr("\ngenerated 2: 64 "));
  args.insert(args.end(), {"--stop", "64"});
  const ProgramResult result = RunModel(args);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              HasSubstr("constraint failed: the grammar needs the text of "
                        "token 64, which ends a reply; choose another stop "
                        "token"));
}

TEST(Constrained, TheListOfPluginsNamesTheEngine) {
  EXPECT_THAT(RunFucina({"plugins"}).out,
              HasSubstr("by llguidance@1.8.0 derivre@"));
}

TEST(Constrained, APipelineFileSaysTheSame) {
  const std::string folder = TemporaryDirectory();
  WriteFile(folder + "/p.yaml",
            "version: 1\nchat: {thinking: false}\n"
            "constraint: {kind: llguidance, options: {regex: 'no!|yes!'}}\n");
  const ProgramResult result =
      RunModel({"--config", folder + "/p.yaml", "--chat", "Is it?", "--quiet"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.out == "no!\n" || result.out == "yes!\n") << result.out;
}

TEST(Constrained, FilesAndChecks) {
  const std::string folder = TemporaryDirectory();
  WriteFile(folder + "/schema.json", kSchema);
  WriteFile(folder + "/grammar.lark", "start: \"a\" b\n");
  const ProgramResult good = RunModel(
      {"--check-grammar", "--json-schema", "@" + folder + "/schema.json"});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(good.out, "grammar ok\n");
  ExpectUsage({"--check-grammar", "--lark", "@" + folder + "/grammar.lark"},
              "--lark: invalid lark grammar: line 1, column 8: unknown name: "
              "\"b\"");
  ExpectUsage({"--chat", "Hi", "--json-schema", R"({"not":{}})"},
              "--json-schema: invalid json schema: Unimplemented keys: "
              "[\"not\"] at #/not");
  // What ends a conversation ends a grammar too.
  ExpectUsage({"--check-grammar", "--regex", "a", "--stop", "99999"},
              "--regex: end token 99999 is outside the vocabulary of ");
  // A leading @ of an expression is itself.
  const ProgramResult at =
      RunModel({"--chat", "Hi", "--no-think", "--quiet", "--regex", "@[ab]"});
  EXPECT_EQ(at.exit_code, 0) << at.err;
  EXPECT_EQ(at.out[0], '@');
}

TEST(Constrained, AReplyThatFailsEndsWithAnError) {
  // More forced text than the engine takes for one token.
  for (const std::vector<std::string>& mode :
       {std::vector<std::string>{"--chat", "Hi", "--no-think"},
        std::vector<std::string>{"--prompt", "Hi", "--gen", "20"},
        std::vector<std::string>{"--prompt", "Hi", "--gen", "20", "--streams",
                                 "2"}}) {
    std::vector<std::string> args = mode;
    args.insert(args.end(), {"--lark", "start: (\"a\" \"b\"){1000000000}"});
    const ProgramResult result = RunModel(args);
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_THAT(result.err,
                HasSubstr("error: constraint failed: parser error: Too many "
                          "items (limit 50000"));
  }
  // A token that no reply may have.
  const ProgramResult unused =
      RunModel({"--chat", "Hi", "--no-think", "--lark", "start: <[4095]>"});
  EXPECT_EQ(unused.exit_code, 1);
  EXPECT_THAT(
      unused.err,
      HasSubstr("error: constraint failed: no token that it allows may be "
                "sampled (all tokens masked)"));
}

TEST(Constrained, ModesWithoutAReplySaySo) {
  const std::string folder = TemporaryDirectory();
  WriteFile(
      folder + "/p.yaml",
      "version: 1\nconstraint: {kind: llguidance, options: {regex: a}}\n");
  const ProgramResult result =
      RunModel({"--config", folder + "/p.yaml", "--prompt", "Hello there",
                "--verify-batch", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("warning: constraint 'llguidance' is not "
                                    "used: there is no reply"));
}

TEST(Constrained, WhatASchemaSaysInVainIsWarnedOf) {
  const ProgramResult result =
      RunModel({"--check-grammar", "--json-schema",
                R"({"type":"string","maxLenght":3,"x-guidance":{"lenient":true},
           "not":{}})"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "grammar ok\n");
  EXPECT_EQ(result.err,
            "fucina: warning: json schema: unknown keywords have no effect: "
            "#/maxLenght\n"
            "fucina: warning: json schema: Unimplemented keys: [\"not\"]\n");
}

TEST(Constrained, CompactHasNoSpaces) {
  const ProgramResult result =
      RunModel({"--chat", "Describe Peru.", "--no-think", "--quiet", "--temp",
                "1", "--json-compact", "--json-schema",
                R"({"type":"array","items":{"type":"integer","maximum":9,
                  "minimum":0},"minItems":3,"maxItems":3})"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(std::regex_match(result.out, std::regex("\\[\\d,\\d,\\d\\]\n")))
      << result.out;
}

TEST(Constrained, AControlTokenSpelledInAStringIsNone) {
  const ProgramResult result =
      RunModel({"--prompt", "Say", "--gen", "60", "--json-schema",
                R"({"enum":["<|im_end|>","<|im_start|>"]})"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  // Ids of the marks: only the end behind the document.
  const std::string ids = result.out.substr(result.out.find("generated "));
  EXPECT_THAT(ids, Not(HasSubstr(" 4057")));
  EXPECT_EQ(ids.find(" 4058"), ids.rfind(" 4058"));
  EXPECT_THAT(result.err, Not(HasSubstr("incomplete")));
}

#endif

}  // namespace
}  // namespace fucina
