// What a careless or hostile user does to the program: streams that are closed,
// full or endless, files that are none, flags that look like values, modes that
// do not go together.

#include <sys/stat.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/program.h"

namespace fucina {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramOptions;
using testing::ProgramResult;
using testing::ReadFile;
using testing::RunFucina;
using testing::RunModel;
using testing::RunShell;
using testing::TemporaryDirectory;
using testing::WriteFile;

constexpr char kHello[] = "fucina run --quiet --no-think --temp 0 ";

TEST(StandardStreams, AnAnswerThatCannotBeWrittenIsAnError) {
  for (const std::string command :
       {"--chat hello > /dev/full", "--repl > /dev/full <<< hello",
        "--chat hello >&-", "--repl >&- <<< hello"}) {
    const ProgramResult result = RunShell(kHello + command);
    EXPECT_EQ(result.exit_code, 4) << command << result.err;
    EXPECT_THAT(result.err, HasSubstr("standard output cannot be written: "))
        << command;
  }
}

TEST(StandardStreams, InputThatCannotBeReadIsAnError) {
  for (const auto& [command, message] :
       std::vector<std::pair<std::string, std::string>>{
           {"--chat - <&-", "--chat: standard input cannot be read: Bad file"},
           {"--repl <&-", "--repl: standard input cannot be read: Bad file"},
           {"--chat - < /", "--chat: standard input cannot be read: Is a dir"},
           {"--repl < /", "--repl: standard input cannot be read: Is a dir"},
           {"--chat - < /dev/zero",
            "--chat: standard input has more than 8 MiB"},
           {"--repl < /dev/zero",
            "--repl: a line of standard input has more than 8 MiB"},
           {"--chat @/dev/zero", "--chat: '/dev/zero' has more than 8 MiB"},
           {"--chat @/", "--chat: '/' cannot be read: Is a directory"},
           {"--chat @absent", "'absent' cannot be read: No such file"}}) {
    const ProgramResult result = RunShell(kHello + command);
    EXPECT_EQ(result.exit_code, 2) << command << result.err;
    EXPECT_THAT(result.err, HasSubstr(message)) << command;
    EXPECT_EQ(result.out, "") << command;
  }
  for (const std::string path : {"/dev/zero", "/", "absent"}) {
    const ProgramResult result = RunModel({"--tokenize", path});
    EXPECT_EQ(result.exit_code, 2) << path;
    EXPECT_THAT(result.err, HasSubstr("--tokenize: '" + path + "' ")) << path;
  }
}

// A file opened by the program must not get the number of a closed stream.
TEST(StandardStreams, ClosedOnesAreNotTakenByFiles) {
  const std::string path = TemporaryDirectory() + "/tokens.bin";
  const ProgramResult result = RunShell(
      "fucina run 2>/dev/null --gen 3 --tokens-out " + path + " <&- >&-");
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(ReadFile(path).size(), 4U * 4U);
}

TEST(OutputFiles, AreCheckedBeforeTheRun) {
  const std::string directory = TemporaryDirectory();
  const std::vector<std::vector<std::string>> modes = {
      {"--gen", "3", "--tokens-out"},
      {"--logits-out"},
      {"--gen", "3", "--bench", "2", "--bench-json"}};
  for (const std::vector<std::string>& mode : modes) {
    for (const auto& [path, why] :
         std::vector<std::pair<std::string, std::string>>{
             {directory + "/absent/x", "No such file or directory"},
             {directory, "Is a directory"}}) {
      std::vector<std::string> args = mode;
      args.push_back(path);
      const ProgramResult result = RunModel(args);
      EXPECT_EQ(result.exit_code, 2) << result.err;
      EXPECT_EQ(result.err, "fucina: error: " + mode.back() + ": '" + path +
                                "' cannot be written: " + why + "\n");
      EXPECT_EQ(result.out, "");
    }
    std::vector<std::string> full = mode;
    full.insert(full.end(), {"/dev/full", "--quiet"});
    const ProgramResult result = RunModel(full);
    EXPECT_EQ(result.exit_code, 4) << result.err;
    EXPECT_THAT(result.err, HasSubstr(mode.back() + ": '/dev/full' cannot be "
                                                    "written: No space left"));
  }
}

TEST(OutputFiles, APipeAndALinkStayWhatTheyAre) {
  const std::string directory = TemporaryDirectory();
  for (const std::string flag : {"--logits-out", "--gen 3 --tokens-out"}) {
    const std::string bytes = flag == "--logits-out" ? "16384" : "16";
    const ProgramResult pipe =
        RunShell("cd " + directory +
                 "; rm -f pipe; mkfifo pipe; wc -c < pipe & fucina "
                 "run --quiet " +
                 flag + " pipe > out; wait; test -p pipe");
    EXPECT_EQ(pipe.exit_code, 0) << pipe.err;
    EXPECT_EQ(pipe.out, bytes + "\n");
    for (const std::string target : {"there", "absent"}) {
      const ProgramResult link = RunShell(
          "cd " + directory + "; rm -f link there absent; touch there; ln -s " +
          target + " link; fucina run --quiet " + flag +
          " link > out; test -L link; wc -c < " + target);
      EXPECT_EQ(link.exit_code, 0) << link.err;
      EXPECT_EQ(link.out, bytes + "\n");
    }
  }
}

TEST(OutputFiles, WhatStandsBesideThemIsNotTouchedByTheCheck) {
  const ProgramResult result = RunShell(
      "cd " + TemporaryDirectory() +
      "; echo mine > ids.tmp; fucina run --gen 3 --tokens-out ids --stop 99999 "
      "2> err || cat ids.tmp; ls");
  EXPECT_EQ(result.out, "mine\nerr\nids.tmp\n");
}

TEST(CompareLogits, NumbersThatAreNoneHaveNoGoodFigures) {
  const std::string path = TemporaryDirectory() + "/logits.bin";
  WriteFile(path, std::string(4096U * 4U, '\xff'));  // NaN
  const ProgramResult result = RunModel({"--compare-logits", path});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("a value is infinite or not a number"));
  EXPECT_THAT(result.out, HasSubstr("max_abs=nan mean_abs=nan rms=nan"));
  EXPECT_THAT(result.out, HasSubstr("cosine=nan kl=nan"));
}

TEST(ModelFile, CutShortWhileItRunsIsAnError) {
  const ProgramResult result = RunShell(
      "cd " + TemporaryDirectory() + "; cp " + testing::EmbeddedModel() +
      " cut.gguf; (sleep 0.5; : > cut.gguf) & fucina run cut.gguf --quiet "
      "--gen 400000");
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("fucina: error: cut.gguf: a part of it that is in use "
                        "is gone: it was cut short since it was opened"));
}

// The file that was opened stays what it was.
TEST(ModelFile, ReplacedWhileItRunsChangesNothing) {
  const ProgramResult result = RunShell(
      "cd " + TemporaryDirectory() + "; cp " + testing::EmbeddedModel() +
      " m.gguf; write() { fucina run m.gguf --quiet --gen 1000 --tokens-out $1 "
      "> out; }; write a; (sleep 0.3; head -c 1000 m.gguf > c; mv c m.gguf) & "
      "write b; wait; cmp a b");
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(Interrupts, TheFirstOneEndsEveryMode) {
  ProgramOptions options;
  options.interrupt_after_ms = 500;
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{
           {"--repeat", "100000000"},
           {"--gen", "400000"},
           {"--gen", "30", "--bench", "100000000"},
           {"--gen", "30", "--bench", "100000000", "--streams", "2"},
           {"--verify-cache", "2000"}}) {
    const ProgramResult result = RunModel(args, options);
    // Ended by the signal or by the program.
    EXPECT_EQ(result.exit_code, 130) << args[0] << result.err;
  }
}

TEST(Flags, AValueMayLookLikeAFlag) {
  for (const std::string text : {"--mtp", "--quiet=hi", "-h", "--gen=", "--"}) {
    const ProgramResult result =
        RunModel({"--prompt", text, "--gen", "1", "--quiet"});
    EXPECT_EQ(result.exit_code, 0) << text << result.err;
    EXPECT_THAT(result.out, HasSubstr("\nprompt: " + text + "\n"));
  }
}

TEST(Flags, ModesThatWouldBeForgottenAreRefused) {
  const std::string text = TemporaryDirectory() + "/text.txt";
  WriteFile(text, "hello");
  const std::string empty = TemporaryDirectory() + "/empty.jinja";
  WriteFile(empty, "{# nothing #}");
  struct Case {
    std::vector<std::string> args;
    std::string message;
  };
  std::vector<Case> cases = {
      {{"--tokenize", text, "--info"},
       "--tokenize and --info exclude each other"},
      {{"--tokenize", text, "--chat", "hello"},
       "--tokenize and --chat exclude each other"},
      {{"--info", "--gen", "4"}, "--info and --gen exclude each other"},
      {{"--info", "--repl"}, "--info and --repl exclude each other"},
      {{"--temp", "0.5"}, "--temp goes with --chat, --repl and --gen only"},
      {{"--seed", "5", "--verify-batch", "4"},
       "--seed goes with --chat, --repl and --gen only"},
      {{"--stop", "5"}, "--stop goes with --chat, --repl and --gen only"},
      {{"--gen", "4", "--chat-template", "chatml"},
       "--chat-template goes with --chat, --repl and --info only"},
      {{"--gen", "4", "--template-arguments", "{}"},
       "--template-arguments goes with --chat, --repl and --info only"},
      {{"--chat", "hello", "--gen", "4", "--max-tokens", "5"},
       "--gen and --max-tokens are both the longest reply; give one"},
      {{"--gen", "4", "--stop", "4096"},
       "--stop: stop token id 4096 out of range: the model has ids 0 to 4095"},
      {{"--chat", "hello", "--stop", "4096"},
       "--stop: stop token id 4096 out of range: the model has ids 0 to 4095"},
      {{"--gen", "99999999999"},
       "--gen: expected at most 2147483647, found 99999999999"},
      {{"--compare-logits", "/", "--min-top5", "6"},
       "--min-top5: expected at most 5, found 6"},
      {{"--compare-logits", "/"}, "--compare-logits: '/': not a regular file"},
      {{"--chat", "hello", "--no-think", "--template-arguments",
        R"({"enable_thinking": true})"},
       "--template-arguments: 'enable_thinking' is true, which contradicts "
       "--no-think; give one of them"},
      {{"--gen", "4", "--tokens-out", ""},
       "--tokens-out: expected a path, found ''"},
      {{"--config", "", "--info"}, "--config: expected a path, found ''"},
      {{"--chat", "hello", "--chat-template", empty},
       "the chat template '" + empty + "' made an empty prompt"},
      {{"--info", "--plugin", "absent"},
       "--plugin: plugin 'absent': no libfuc"},
      {{"--info", "--family", "absent"}, "--family: no family 'absent'; known"},
      {{"--info", "--option", "strict=true"},
       "--option goes with modes that load the model only"},
      {{"--gen", "4", "--cache-type", "q8_0"},
       "--cache-type: option 'cache_type' is 'q8_0', which this runner does "
       "not have yet; use f16 or f32"},
      {{"--gen", "4", "--option", "block_style=odd"},
       "--option: option 'block_style' is 'odd'; expected auto, fused or "
       "host_reference"},
  };
  std::vector<std::string> stops = {"--chat", "hello"};
  for (int i = 0; i < 65; ++i) {
    stops.insert(stops.end(), {"--stop-string", "x" + std::to_string(i)});
  }
  cases.push_back({stops, "--stop-string: stop: at most 64 strings, found 65"});
  for (const Case& bad : cases) {
    const ProgramResult result = RunModel(bad.args);
    EXPECT_EQ(result.exit_code, 2) << bad.message << "\n" << result.err;
    EXPECT_THAT(result.err, HasSubstr("fucina: error: " + bad.message));
    EXPECT_EQ(result.out, "") << bad.message;
  }
}

TEST(Flags, LengthsThatNoMemoryHoldsAreRefused) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{
           {"--gen", "2147483647"},
           {"--gen", "2000000000"},
           {"--gen", "200000000", "--streams", "64"},
           {"--verify-cache", "2147483647"},
           {"--verify-batch", "2147483647"},
           {"--verify-spec", "2147483647"}}) {
    const ProgramResult result = RunModel(args);
    EXPECT_EQ(result.exit_code, 4) << args[0] << result.err;
    EXPECT_THAT(result.err, HasSubstr("error: " + args[0] + ": "));
    EXPECT_THAT(result.err, HasSubstr("GiB for keys and values"));
  }
}

TEST(Flags, ALengthBeyondTheContextIsToldApart) {
  const ProgramResult full = RunModel({"--ctx", "3", "--gen", "8"});
  EXPECT_EQ(full.exit_code, 0);
  EXPECT_THAT(full.err,
              HasSubstr("the context of 3 tokens is full after 3 of the 8 "
                        "tokens asked for; raise --ctx"));
  const std::string ids = TemporaryDirectory() + "/ids.txt";
  std::string long_prompt;
  for (int i = 0; i < 2048; ++i) long_prompt += "300 ";
  WriteFile(ids, long_prompt);
  const ProgramResult far = RunModel({"--ids-file", ids, "--gen", "1"});
  EXPECT_EQ(far.exit_code, 0);
  EXPECT_THAT(far.err, HasSubstr("--gen: 2049 tokens with the prompt are more "
                                 "than the 2048 this model was trained for"));
}

TEST(Flags, TheMemoryCheckCanBeSwitchedOff) {
  const ProgramResult result = RunModel({"--no-memory-check", "--dump-config"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("memory_check: false\n"));
}

TEST(Flags, ThinkingAsAnArgumentChoosesItsSampling) {
  const ProgramResult result =
      RunModel({"--chat", "hello", "--template-arguments",
                R"({"enable_thinking": false})"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the family's advice without thinking"));
  EXPECT_THAT(result.out, Not(HasSubstr("think")));
}

TEST(Commands, APluginThatCannotBeUsedIsAWrongUsage) {
  const std::string directory = TemporaryDirectory() + "/open";
  const ProgramResult made =
      RunShell("mkdir " + directory + "; chmod 777 " + directory + "; cp " +
               testing::BinDirectory() +
               "/../lib/fucina/plugins/libfucina_qwen3.so " + directory);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::string plugin = directory + "/libfucina_qwen3.so";
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{
           {"plugins", "--plugin", plugin},
           {"run", "--gen", "1", "--plugin", plugin}}) {
    const ProgramResult result = RunFucina(args);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err,
                HasSubstr("its directory is world-writable; chmod"));
  }
}

TEST(Commands, HelpIsFoundEverywhere) {
  for (const std::string command : {"run", "inspect", "plugins", "version"}) {
    const std::string help = RunFucina({command, "--help"}).out;
    EXPECT_THAT(help, HasSubstr("usage: fucina " + command));
    EXPECT_EQ(RunFucina({command, "-h"}).out, help) << command;
    EXPECT_EQ(RunFucina({"help", command}).out, help) << command;
  }
  const ProgramResult odd = RunFucina({"help", "odd\x1b"});
  EXPECT_EQ(odd.exit_code, 2);
  EXPECT_EQ(odd.err,
            "fucina: error: unknown command: odd\\x1b; see fucina --help\n");
  EXPECT_EQ(RunFucina({"--help", "x"}).exit_code, 2);
}

}  // namespace
}  // namespace fucina
