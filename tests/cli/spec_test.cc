// Drafting with the spec plugin, as a user runs it, and its verification.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/spec_modes.h"
#include "fucina/diag/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "registry/draft_costs.h"
#include "tests/cli/program.h"
#include "tests/core/decode/table_decoder.h"
#include "tests/plugins/spec/spec_run.h"
#include "tests/tiny_models/tiny_models.h"

namespace fucina {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramOptions;
using testing::ProgramResult;
using testing::RunFucina;
using ::testing::StartsWith;
using testing::TemporaryDirectory;
using testing::WriteFile;

const char kDense[] = FUCINA_SOURCE_DIR "/models/atlas-6m-q8_0.gguf";
const char kMoe[] = FUCINA_SOURCE_DIR "/models/atlas-moe-q8_0.gguf";
const char kGlm[] = FUCINA_SOURCE_DIR "/models/atlas-glm-q8_0.gguf";
constexpr const char* kModels[] = {kDense, kMoe, kGlm};

using Args = std::vector<std::string>;

Args operator+(Args a, const Args& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

ProgramResult Fucina(const Args& args, const ProgramOptions& options = {}) {
  return RunFucina(Args{"run"} + args, options);
}

// --- the same bytes
// -------------------------------------------------------------------

// Prompts from facts that the models know, with text that comes up again.
class Prompts {
 public:
  Prompts() {
    std::ifstream in(FUCINA_SOURCE_DIR "/models/atlas-facts.json");
    facts_ = nlohmann::json::parse(in);
  }

  std::string Text(unsigned seed) const {
    std::mt19937 random(seed);
    const auto fact = [&] { return facts_[random() % facts_.size()]; };
    const auto sentence = [&](const nlohmann::json& f) {
      const auto text = [&](const char* key) {
        return f[key].get<std::string>();
      };
      switch (random() % 3) {
        case 0:
          return absl::StrCat("The capital of ", text("the"), " is ",
                              text("capital"), ". ");
        case 1:
          return absl::StrCat("The currency of ", text("the"), " is ",
                              text("currency"), ". ");
        default:
          return absl::StrCat(text("name"), " is in ", text("continent"), ". ");
      }
    };
    std::string passage;
    const int sentences = 1 + static_cast<int>(random() % 5);
    for (int i = 0; i < sentences; ++i) passage += sentence(fact());
    switch (seed % 4) {
      case 0:  // a passage once more
        return absl::StrCat(passage, passage,
                            passage.substr(0, passage.size() / 3));
      case 1: {
        const auto f = fact();
        return absl::StrCat(
            "{\"country\": \"", f["name"].get<std::string>(),
            "\", \"capital\": \"", f["capital"].get<std::string>(),
            "\", \"continent\": \"", f["continent"].get<std::string>(),
            "\"}\n{\"country\": \"", fact()["name"].get<std::string>(), "\",");
      }
      case 2:
        return absl::StrCat(passage, "The capital of ",
                            fact()["the"].get<std::string>(), " is");
      default:
        return absl::StrCat("one two three one two ", passage, "one two");
    }
  }

 private:
  nlohmann::json facts_;
};

std::unique_ptr<Pipeline> Load(const std::string& model, int threads) {
  SetLogLevel(LogLevel::kError);
  PipelineConfig config;
  config.model = model;
  config.threads = threads;
  config.drafter.kind = "cascade";
  return testing::BuildOrFail(std::move(config));
}

// 204 prompts over three trained models, greedy and sampled, on one to four
// threads: tokens, text, rows of the cache and draws as without drafts.
TEST(Spec, WritesWhatPlainDecodingWrites) {
  const Prompts prompts;
  unsigned seed = 0;
  int accepted = 0;
  int drafted = 0;
  for (const char* model : kModels) {
    for (int threads = 1; threads <= 4; ++threads) {
      const auto pipeline = Load(model, threads);
      ASSERT_NE(pipeline, nullptr);
      const auto drafter = MakeDrafter(*pipeline);
      ASSERT_TRUE(drafter.ok()) << drafter.status();
      for (int i = 0; i < 17; ++i) {
        ++seed;
        const std::string text = prompts.Text(seed);
        for (const double temperature : {0.0, 0.8}) {
          SCOPED_TRACE(absl::StrCat(model, " threads ", threads,
                                    " temperature ", temperature, ": ", text));
          const testing::Wanted wanted = {
              .prompt = pipeline->tokenizer->Encode(text, {.add_special = true})
                            .value(),
              .sampling = {.temperature = temperature,
                           .top_k = 40,
                           .repeat_penalty = temperature > 0 ? 1.1 : 1,
                           .seed = seed},
              .tokens = 24,
              .width = 1 + static_cast<int>(seed % 16),
              .gate = seed % 3 == 0};
          const auto plain =
              testing::Write(*pipeline->decoder, wanted, nullptr);
          // One drafter for all prompts: what it learned elsewhere does not
          // matter either.
          const auto found =
              testing::Write(*pipeline->decoder, wanted, drafter->get());
          testing::ExpectSame(found, plain);
          ASSERT_EQ(pipeline->tokenizer->Decode(found.history, {}),
                    pipeline->tokenizer->Decode(plain.history, {}));
          accepted += found.stats.accepted;
          drafted += found.stats.drafted;
        }
      }
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(drafted - accepted, 1000);
}

TEST(Spec, ChangesNoReply) {
  int index = 0;
  for (const char* model : kModels) {
    for (const char* question :
         {"What is the capital of Peru?", "Describe Spain as JSON.",
          "Repeat after me: blue red blue red"}) {
      for (const char* temperature : {"0", "0.9"}) {
        const Args plain = {
            model,       "--chat",           question, "--no-think", "--temp",
            temperature, "--repeat-penalty", "1.05",   "--seed",     "3"};
        const ProgramResult expected = Fucina(plain);
        ASSERT_EQ(expected.exit_code, 0) << expected.err;
        const ProgramResult found = Fucina(
            plain + Args{"--spec", "--threads", absl::StrCat(1 + index++ % 4)});
        EXPECT_EQ(found.exit_code, 0) << found.err;
        EXPECT_EQ(found.out, expected.out) << question;
        EXPECT_THAT(found.err, HasSubstr("; drafts "));
        EXPECT_THAT(found.err, ContainsRegex("conversation [0-9]+/[0-9]+.*, "
                                             "recycling [0-9]+/[0-9]+.*, index "
                                             "[0-9.]+ MiB"));
        EXPECT_THAT(expected.err, Not(HasSubstr("; drafts ")));
      }
    }
  }
}

TEST(Spec, ChangesNoConversation) {
  ProgramOptions options;
  options.input =
      "What is the capital of Norway?\nAnd its currency?\nWhat is the capital "
      "of Norway?\nDescribe Norway as JSON.\nDescribe Norway as JSON.\n\n";
  for (const char* model : kModels) {
    for (const char* temperature : {"0", "0.9"}) {
      const Args plain = {model,       "--repl", "--no-think", "--temp",
                          temperature, "--seed", "5"};
      const ProgramResult expected = Fucina(plain, options);
      ASSERT_EQ(expected.exit_code, 0) << expected.err;
      EXPECT_EQ(std::count(expected.out.begin(), expected.out.end(), '\n'), 5);
      for (const char* drafter : {"cascade", "suffix", "recycling"}) {
        const ProgramResult found =
            Fucina(plain + Args{"--drafter", drafter}, options);
        EXPECT_EQ(found.exit_code, 0) << found.err;
        EXPECT_EQ(found.out, expected.out) << drafter;
        EXPECT_THAT(found.err, HasSubstr(" accepted")) << drafter;
      }
    }
  }
}

// A text that ends a reply, inside a draft or across two: the draws of the next
// turn show whether one was made too many.
TEST(Spec, StopStringsEndTheSameReplies) {
  ProgramOptions options;
  options.input =
      "Describe Norway as JSON.\nDescribe Norway as JSON.\nDescribe Peru as "
      "JSON.\nWhat is the capital of Peru?\n\n";
  for (const char* stop : {"Oslo", "capital\": \"", "Europe\"", "\"cur", "i"}) {
    const Args plain = {"--repl", "--no-think", "--temp",        "0.9",
                        "--seed", "8",          "--stop-string", stop};
    const ProgramResult expected = Fucina(plain, options);
    const ProgramResult found = Fucina(plain + Args{"--spec"}, options);
    ASSERT_EQ(found.exit_code, 0) << found.err;
    EXPECT_EQ(found.out, expected.out) << stop;
    EXPECT_THAT(found.err, HasSubstr(" accepted"));
  }
}

// From "generated" on: the figures before that are times.
std::string Generated(const std::string& out) {
  const std::size_t at = out.find("generated ");
  return at == std::string::npos ? "" : out.substr(at);
}

TEST(Spec, CompletionWritesTheSameAndSaysHowDraftingWent) {
  for (const char* model : kModels) {
    const Args plain = {model, "--prompt", "one two three one two three one",
                        "--gen", "40"};
    const ProgramResult expected = Fucina(plain);
    const ProgramResult found = Fucina(plain + Args{"--spec"});
    ASSERT_EQ(found.exit_code, 0) << found.err;
    ASSERT_NE(Generated(found.out), "");
    EXPECT_EQ(Generated(found.out), Generated(expected.out));
    EXPECT_THAT(
        found.out,
        ContainsRegex("\ndrafts: [0-9]+/[0-9]+ accepted \\([0-9]+ %\\), "
                      "[0-9.]+ tokens per forward.*conversation "
                      "[0-9]+/[0-9]+"));
  }
}

// How far and when is about time only.
TEST(Spec, FlagsOfTheGateChangeNoToken) {
  const Args plain = {"--prompt", "one two three one two three one",
                      "--gen",    "40",
                      "--temp",   "0.9"};
  const ProgramResult expected = Fucina(plain);
  for (const Args& flags :
       {Args{"--spec-draft", "1"}, Args{"--spec-draft", "64"},
        Args{"--spec-cost", "1:1,64:1"}, Args{"--spec-cost", "1:1000"},
        Args{"--no-spec-gate"}, Args{"--no-spec-gate", "--spec-draft", "64"}}) {
    const ProgramResult found = Fucina(plain + Args{"--spec"} + flags);
    ASSERT_EQ(found.exit_code, 0) << found.err;
    EXPECT_EQ(Generated(found.out), Generated(expected.out)) << flags[0];
    EXPECT_THAT(found.out, HasSubstr("\ndrafts: "));
  }
  // Without a gate every step drafts.
  const ProgramResult always = Fucina(plain + Args{"--spec", "--no-spec-gate"});
  EXPECT_THAT(always.out, Not(HasSubstr("not worth it")));
}

// The lines of the streams, without their speeds.
std::vector<std::string> StreamTokens(const std::string& out) {
  std::vector<std::string> found;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("stream ", 0) == 0) {
      found.push_back(Generated(line));
    } else if (line.rfind("text ", 0) == 0) {
      found.push_back(line);
    }
  }
  return found;
}

TEST(Spec, StreamsDraftAndWriteTheSame) {
  for (const char* model : kModels) {
    for (const char* temperature : {"0", "0.8"}) {
      const Args plain = {
          model,
          "--prompt",
          "one two three one two",
          "--prompt",
          "The capital of Chile is Santiago. The capital of Peru",
          "--gen",
          "24",
          "--streams",
          "5",
          "--temp",
          temperature};
      const ProgramResult expected = Fucina(plain);
      const ProgramResult found = Fucina(plain + Args{"--spec"});
      ASSERT_EQ(found.exit_code, 0) << found.err;
      EXPECT_EQ(StreamTokens(expected.out).size(), 10U);
      EXPECT_EQ(StreamTokens(found.out), StreamTokens(expected.out));
      EXPECT_THAT(found.out, HasSubstr("outputs: batch == sequential"));
      EXPECT_THAT(found.err, Not(HasSubstr("is not used")));
    }
  }
}

TEST(Spec, ModesThatDoNotDraftSaySo) {
  const std::string config = TemporaryDirectory() + "/p.yaml";
  WriteFile(config, "version: 1\ndrafter: {kind: cascade}\n");
  const ProgramResult result =
      Fucina({"--config", config, kDense, "60,61", "--gen", "4", "--bench=2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("drafter 'cascade' is not used: --bench "
                                    "does not draft"));
}

// --- verification
// ---------------------------------------------------------------------

TEST(Spec, VerifyFindsNoDifference) {
  for (const char* model : kModels) {
    const ProgramResult result =
        Fucina({model, "--prompt",
                "The capital of Kenya is Nairobi. The capital of Kenya is",
                "--spec", "--verify-spec", "24"});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    for (const char* source :
         {"drafter", "perfect", "garbage", "alternating"}) {
      for (const char* mode : {"greedy", "sampled"}) {
        EXPECT_THAT(result.out,
                    HasSubstr(absl::StrCat("verify-spec: source=", source,
                                           " mode=", mode, " IDENTICAL (24 ")));
      }
    }
    EXPECT_THAT(result.out, HasSubstr("\nverify-spec: PASS\n"));
    EXPECT_THAT(result.out, Not(HasSubstr("DIFFERS")));
  }
  // The scripts need no drafter.
  const ProgramResult without = Fucina({kDense, "1,2,3", "--verify-spec=6"});
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.out, AllOf(HasSubstr("verify-spec: PASS"),
                                 Not(HasSubstr("source=drafter"))));
}

absl::StatusOr<std::unique_ptr<Drafter>> NoDrafter() {
  return std::unique_ptr<Drafter>();
}

// Kernels for several rows that round differently: what drafting must not meet.
TEST(Spec, VerifyFindsADecoderThatDependsOnWidth) {
  testing::TableDecoder decoder;
  const std::vector<TokenId> prompt = {3, 1, 4};
  std::ostringstream honest;
  EXPECT_TRUE(
      cli::VerifySpec(decoder, prompt, {.max_tokens = 20}, &NoDrafter, honest)
          .ok());
  EXPECT_THAT(honest.str(), HasSubstr("verify-spec: PASS"));

  decoder.lie = [](testing::TableState& state, SequenceStep& step) {
    if (step.rows != LogitRows::kAll || step.tokens.size() < 3) return;
    for (float& logit : state.logits) logit = -logit;
  };
  std::ostringstream out;
  const absl::Status status =
      cli::VerifySpec(decoder, prompt, {.max_tokens = 20}, &NoDrafter, out);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              ContainsRegex("^[1-6] runs with drafts differ from plain "
                            "decoding$"));
  EXPECT_THAT(out.str(),
              AllOf(HasSubstr("source=perfect mode=greedy DIFFERS at token "),
                    HasSubstr("verify-spec: FAIL\n")));
}

// Rejected rows that stay: equal tokens need not show them at once.
TEST(Spec, VerifyFindsAStateThatKeepsRejectedRows) {
  testing::TableDecoder decoder;
  // One token of the past changes, and only what comes much later shows it.
  decoder.lie = [](testing::TableState& state, SequenceStep& step) {
    if (step.rows == LogitRows::kAll && step.tokens.size() > 1) {
      state.tokens[0] = 9;
    }
  };
  std::ostringstream out;
  EXPECT_FALSE(cli::VerifySpec(decoder, std::vector<TokenId>{3, 1},
                               {.max_tokens = 2}, &NoDrafter, out)
                   .ok() &&
               cli::VerifySpec(decoder, std::vector<TokenId>{3, 1},
                               {.max_tokens = 12}, &NoDrafter, out)
                   .ok());
  EXPECT_THAT(out.str(), HasSubstr("DIFFERS"));
}

// What is verified is what the flags ask for.
TEST(Spec, VerifyDraftsAsFarAsIsAsked) {
  const Args verify = {kDense, "1,2,3", "--verify-spec", "13", "--spec"};
  const ProgramResult usual = Fucina(verify);
  EXPECT_THAT(usual.out, HasSubstr("source=perfect mode=greedy IDENTICAL (13 "
                                   "tokens, 1 verifies, 11/11 accepted)"));
  const ProgramResult two = Fucina(verify + Args{"--spec-draft", "2"});
  EXPECT_EQ(two.exit_code, 0) << two.err;
  EXPECT_THAT(two.out, HasSubstr("source=perfect mode=greedy IDENTICAL (13 "
                                 "tokens, 4 verifies, 8/8 accepted)"));
  // It drafts at every step, so costs would say nothing.
  const ProgramResult costs = Fucina(verify + Args{"--spec-cost", "1:1.1"});
  EXPECT_EQ(costs.exit_code, 2);
  EXPECT_THAT(costs.err, HasSubstr("--spec-cost goes with "));
}

TEST(Spec, VerifyReadsThePromptInChunks) {
  testing::TableDecoder decoder;
  int longest = 0;
  decoder.lie = [&longest](testing::TableState&, SequenceStep& step) {
    longest = std::max(longest, static_cast<int>(step.tokens.size()));
  };
  const std::vector<TokenId> prompt(20, 3);
  std::ostringstream out;
  EXPECT_TRUE(
      cli::VerifySpec(decoder, prompt,
                      {.max_tokens = 8, .max_draft = 2, .prefill_chunk = 3},
                      &NoDrafter, out)
          .ok());
  EXPECT_EQ(longest, 3);
}

// A machine that stalls in the plain passes only: the table is still one.
TEST(Spec, BenchPrintsATableThatCanBeUsed) {
  testing::TableDecoder decoder;
  decoder.lie = [](testing::TableState&, SequenceStep& step) {
    if (step.tokens.size() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  };
  std::ostringstream out;
  ASSERT_TRUE(
      cli::RunSpecBench(decoder, std::vector<TokenId>{3, 1, 4}, 1, out).ok());
  const std::string text = out.str();
  EXPECT_THAT(text, ContainsRegex(" cost=0\\.[0-9]+ "));
  const std::string head = "spec-cost-table: ";
  const std::size_t at = text.find(head) + head.size();
  const auto table = ParseDraftCosts(text.substr(at, text.find('\n', at) - at));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->size(), 8U);
}

TEST(Spec, BenchPrintsTheCostOfDrafts) {
  const ProgramResult result =
      Fucina({"--prompt", "one two three", "--spec-bench"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("spec verify economics: prompt "));
  for (const int drafts : {1, 2, 3, 4, 6, 8, 12, 16}) {
    EXPECT_THAT(result.out, ContainsRegex(absl::StrCat("\nspec-cost d=", drafts,
                                                       " rows=", drafts + 1,
                                                       " cost=[0-9.]+ ")));
  }
  EXPECT_THAT(result.out,
              ContainsRegex("\nspec-cost-table: 1:[0-9.]+,2:[0-9.]+,"));
}

// --- references and options
// -----------------------------------------------------------

class SpecReferences : public ::testing::Test {
 protected:
  // An error of the flags that ends the program with status 2 before a token.
  std::string Refusal(const Args& args) {
    const ProgramResult result =
        Fucina(Args{"--prompt", "one two", "--gen", "4", "--spec"} + args);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(result.out, "");
    return result.err;
  }
  std::string File(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    WriteFile(path, text);
    return path;
  }

  std::string folder_ = TemporaryDirectory();
};

TEST_F(SpecReferences, AreDraftedFrom) {
  const std::string text =
      "The capital of Peru is Lima. The capital of Chile is Santiago.\n";
  const std::string file = File("list.txt", text);
  const Args plain = {"--prompt", "The capital of Peru", "--gen", "16"};
  const ProgramResult expected = Fucina(plain);
  const ProgramResult found =
      Fucina(plain + Args{"--spec", "--spec-ref", file});
  ASSERT_EQ(found.exit_code, 0) << found.err;
  EXPECT_EQ(Generated(found.out), Generated(expected.out));
  EXPECT_THAT(found.err, ContainsRegex("note: spec ref: .*list.txt \\([0-9]+ "
                                       "tokens\\)"));
  EXPECT_THAT(found.out, ContainsRegex("reference 1 [1-9][0-9]*/[1-9]"));
  // From a pipeline file, relative to it.
  const std::string config =
      File("p.yaml",
           "version: 1\ndrafter: {kind: cascade, references: [list.txt]}\n");
  const ProgramResult yaml = Fucina(plain + Args{"--config", config});
  ASSERT_EQ(yaml.exit_code, 0) << yaml.err;
  EXPECT_EQ(Generated(yaml.out), Generated(expected.out));
  EXPECT_THAT(yaml.out, ContainsRegex("reference 1 [1-9][0-9]*/[1-9]"));
  // A reply in lockstep has its own cursor in them.
  const ProgramResult streams =
      Fucina(plain + Args{"--spec", "--spec-ref", file, "--streams", "3"});
  ASSERT_EQ(streams.exit_code, 0) << streams.err;
  EXPECT_THAT(streams.out, HasSubstr("outputs: batch == sequential"));
}

TEST_F(SpecReferences, ThatCannotBeReadAreRefused) {
  const std::string absent = folder_ + "/absent.txt";
  EXPECT_THAT(Refusal({"--spec-ref", absent}),
              HasSubstr("--spec-ref: no file '" + absent + "'"));
  const std::string empty = File("empty.txt", "");
  EXPECT_THAT(Refusal({"--spec-ref", empty}),
              HasSubstr("--spec-ref: '" + empty + "' is empty"));
  EXPECT_THAT(Refusal({"--spec-ref", folder_}),
              HasSubstr("--spec-ref: '" + folder_ + "' is not a regular file"));
  EXPECT_THAT(Refusal({"--spec-ref", "/dev/zero"}),
              HasSubstr("'/dev/zero' is not a regular file"));
  const std::string circle = folder_ + "/circle";
  ASSERT_EQ(symlink(circle.c_str(), circle.c_str()), 0);
  EXPECT_THAT(Refusal({"--spec-ref", circle}),
              HasSubstr("--spec-ref: '" + circle +
                        "' cannot be read: Too many levels of symbolic links"));
  // One of several.
  const std::string good = File("good.txt", "one two three\n");
  EXPECT_THAT(Refusal({"--spec-ref", good, "--spec-ref", absent}),
              HasSubstr("no file '" + absent + "'"));
}

TEST_F(SpecReferences, AtMostEightAreTaken) {
  const std::string good = File("good.txt", "one two three\n");
  Args eight;
  for (int i = 0; i < 8; ++i) eight = eight + Args{"--spec-ref", good};
  EXPECT_EQ(Fucina(Args{"--prompt", "one two", "--gen", "4", "--spec"} + eight)
                .exit_code,
            0);
  EXPECT_THAT(Refusal(eight + Args{"--spec-ref", good}),
              HasSubstr("--spec-ref: too many files (max 8), found 9"));
}

TEST_F(SpecReferences, NeedADrafterAndAModeThatDrafts) {
  const std::string good = File("good.txt", "one two three\n");
  const ProgramResult nobody =
      Fucina({"--prompt", "one", "--gen", "4", "--spec-ref", good});
  EXPECT_EQ(nobody.exit_code, 2);
  EXPECT_THAT(nobody.err, HasSubstr("--spec-ref: nobody drafts from it; give "
                                    "--spec or 'drafter.kind' too"));
  const ProgramResult mode =
      Fucina({"--prompt", "one", "--spec", "--spec-ref", good});
  EXPECT_EQ(mode.exit_code, 2);
  EXPECT_THAT(mode.err, HasSubstr("--spec goes with --chat, --repl and --gen"));
  const ProgramResult layer = Fucina(
      {kGlm, "--prompt", "one", "--gen", "4", "--mtp", "--spec-ref", good});
  EXPECT_EQ(layer.exit_code, 2);
  EXPECT_THAT(layer.err, HasSubstr("--spec-ref: drafter 'glm4moe_mtp': this "
                                   "drafter reads no documents"));
}

TEST_F(SpecReferences, NeedATokenizer) {
  const std::string model = folder_ + "/bare.gguf";
  ASSERT_TRUE(testing::WriteTinyModel(testing::SeededFixture("D"), model).ok());
  const std::string good = File("good.txt", "one two three\n");
  const Args plain = {model, "5,61,2", "--gen", "4", "--spec"};
  EXPECT_EQ(Fucina(plain).exit_code, 0);
  const ProgramResult result = Fucina(plain + Args{"--spec-ref", good});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("--spec-ref: " + model +
                                    ": this GGUF has no tokenizer metadata"));
}

// The figure that the program would read from the system.
class SpecMemory : public SpecReferences {
 protected:
  SpecMemory() {
    testing::TinyModelSpec spec = testing::SeededFixture("D");
    spec.with_tokenizer = true;
    EXPECT_TRUE(testing::WriteTinyModel(spec, folder_ + "/m.gguf").ok());
  }
  absl::StatusOr<std::unique_ptr<Pipeline>> Build(
      const std::vector<std::string>& references, bool memory_check = true) {
    PipelineConfig config;
    config.model = folder_ + "/m.gguf";
    config.context = 64;
    config.memory_check = memory_check;
    config.drafter.kind = "cascade";
    config.drafter_references = references;
    Available("4000");
    return BuildPipeline(std::move(config), PipelineDepth::kDecoder, nullptr,
                         {.meminfo = folder_ + "/meminfo",
                          .cgroup_file = folder_ + "/none",
                          .cgroup_root = folder_ + "/none"});
  }
  void Available(const std::string& kilobytes) {
    File("meminfo", "MemAvailable: " + kilobytes + " kB\n");
  }
};

// A digit is a token here.
TEST_F(SpecMemory, ReferencesThatDoNotFitAreRefused) {
  const std::string small = File("small.txt", std::string(20000, '7'));
  const std::string large = File("large.txt", std::string(80000, '7'));
  EXPECT_TRUE(Build({small}).ok()) << Build({small}).status();
  const absl::Status status = Build({large}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "an index of the 80000 tokens up to '" + large +
                "' needs 4.9 MiB, 3.9 MiB are available (free memory of this "
                "machine); --no-memory-check tries all the same");
  EXPECT_TRUE(Build({large}, /*memory_check=*/false).ok());
  // Each fits, all do not.
  EXPECT_EQ(Build({small, small, small, small}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

// Of several streams each has an index of its own.
TEST_F(SpecMemory, EveryDrafterAsksForMemory) {
  const std::string small = File("small.txt", std::string(20000, '7'));
  const auto pipeline = Build({small});
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  EXPECT_TRUE(MakeDrafter(**pipeline).ok());
  Available("1000");
  const auto none = MakeDrafter(**pipeline);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(none.status().message()),
              StartsWith("an index of the 20000 tokens up to '" + small +
                         "' needs 1.2 MiB, 1000 KiB are available"));
}

TEST(SpecOptions, AreSetFromYamlAndChecked) {
  const std::string folder = TemporaryDirectory();
  const auto run = [&](const std::string& drafter) {
    const std::string path = folder + "/p.yaml";
    WriteFile(path, "version: 1\ndrafter:\n" + drafter);
    return Fucina(
        {"--config", path, "--prompt", "one two three one two", "--gen", "8"});
  };
  const ProgramResult good = run(
      "  kind: suffix\n  options: {min_match: 3, beta: 4, max_index_tokens: "
      "1000}\n");
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_THAT(good.out,
              ContainsRegex("drafts: [0-9/]+ .*conversation [0-9]+/"));
  EXPECT_THAT(good.out, Not(HasSubstr("recycling")));
  const struct {
    const char* drafter;
    const char* message;
  } wrong[] = {
      {"  kind: cascade\n  options: {min_mach: 3}\n",
       "p.yaml:4: drafter 'cascade' has no option 'min_mach'; did you mean "
       "'min_match'"},
      {"  kind: recycling\n  options: {beta: 3}\n",
       "p.yaml:4: drafter 'recycling' has no option 'beta'; it has none"},
      {"  kind: cascade\n  options: {beta: two}\n",
       "p.yaml:4: option 'beta' of drafter 'cascade': expected an integer, "
       "found 'two'"},
      {"  kind: cascade\n  options: {beta: 0}\n",
       "option 'beta': expected 1 to 64, found 0"},
      {"  kind: cascade\n  options: {min_match: 65}\n",
       "option 'min_match': expected 1 to 64, found 65"},
      {"  kind: suffix\n  options: {min_match: -2}\n",
       "option 'min_match': expected 1 to 64, found -2"},
      {"  kind: suffix\n  options: {max_index_tokens: 536870913}\n",
       "option 'max_index_tokens': expected 1 to 536870912, found 536870913"},
      {"  kind: cascad\n", "p.yaml:3: drafter.kind: no drafter 'cascad'; "},
      {"  references: [p.yaml]\n", "nobody drafts from it"},
      {"  kind: cascade\n  references: [nothing.txt]\n",
       "p.yaml:4: drafter.references: no file '"},
  };
  for (const auto& [drafter, message] : wrong) {
    const ProgramResult result = run(drafter);
    EXPECT_EQ(result.exit_code, 2) << drafter << result.err;
    EXPECT_EQ(result.out, "") << drafter;
    EXPECT_THAT(result.err, HasSubstr(message)) << drafter;
  }
}

// A dumped file says what holds without a drafter too, and can be read again.
TEST(SpecOptions, ADumpWithoutADrafterIsAPipeline) {
  const ProgramResult dump = Fucina({"--dump-config"});
  EXPECT_THAT(dump.out, HasSubstr("\n  max_draft: 16\n"));
  const std::string path = TemporaryDirectory() + "/p.yaml";
  WriteFile(path, dump.out);
  const ProgramResult again =
      Fucina({"--config", path, "--prompt", "one", "--gen", "2"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST(SpecOptions, FlagsThatExcludeEachOtherAreRefused) {
  const struct {
    Args args;
    const char* message;
  } wrong[] = {
      {{"--chat", "Hi", "--spec", "--mtp"},
       "--spec, --mtp and --drafter exclude each other"},
      {{"--chat", "Hi", "--spec", "--drafter", "suffix"},
       "--spec, --mtp and --drafter exclude each other"},
      {{kDense, "1,2", "--spec"}, "--spec goes with --chat, --repl and --gen"},
      {{kDense, "1,2", "--gen", "4", "--bench", "2", "--spec"},
       "--spec goes with --chat, --repl and --gen, without --bench, only"},
      {{kDense, "1,2", "--gen", "4", "--drafter", "nobody"},
       "--drafter: no drafter 'nobody'; known: "},
      {{kDense, "1,2", "--verify-spec", "0"},
       "--verify-spec: expected an integer"},
      {{kDense, "1,2", "--verify-spec", "4", "--spec-bench"},
       "exclude each other"},
      {{kDense, "1,2", "--verify-spec", "4", "--gen", "4"},
       "--verify-spec goes with a run without --gen"},
      {{kDense, "1,2", "--gen", "4", "--spec", "--spec-draft", "0"},
       "--spec-draft: expected an integer from 1 to 64, found '0'"},
      {{kDense, "1,2", "--gen", "4", "--spec", "--spec-draft", "65"},
       "--spec-draft: expected an integer from 1 to 64, found '65'"},
      {{kDense, "1,2", "--gen", "4", "--spec-draft", "4"},
       "--spec-draft: nobody drafts; give --spec or 'drafter.kind' too"},
      {{kDense, "1,2", "--gen", "4", "--spec-draft", "16"},
       "--spec-draft: nobody drafts; give --spec or 'drafter.kind' too"},
      {{kDense, "1,2", "--gen", "4", "--spec", "--spec-cost", "4:1.3,2:1.1"},
       "--spec-cost: expected DRAFTED:COST,"},
      {{kDense, "1,2", "--no-spec-gate"},
       "--no-spec-gate goes with --chat, --repl and --gen"},
      {{kDense, "1,2", "--spec-bench", "--gen", "4"},
       "--spec-bench goes with a run without --gen"},
  };
  for (const auto& [args, message] : wrong) {
    const ProgramResult result = Fucina(args);
    EXPECT_EQ(result.exit_code, 2) << message << result.err;
    EXPECT_THAT(result.err, HasSubstr(message));
  }
}

}  // namespace
}  // namespace fucina
