// What drafting is worth: the same reply written plainly and with the cascade,
// in turn, in one process. The replies are given: a constraint lets the model
// choose nothing else, so that any weights will do and the speeds are those of
// whole generations. Prompts and replies are text of this project:
//
//   copy   a passage of 400 tokens of the prompt, word for word
//   edit   the passage again with a name changed, lines put in and taken out
//   free   text that is not in the prompt
//
//   drafting_bench [--model=FILE] [--rounds=N] [--task=NAME] [--temperature=T]
//                  [--costs=TABLE]    as --spec-cost; 1:1000 drafts nothing

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "fucina/decode/generator.h"
#include "registry/pipeline.h"

namespace fucina {
namespace {

constexpr std::size_t kPassage = 400;

// Lets through one reply.
class Script : public Constraint {
 public:
  explicit Script(std::span<const TokenId> reply) : reply_(reply) {}
  absl::Status Mask(std::span<float> logits) override {
    const auto wanted = static_cast<std::size_t>(reply_[at_]);
    const float kept = logits[wanted];
    std::fill(logits.begin(), logits.end(),
              -std::numeric_limits<float>::infinity());
    logits[wanted] = kept;
    return absl::OkStatus();
  }
  absl::Status Accept(TokenId) override {
    ++at_;
    return absl::OkStatus();
  }
  absl::Status Reset() override {
    at_ = 0;
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<Constraint>> Clone() const override {
    return std::make_unique<Script>(reply_);
  }
  // A model would find out only by verifying.
  int ValidPrefix(std::span<const TokenId> tokens) override {
    return static_cast<int>(tokens.size());
  }

 private:
  std::span<const TokenId> reply_;
  std::size_t at_ = 0;
};

struct Task {
  std::string name;
  std::vector<TokenId> prompt;
  std::vector<TokenId> reply;
};

struct Run {
  double ms = 0;
  GenerationStats stats;
};

std::string ReadProjectFile(const std::string& path) {
  std::ifstream in(absl::StrCat(FUCINA_SOURCE_DIR, "/", path));
  return {std::istreambuf_iterator<char>(in), {}};
}

// A name changed throughout, each 24th line twice as a comment, each 31st gone.
std::string Edited(const std::string& text) {
  std::string edited;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find('\n', begin);
    end = end == std::string::npos ? text.size() : end + 1;
    const std::string line = text.substr(begin, end - begin);
    begin = end;
    ++number;
    if (number % 31 == 0) continue;
    if (number % 24 == 0) absl::StrAppend(&edited, "  // changed\n");
    absl::StrAppend(&edited, line);
  }
  return absl::StrReplaceAll(edited, {{"logits", "scores"}});
}

std::vector<TokenId> First(std::vector<TokenId> tokens, std::size_t count) {
  if (tokens.size() > count) tokens.resize(count);
  return tokens;
}

std::vector<Task> MakeTasks(const Tokenizer& tokenizer) {
  const auto encode = [&](const std::string& text) {
    return tokenizer.Encode(text, {}).value();
  };
  const std::string prose = ReadProjectFile("docs/architecture.md");
  const std::string other = ReadProjectFile("docs/plugins.md");
  const std::string code = ReadProjectFile("core/decode/sampler.cc");
  const std::vector<TokenId> prose_tokens = First(encode(prose), 1000);
  std::vector<TokenId> passage(
      prose_tokens.begin() + 300,
      prose_tokens.begin() + 300 + static_cast<std::ptrdiff_t>(kPassage));
  return {{"copy", prose_tokens, std::move(passage)},
          {"edit", First(encode(code), 800), First(encode(Edited(code)), 600)},
          {"free", First(prose_tokens, 500), First(encode(other), 400)}};
}

Run Write(const Pipeline& pipeline, const Task& task, Drafter* drafter,
          double temperature) {
  const Decoder& decoder = *pipeline.decoder;
  const auto state =
      decoder
          .NewState(static_cast<int>(task.prompt.size() + task.reply.size()) +
                    1)
          .value();
  Sampler sampler({.temperature = temperature}, decoder.info().vocab_size);
  Script script(task.reply);
  Sequence sequence(decoder, {.state = state.get(),
                              .sampler = &sampler,
                              .drafter = drafter,
                              .constraint = &script,
                              .gate = pipeline.gate});
  const absl::Status status = Generator(decoder).Generate(
      sequence, task.prompt,
      {.max_tokens = static_cast<int>(task.reply.size())},
      [](TokenId) { return true; });
  const auto written = sequence.history().subspan(task.prompt.size());
  if (!status.ok() || !std::equal(written.begin(), written.end(),
                                  task.reply.begin(), task.reply.end())) {
    std::cerr << task.name << ": " << status.message() << "\n";
    std::exit(1);
  }
  return {sequence.stats().decode_ms, sequence.stats()};
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int Main(int argc, char** argv) {
  PipelineConfig config;
  const std::string own =
      absl::StrCat(FUCINA_SOURCE_DIR, "/models/atlas-6m-q8_0.gguf");
  config.model = own;
  config.drafter.kind = "cascade";
  int rounds = 5;
  std::string only;
  double temperature = 0;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--model=")) {
      config.model = std::string(argument);
    } else if (absl::ConsumePrefix(&argument, "--task=")) {
      only = std::string(argument);
    } else if (absl::ConsumePrefix(&argument, "--costs=")) {
      config.draft_costs = std::string(argument);
    } else if (!(absl::ConsumePrefix(&argument, "--rounds=") &&
                 absl::SimpleAtoi(argument, &rounds) && rounds > 0) &&
               !(absl::ConsumePrefix(&argument, "--temperature=") &&
                 absl::SimpleAtod(argument, &temperature))) {
      std::cerr << "unknown argument '" << argv[i] << "'\n";
      return 2;
    }
  }
  // The text is cut by the tokenizer of the committed model, whose ids every
  // larger vocabulary has.
  PipelineConfig text_config;
  text_config.model = own;
  const auto text = BuildPipeline(std::move(text_config), PipelineDepth::kFile);
  const auto pipeline =
      BuildPipeline(std::move(config), PipelineDepth::kDecoder);
  for (const auto* built : {&text, &pipeline}) {
    if (built->ok()) continue;
    std::cerr << built->status().message() << "\n";
    return 3;
  }
  std::cerr << StartupLine((*pipeline)->report) << "\n";
  std::cout << "task  tokens  plain tok/s  drafting tok/s  ratio  tokens/step  "
               "accepted\n";
  for (const Task& task : MakeTasks(*(*text)->tokenizer)) {
    if (!only.empty() && task.name != only) continue;
    std::vector<double> plain;
    std::vector<double> drafting;
    std::vector<double> ratio;
    GenerationStats stats;
    Write(**pipeline, task, nullptr, temperature);  // a warm-up
    for (int round = 0; round < rounds; ++round) {
      for (const bool drafts : {round % 2 != 0, round % 2 == 0}) {
        const auto drafter = MakeDrafter(**pipeline).value();
        const Run run = Write(**pipeline, task,
                              drafts ? drafter.get() : nullptr, temperature);
        (drafts ? drafting : plain).push_back(run.ms);
        if (drafts) stats = run.stats;
      }
      ratio.push_back(plain.back() / drafting.back());
    }
    const auto steps = static_cast<double>(task.reply.size() - 1);
    std::cout << absl::StrFormat(
        "%-4s  %6d  %11.1f  %14.1f  %5.2f  %11.2f  %d/%d\n", task.name,
        task.reply.size(), 1e3 * steps / Median(plain),
        1e3 * steps / Median(drafting), Median(ratio), steps / stats.forwards,
        stats.accepted, stats.drafted);
  }
  return 0;
}

}  // namespace
}  // namespace fucina

int main(int argc, char** argv) { return fucina::Main(argc, argv); }
