// `--bench`, `--streams` and `--ids-file` as a script uses them: the lines that
// tools parse, the figures in JSON, and what is refused.

#include <algorithm>
#include <cmath>
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
using testing::EmbeddedModel;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramOptions;
using testing::ProgramResult;
using testing::ReadFile;
using testing::RunModel;
using testing::TemporaryDirectory;
using testing::WriteFile;

constexpr char kFigures[] =
    "[0-9.]+ ± [0-9.]+ tok/s  \\(min [0-9.]+, max [0-9.]+\\)\n";

bool Matches(const std::string& text, const std::string& pattern) {
  return std::regex_match(text, std::regex(pattern));
}

// The ids behind "generated N:" on the line that begins with `start`.
std::string Generated(const std::string& out, const std::string& start) {
  const std::size_t line = out.find(start);
  if (line == std::string::npos) return "no line '" + start + "'";
  const std::size_t from = out.find("generated ", line);
  return out.substr(from, out.find('\n', from) - from);
}

TEST(Bench, PrintsTheLinesThatToolsRead) {
  const ProgramResult result =
      RunModel({EmbeddedModel(), "256,300,301", "--gen", "5", "--bench", "3",
                "--quiet"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(Matches(
      result.out,
      std::string("kv cache: capacity 8 tokens, [0-9.]+ MiB\n"
                  "load: [0-9.]+ s\n"
                  "warm bench: 3 reps \\(\\+1 warmup\\), prompt 3 tok, decode "
                  "4 steps\nprefill: ") +
          kFigures + "decode : " + kFigures +
          "median: prefill [0-9.]+ tok/s, decode [0-9.]+ tok/s\n"))
      << result.out;
}

TEST(Bench, OneTokenMeasuresThePromptOnly) {
  const ProgramResult result =
      RunModel({EmbeddedModel(), "256,300", "--gen", "1", "--bench=2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("decode 0 steps"), HasSubstr("prefill: "),
                    Not(HasSubstr("decode :"))));
}

TEST(Bench, OfOneRepetitionIsPlainGeneration) {
  const ProgramResult result =
      RunModel({EmbeddedModel(), "256,300", "--gen", "2", "--bench", "1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("generated 2:"));
}

TEST(Bench, AloneMeasuresItsOwnPromptAndLength) {
  const ProgramResult result = RunModel({"--bench", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("prompt 512 tok, decode 128 steps\n"));
}

TEST(Bench, DepthAndProfileAndJson) {
  const std::string path = TemporaryDirectory() + "/bench.json";
  const ProgramResult result =
      RunModel({EmbeddedModel(), "256,300", "--gen", "4", "--bench", "3",
                "--bench-depth", "40", "--profile", "--bench-json", path,
                "--threads", "1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("kv cache: capacity 46 tokens"),
                    HasSubstr("decode 3 steps, depth 40 tok\n"),
                    HasSubstr("prefill profile avg ms: attn_prep="),
                    HasSubstr("decode profile avg ms/token: attn_prep=")));
  const auto report = nlohmann::json::parse(ReadFile(path));
  EXPECT_EQ(report["version"], 1);
  EXPECT_EQ(report["kind"], "bench");
  EXPECT_EQ(report["repetitions"], 3);
  EXPECT_EQ(report["depth"], 40);
  EXPECT_EQ(report["prompt_tokens"], 2);
  EXPECT_EQ(report["decode_steps"], 3);
  EXPECT_EQ(report["model"]["path"], EmbeddedModel());
  EXPECT_EQ(report["model"]["bytes"], ReadFile(EmbeddedModel()).size());
  EXPECT_EQ(report["model"]["architecture"], "qwen3");
  EXPECT_GT(report["model"]["weight_types"]["q8_0"].get<double>(), 0);
  EXPECT_EQ(report["machine"]["threads"], 1);
  EXPECT_GT(report["peak_rss_bytes"].get<double>(), 1e6);
  EXPECT_GT(report["load_s"].get<double>(), 0);
  EXPECT_EQ(report["command"][2], EmbeddedModel());
  for (const char* span : {"prefill", "decode"}) {
    const int tokens = std::string(span) == "prefill" ? 2 : 3;
    const auto& ns = report[span]["samples_ns"];
    ASSERT_EQ(ns.size(), 3U);
    std::vector<double> rates;
    for (const auto& sample : ns) {
      rates.push_back(tokens * 1e9 / sample.get<double>());
    }
    EXPECT_EQ(report[span]["tokens"], std::vector<int>(3, tokens));
    const double mean = (rates[0] + rates[1] + rates[2]) / 3;
    double squares = 0;
    for (const double rate : rates) squares += (rate - mean) * (rate - mean);
    const auto& summary = report[span]["tok_per_s"];
    const auto near = [&](const char* key, double expected) {
      EXPECT_NEAR(summary[key].get<double>(), expected, 1e-3 * mean) << key;
    };
    near("mean", mean);
    near("stdev", std::sqrt(squares / 2));
    std::sort(rates.begin(), rates.end());
    near("min", rates[0]);
    near("median", rates[1]);
    near("max", rates[2]);
  }
}

TEST(IdsFile, IsTheSameAsIdsOnTheCommandLine) {
  const std::string path = TemporaryDirectory() + "/ids.txt";
  WriteFile(path, "256\n300, 301\r\n302,,\n");
  const ProgramResult file = RunModel({"--ids-file", path, "--gen", "6"});
  EXPECT_EQ(file.exit_code, 0) << file.err;
  const ProgramResult line =
      RunModel({EmbeddedModel(), "256,300,301,302", "--gen", "6"});
  EXPECT_EQ(Generated(file.out, "generated"), Generated(line.out, "generated"));
  // What --tokenize prints is such a file.
  WriteFile(path + ".text", "The capital of France is");
  WriteFile(path, RunModel({"--tokenize", path + ".text"}).out);
  EXPECT_EQ(
      Generated(RunModel({"--ids-file", path, "--gen", "6"}).out, "gen"),
      Generated(
          RunModel({"--prompt", "The capital of France is", "--gen", "6"}).out,
          "gen"));
}

TEST(Streams, WriteWhatEachWritesAlone) {
  const std::vector<std::string> base = {
      "--gen", "24", "--temp", "0.9", "--prompt", "The capital of Peru is"};
  std::vector<std::string> together = base;
  together.insert(together.end(), {"--prompt", "A", "--streams", "5", "--seed",
                                   "18446744073709551614"});
  const ProgramResult result = RunModel(together);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(std::regex_search(
      result.out,
      std::regex(std::string("kv cache: x5 streams, .*\nload: [0-9.]+ s\n"
                             "streams bench: N=5, 1 reps \\(\\+1 warmup\\), "
                             "prompt 1\\.\\.[0-9]+ tok, decode 23 "
                             "steps/stream, aggregate tok/s\n"
                             "prefill-agg : ") +
                 kFigures + "decode-batch: " + kFigures +
                 "decode-seq  : " + kFigures +
                 "batch speedup: [0-9.]+x \\(mean decode, N=5\\)\n"
                 "outputs: batch == sequential, token-for-token \\(5 streams, "
                 "120 tokens\\)\n"
                 "stream 0: prompt ")))
      << result.out;
  // Seeds follow each other and wrap; prompts go round.
  const char* seeds[] = {"18446744073709551614", "18446744073709551615", "0",
                         "1", "2"};
  for (int i = 0; i < 5; ++i) {
    std::vector<std::string> alone = base;
    if (i % 2 == 1) alone.back() = "A";
    alone.insert(alone.end(), {"--seed", seeds[i]});
    EXPECT_EQ(Generated(result.out, "stream " + std::to_string(i) + ":"),
              Generated(RunModel(alone).out, "generated"))
        << i;
  }
}

TEST(Streams, AStopTokenEndsOneStreamOnly) {
  const ProgramResult plain =
      RunModel({"--prompt", "The capital of Peru is", "--gen", "8"});
  const std::string ids = Generated(plain.out, "generated");
  const std::string first = ids.substr(ids.find(": ") + 2);
  const std::string stop = first.substr(0, first.find(' '));
  const ProgramResult result = RunModel(
      {"--prompt", "The capital of Peru is", "--prompt", "Hello", "--gen", "8",
       "--streams", "2", "--stop", stop, "--bench", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("ended by stop, generated 1: " + stop + "\n"),
                    HasSubstr("ended by length, generated 8:"),
                    HasSubstr("(2 streams, 9 tokens)")));
}

TEST(Streams, FiguresAsJson) {
  const std::string path = TemporaryDirectory() + "/streams.json";
  const ProgramResult result =
      RunModel({EmbeddedModel(), "256,300", "--gen", "4", "--streams", "3",
                "--bench", "2", "--bench-json", path});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto report = nlohmann::json::parse(ReadFile(path));
  EXPECT_EQ(report["kind"], "streams");
  EXPECT_EQ(report["streams"], 3);
  EXPECT_EQ(report["equal"], true);
  EXPECT_EQ(report["decode_batch"]["tokens"], std::vector<int>(2, 9));
  EXPECT_EQ(report["decode_sequential"]["samples_ns"].size(), 2U);
  EXPECT_EQ(report["prefill"]["tokens"], std::vector<int>(2, 6));
}

TEST(Streams, InterruptEndsWith130) {
  ProgramOptions options;
  options.interrupt_after_ms = 200;
  for (const char* mode : {"--streams", "--bench"}) {
    EXPECT_EQ(RunModel({"--prompt", "The", "--gen", "4000", mode, "3",
                        "--threads", "1", "--kernel-level", "scalar"},
                       options)
                  .exit_code,
              130)
        << mode;
  }
}

TEST(Bench, WrongUseIsNamedAndRefused) {
  const std::string directory = TemporaryDirectory();
  const std::string good = directory + "/good.txt";
  WriteFile(good, "1,2");
  WriteFile(directory + "/empty.txt", " ,\n");
  WriteFile(directory + "/bad.txt", "1,2\n3\n4;5\n");
  WriteFile(directory + "/large.txt", "1\n99999\n");
  struct BadUse {
    std::vector<std::string> args;
    std::string message;
  };
  const std::vector<BadUse> cases = {
      {{"--bench", "0"}, "--bench: expected an integer of at least 1"},
      {{"--bench", "many"}, "--bench: expected an integer of at least 1"},
      {{"--bensh", "2"}, "unknown flag: --bensh; did you mean '--bench'"},
      {{"--bench", "2", "--repeat", "3"}, "--bench goes with --gen only"},
      {{"--bench", "2", "--chat", "Hello"}, "--bench goes with --gen only"},
      {{"--bench", "2", "--verify-batch", "4"}, "--bench goes with --gen only"},
      {{"--bench", "2", "--dump-config"}, "--bench goes with --gen only"},
      {{"--bench-depth", "8"}, "--bench-depth goes with --bench 2 or more"},
      {{"--bench-depth", "-8", "--bench", "2"},
       "--bench-depth: expected an integer of at least 0"},
      {{"--gen", "4", "--bench-json", "x"}, "--bench-json goes with --bench"},
      {{"--bench", "2", "--gen", "4", "--stop", "5"},
       "--bench writes as many tokens as --gen says; leave out --stop"},
      {{"--bench", "2", "--gen", "4", "--tokens-out", "x"},
       "--tokens-out goes with --gen, without --bench and --streams, only"},
      {{"--bench", "2", "--ctx", "100"},
       "--bench: 0 tokens of depth, a prompt of 512 and 129 tokens of reply do "
       "not fit a context of 100; lower them or raise --ctx"},
      {{"--bench", "2", "--bench-json", directory + "/absent/x", "--gen", "1"},
       "absent/x' cannot be written: No such file"},
      {{"--streams", "2"}, "--streams goes with --gen only"},
      {{"--streams", "2", "--gen", "1"}, "--streams needs --gen 2 or more"},
      {{"--streams", "2", "--gen", "4", "--prompt", "a", "--prompt", "b",
        "--prompt", "c"},
       "--streams 2 reads 2 prompts at most, found 3"},
      {{"--streams", "0", "--gen", "4"}, "--streams: expected an integer"},
      {{"--streams", "1025", "--gen", "4"},
       "--streams: expected at most 1024, found 1025"},
      {{"--streams", "2", "--gen", "4", "--chat", "x"},
       "--streams goes with --gen only"},
      {{"--streams", "2", "--gen", "4", "--bench-depth", "4", "--bench", "2"},
       "--bench-depth goes with --bench 2 or more, without --streams, only"},
      {{"--streams", "2", "--gen", "4", "--profile"},
       "--profile goes with the plain forward and --gen, without --streams, "
       "only"},
      {{"--streams", "2", "--gen", "4", "--ctx", "2", "--prompt", "a b c d e"},
       "and the context holds 2; shorten the prompt or raise --ctx"},
      {{"--ids-file", good, "--prompt", "x", "--gen", "1"},
       "--ids-file excludes --prompt and token ids"},
      {{"--ids-file", good, "--chat", "x"},
       "--ids-file goes with modes that read a prompt only"},
      {{"--ids-file", directory + "/absent.txt", "--gen", "1"},
       "absent.txt' cannot be read"},
      {{"--ids-file", directory, "--gen", "1"}, "cannot be read"},
      {{"--ids-file", directory + "/empty.txt", "--gen", "1"},
       "empty.txt' holds no token ids"},
      {{"--ids-file", directory + "/bad.txt", "--gen", "1"},
       "bad.txt' line 3: expected a token id, found '4;5'"},
      {{"--ids-file", directory + "/large.txt", "--gen", "1"},
       "token id 99999 out of range: the model has ids 0 to 4095"},
      {{"--ids-file", "/dev/zero", "--gen", "1"}, "has more than 64 MiB"},
  };
  for (const BadUse& bad : cases) {
    const ProgramResult result = RunModel(bad.args);
    std::string line;
    for (const std::string& arg : bad.args) line += " " + arg;
    EXPECT_EQ(result.exit_code, 2) << line << "\n" << result.err;
    EXPECT_THAT(result.err, HasSubstr(bad.message)) << line;
    EXPECT_EQ(result.out, "") << line;
  }
}

}  // namespace
}  // namespace fucina
