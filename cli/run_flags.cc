#include "cli/run_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/bench_mode.h"  // kBenchDecodeSteps
#include "cli/flag_rules.h"
#include "cli/grammar_flags.h"
#include "cli/streams_mode.h"  // kMaxStreams
#include "cli/token_ids.h"
#include "fucina/contract/options.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "registry/config_keys.h"

namespace fucina::cli {
namespace {

constexpr absl::string_view kHelpHead =
    R"(usage: fucina run [MODEL.gguf] [TOKEN-IDS] [flags]

Runs a language model. Without MODEL the one that comes with fucina answers.
MODEL is a GGUF file, any part of a split model, or the folder that holds it.

examples:
  fucina run --chat "What is the capital of France?" --no-think
  fucina run model.gguf --repl --system "Answer in one word."
  fucina run model.gguf --prompt "The capital of Peru is" --gen 16 --temp 0
  fucina run --config pipeline.yaml --chat @question.txt
  fucina run model.gguf 9707,11,1879 --logits-out logits.bin
  fucina run model.gguf --bench 5
  fucina run model.gguf --gen 65 --bench 5 --bench-depth 4096
  fucina run model.gguf --prompt "Once" --gen 32 --streams 4
  fucina run --spec --chat "Repeat after me: one two three" --no-think
)";

constexpr absl::string_view kHelpTail =
    R"(
TOKEN-IDS is a comma-separated list; without ids, --ids-file and --prompt the
family's own short prompt is used. --flag VALUE and --flag=VALUE mean the same; the last one
given wins; -- ends the flags. A flag wins over the pipeline file of --config.
Answers go to standard output, everything else to standard error.

exit status: 0 success, 2 wrong usage or configuration, 3 the model file cannot be
used or a comparison failed, 4 not enough memory or disk, 130 interrupted, 1 anything
else
)";

// The flags that say what to do. `value` is empty for a switch.
struct ModeFlag {
  const char* name;
  const char* value;
  const char* doc;
};

constexpr ModeFlag kModeFlags[] = {
    {"--config", "FILE", "pipeline file to start from"},
    {"--dump-config", "", "print the effective configuration and stop"},
    {"--chat", "MESSAGE",
     "one reply; - reads the message from standard input, @FILE from a file"},
    {"--repl", "", "a conversation, line by line"},
    {"--prompt", "TEXT", "text to read instead of token ids"},
    {"--ids-file", "FILE",
     "token ids to read, separated by commas, blanks or lines"},
    {"--gen", "N", "write N tokens; with --chat and --repl the longest reply"},
    {"--tokenize", "FILE",
     "print the file's token ids, one per line, and stop"},
    {"--info", "", "print what the model file says and stop"},
    {"--repeat", "N", "plain forward: run it N times"},
    {"--profile", "", "print the time of each phase"},
    {"--logits-out", "FILE", "plain forward: write the logits, f32"},
    {"--compare-logits", "FILE",
     "plain forward: compare with such a file; status 3 when they differ"},
    {"--max-abs", "F", "--compare-logits: largest difference allowed"},
    {"--max-rms", "F", "--compare-logits: largest root mean square allowed"},
    {"--min-top5", "N",
     "--compare-logits: how many of the best five must agree"},
    {"--bench", "R", "time --gen R times; alone: 512 tokens read, 129 written"},
    {"--bench-depth", "N", "--bench: tokens before the prompt, not timed"},
    {"--bench-json", "FILE", "--bench, --streams: write all samples as JSON"},
    {"--streams", "S",
     "--gen: S sequences in lockstep and one by one; they share "
     "what several --prompt or --ids-file give"},
    {"--tokens-out", "FILE", "--gen: write prompt and generated ids, u32"},
    {"--verify-cache", "N",
     "compare N cached steps with forwards of the whole sequence"},
    {"--verify-batch", "N",
     "compare batches of up to N tokens with single steps, bit by bit"},
    {"--verify-spec", "N",
     "write N tokens with and without drafts and compare them; status 3 when "
     "they differ"},
    {"--spec-bench", "", "print what verifying drafts costs"},
    {"--option", "NAME=VALUE", "an option of the family; see fucina plugins"},
    {"--mtp", "[=DEPTH]",
     "draft with the model's own prediction layer, up to DEPTH tokens (1 to 8, "
     "alone: 2); changes speed and no token"},
    {"--json-schema", "JSON|@FILE", "the reply satisfies this JSON schema"},
    {"--lark", "GRAMMAR|@FILE", "the reply follows this Lark grammar"},
    {"--regex", "PATTERN", "the whole reply matches this regular expression"},
    {"--json-compact", "", "--json-schema: no white space between the parts"},
    {"--check-grammar", "", "say whether the grammar is usable and stop"},
    {"--show-prompt", "", "print the rendered prompt and its ids"},
    {"--quiet", "", "no start-up line and no figures"},
    {"--help", "", "this text"},
};

// Of --mtp without a value.
constexpr int kUsualMtpDepth = 2;

std::string FlagLine(absl::string_view name, absl::string_view value,
                     absl::string_view doc, absl::string_view initial) {
  std::string line = absl::StrCat("  ", name);
  // A value that may be left out is written as one word with its flag.
  if (!value.empty()) {
    absl::StrAppend(&line, value[0] == '[' ? "" : " ", value);
  }
  constexpr std::size_t kColumn = 28;
  if (line.size() + 1 < kColumn) {
    line.resize(kColumn, ' ');
  } else {
    absl::StrAppend(&line, "\n", std::string(kColumn, ' '));
  }
  absl::StrAppend(&line, doc);
  if (!initial.empty()) absl::StrAppend(&line, " [", initial, "]");
  return absl::StrCat(line, "\n");
}

std::vector<std::string> AllFlags() {
  std::vector<std::string> names;
  for (const ModeFlag& flag : kModeFlags) names.emplace_back(flag.name);
  for (const ConfigKey& key : ConfigKeys()) {
    if (!key.flag.empty()) names.emplace_back(key.flag);
  }
  for (const ConfigSwitch& flag : ConfigSwitches()) {
    names.emplace_back(flag.flag);
  }
  return names;
}

absl::Status Usage(absl::string_view message) {
  return absl::InvalidArgumentError(message);
}

// What was given on the command line, before any of it is understood.
class Given {
 public:
  absl::Status Parse(std::span<const std::string> args);

  bool Has(absl::string_view flag) const {
    return values_.count(std::string(flag)) > 0;
  }
  // All values in order; empty when the flag was not given.
  std::vector<std::string> All(absl::string_view flag) const {
    const auto it = values_.find(std::string(flag));
    return it == values_.end() ? std::vector<std::string>() : it->second;
  }
  std::optional<std::string> Last(absl::string_view flag) const {
    const auto it = values_.find(std::string(flag));
    if (it == values_.end() || it->second.empty()) return std::nullopt;
    return it->second.back();
  }
  absl::StatusOr<std::optional<int>> Int(
      absl::string_view flag, int min,
      int max = std::numeric_limits<int>::max()) const {
    const std::optional<std::string> text = Last(flag);
    if (!text.has_value()) return std::optional<int>();
    std::int64_t value = 0;
    const bool is_integer = absl::SimpleAtoi(*text, &value);
    if (!is_integer || value < min) {
      return Usage(absl::StrCat(flag, ": expected an integer of at least ", min,
                                ", found '", Printable(*text), "'"));
    }
    if (value > max) {
      return Usage(
          absl::StrCat(flag, ": expected at most ", max, ", found ", value));
    }
    return std::optional<int>(static_cast<int>(value));
  }
  absl::StatusOr<double> Limit(absl::string_view flag) const {
    const std::optional<std::string> text = Last(flag);
    if (!text.has_value()) return -1.0;
    double value = 0;
    if (!absl::SimpleAtod(*text, &value) || !(value >= 0)) {
      return Usage(absl::StrCat(flag,
                                ": expected a number of at least 0, "
                                "found '",
                                Printable(*text), "'"));
    }
    return value;
  }
  const std::vector<std::string>& positional() const { return positional_; }

 private:
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> positional_;
};

absl::Status Given::Parse(std::span<const std::string> args) {
  CLI::App app;
  app.set_help_flag();  // --help is one of ours
  app.allow_extras();
  std::map<std::string, CLI::Option*> options;
  const auto add_value = [&](absl::string_view name) {
    CLI::Option* option = app.add_option(std::string(name));
    // One value per occurrence, whatever it looks like; repeats are collected.
    option->expected(1)->allow_extra_args(false)->multi_option_policy(
        CLI::MultiOptionPolicy::TakeAll);
    options[std::string(name)] = option;
  };
  const auto add_switch = [&](absl::string_view name) {
    options[std::string(name)] = app.add_flag(std::string(name));
  };
  for (const ModeFlag& flag : kModeFlags) {
    if (*flag.value != '\0') {
      add_value(flag.name);
    } else {
      add_switch(flag.name);
    }
  }
  for (const ConfigKey& key : ConfigKeys()) {
    if (!key.flag.empty()) add_value(key.flag);
  }
  for (const ConfigSwitch& flag : ConfigSwitches()) add_switch(flag.flag);

  // The parser would take the next argument as the value of "--flag=", and the
  // value of "--switch=value" as a number of times. A value may look like
  // either and stays as it is.
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  for (auto arg = reversed.rbegin(); arg != reversed.rend(); ++arg) {
    if (*arg == "--") break;
    if (*arg == "-h") *arg = "--help";
    // The only flag whose value may be left out.
    if (*arg == "--mtp") *arg = absl::StrCat("--mtp=", kUsualMtpDepth);
    const std::size_t equals = arg->find('=');
    const std::string name = arg->substr(0, equals);
    const auto known = options.find(name);
    if (known == options.end()) continue;
    const bool takes_value = known->second->get_expected_max() > 0;
    if (equals == std::string::npos) {
      if (takes_value && std::next(arg) != reversed.rend()) ++arg;
    } else if (!takes_value) {
      return Usage(absl::StrCat(name, " takes no value"));
    } else if (equals + 1 == arg->size()) {
      return Usage(absl::StrCat("missing value for ", name));
    }
  }
  try {
    app.parse(reversed);
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();
    const std::string flag = text.substr(0, text.find_first_of(": "));
    if (absl::StrContains(text, "required") ||
        absl::StrContains(text, "missing")) {
      return Usage(absl::StrCat("missing value for ", flag));
    }
    return Usage(absl::StrCat(flag, " takes no value"));
  } catch (const CLI::Error& error) {
    return Usage(error.what());
  }
  bool ended = false;
  for (const std::string& arg : app.remaining()) {
    if (arg == "--" && !ended) {
      ended = true;
    } else if (!ended && arg.size() > 1 && arg[0] == '-') {
      const std::string name = arg.substr(0, arg.find('='));
      const std::string nearest = NearestName(name, AllFlags());
      return Usage(absl::StrCat(
          "unknown flag: ", Printable(name),
          nearest.empty() ? std::string("; see fucina run --help")
                          : absl::StrCat("; did you mean '", nearest, "'")));
    } else {
      positional_.push_back(arg);
    }
  }
  for (const auto& [name, option] : options) {
    if (option->count() > 0) values_[name] = option->results();
  }
  return absl::OkStatus();
}

// Values of the pipeline: the file first, then the flags over it.
absl::Status FillConfig(const Given& given, PipelineConfig& config) {
  if (const auto path = given.Last("--config"); path.has_value()) {
    FUCINA_RETURN_IF_ERROR(LoadPipelineFile(*path, config));
  }
  const auto origin = [](absl::string_view flag) {
    Origin origin_of;
    origin_of.kind = Origin::Kind::kFlag;
    origin_of.place = std::string(flag);
    return origin_of;
  };
  for (const ConfigKey& key : ConfigKeys()) {
    if (key.flag.empty() || !given.Has(key.flag)) continue;
    std::vector<std::string> values = given.All(key.flag);
    if (!key.is_list) values = {values.back()};
    for (const std::string& value : values) {
      FUCINA_RETURN_IF_ERROR(Set(config, key.name, value, origin(key.flag)));
    }
  }
  for (const ConfigSwitch& flag : ConfigSwitches()) {
    if (!given.Has(flag.flag)) continue;
    FUCINA_RETURN_IF_ERROR(Set(config, flag.key, flag.text, origin(flag.flag)));
  }
  for (const std::string& option : given.All("--option")) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(option, absl::MaxSplits('=', 1));
    if (parts.first.empty() || !absl::StrContains(option, '=')) {
      return Usage(absl::StrCat("--option: expected NAME=VALUE, found '",
                                Printable(option), "'"));
    }
    FUCINA_RETURN_IF_ERROR(Set(config, absl::StrCat("options.", parts.first),
                               parts.second, origin("--option")));
  }
  if (given.Has("--spec") + given.Has("--mtp") + given.Has("--drafter") > 1) {
    return Usage("--spec, --mtp and --drafter exclude each other");
  }
  if (const auto depth = given.Last("--mtp"); depth.has_value()) {
    // The one place that knows a drafter by name: a flag of its own is what
    // users of the family expect.
    FUCINA_RETURN_IF_ERROR(
        Set(config, "drafter.kind", "glm4moe_mtp", origin("--mtp")));
    FUCINA_RETURN_IF_ERROR(
        Set(config, "drafter.options.depth", *depth, origin("--mtp")));
  }
  for (const char* flag : {"--json-schema", "--lark", "--regex"}) {
    if (given.All(flag).size() > 1) {
      return Usage(absl::StrCat(flag, " is given twice; a reply follows one"));
    }
  }
  FUCINA_RETURN_IF_ERROR(
      FillConstraint({.json_schema = given.Last("--json-schema"),
                      .lark = given.Last("--lark"),
                      .regex = given.Last("--regex"),
                      .json_compact = given.Has("--json-compact")},
                     config));
  if (!given.positional().empty()) {
    const std::string& model = given.positional()[0];
    if (given.Has("--model")) {
      return Usage(absl::StrCat("the model is given twice: --model and '",
                                Printable(model), "'"));
    }
    FUCINA_RETURN_IF_ERROR(Set(config, "model", model, origin("MODEL")));
  }
  return absl::OkStatus();
}

// Whether --bench alone says what to do.
bool OnlyBench(const Given& given) {
  for (const char* mode :
       {"--chat", "--repl", "--tokenize", "--info", "--check-grammar",
        "--dump-config", "--verify-cache", "--verify-batch", "--verify-spec",
        "--spec-bench", "--repeat", "--logits-out", "--compare-logits"}) {
    if (given.Has(mode)) return false;
  }
  return true;
}

}  // namespace

std::string RunHelp() {
  std::string text(kHelpHead);
  absl::StrAppend(&text, "\nwhat to do:\n");
  for (const ModeFlag& flag : kModeFlags) {
    absl::StrAppend(&text, FlagLine(flag.name, flag.value, flag.doc, ""));
  }
  absl::StrAppend(&text, "\nhow (also keys of a pipeline file):\n");
  for (const ConfigKey& key : ConfigKeys()) {
    if (key.flag.empty()) continue;
    absl::StrAppend(&text, FlagLine(key.flag, key.value, key.doc, key.initial));
  }
  for (const ConfigSwitch& flag : ConfigSwitches()) {
    absl::StrAppend(&text, FlagLine(flag.flag, "", flag.doc, ""));
  }
  return absl::StrCat(text, kHelpTail);
}

absl::StatusOr<RunFlags> ParseRunFlags(std::span<const std::string> args) {
  Given given;
  FUCINA_RETURN_IF_ERROR(given.Parse(args));
  RunFlags flags;
  flags.help = given.Has("--help");
  if (flags.help) return flags;
  if (given.positional().size() > 2) {
    return Usage(absl::StrCat("unexpected argument '",
                              Printable(given.positional()[2]),
                              "'; expected MODEL and TOKEN-IDS at most"));
  }
  for (const char* flag :
       {"--config", "--tokenize", "--ids-file", "--tokens-out", "--logits-out",
        "--compare-logits", "--bench-json"}) {
    for (const std::string& path : given.All(flag)) {
      if (!path.empty()) continue;
      return Usage(absl::StrCat(flag, ": expected a path, found ''"));
    }
  }
  FUCINA_RETURN_IF_ERROR(FillConfig(given, flags.config));

  flags.dump_config = given.Has("--dump-config");
  flags.tokenize = given.Last("--tokenize");
  flags.info = given.Has("--info");
  flags.check_grammar = given.Has("--check-grammar");
  flags.chat = given.Last("--chat");
  flags.repl = given.Has("--repl");
  flags.prompts = given.All("--prompt");
  flags.ids_files = given.All("--ids-file");
  flags.profile = given.Has("--profile");
  flags.show_prompt = given.Has("--show-prompt");
  flags.quiet = given.Has("--quiet");
  flags.logits_out = given.Last("--logits-out").value_or("");
  flags.compare_logits = given.Last("--compare-logits").value_or("");
  flags.tokens_out = given.Last("--tokens-out").value_or("");
  FUCINA_ASSIGN_OR_RETURN(flags.generate, given.Int("--gen", 1));
  FUCINA_ASSIGN_OR_RETURN(flags.verify_cache, given.Int("--verify-cache", 0));
  FUCINA_ASSIGN_OR_RETURN(flags.verify_batch, given.Int("--verify-batch", 2));
  FUCINA_ASSIGN_OR_RETURN(flags.verify_spec, given.Int("--verify-spec", 1));
  flags.spec_bench = given.Has("--spec-bench");
  FUCINA_ASSIGN_OR_RETURN(const std::optional<int> repeat,
                          given.Int("--repeat", 1));
  flags.repeat = repeat.value_or(1);
  FUCINA_ASSIGN_OR_RETURN(const std::optional<int> bench,
                          given.Int("--bench", 1));
  flags.bench = bench.value_or(1);
  FUCINA_ASSIGN_OR_RETURN(const std::optional<int> depth,
                          given.Int("--bench-depth", 0));
  flags.bench_depth = depth.value_or(0);
  flags.bench_json = given.Last("--bench-json").value_or("");
  FUCINA_ASSIGN_OR_RETURN(const std::optional<int> streams,
                          given.Int("--streams", 1, kMaxStreams));
  flags.streams = streams.value_or(1);
  if (flags.bench > 1 && !flags.generate.has_value() && OnlyBench(given)) {
    flags.generate = kBenchDecodeSteps + 1;
    flags.bench_prompt = true;
  }
  if (flags.streams == 1) {
    // The last one given wins.
    for (std::vector<std::string>* list : {&flags.prompts, &flags.ids_files}) {
      if (list->size() > 1) list->erase(list->begin(), list->end() - 1);
    }
  }
  FUCINA_ASSIGN_OR_RETURN(flags.compare_limits.max_abs,
                          given.Limit("--max-abs"));
  FUCINA_ASSIGN_OR_RETURN(flags.compare_limits.max_rms,
                          given.Limit("--max-rms"));
  FUCINA_ASSIGN_OR_RETURN(const std::optional<int> min_top5,
                          given.Int("--min-top5", 0, 5));
  flags.compare_limits.min_top5 = min_top5.value_or(0);
  if (given.positional().size() == 2) {
    FUCINA_ASSIGN_OR_RETURN(flags.token_ids,
                            ParseTokenIds(given.positional()[1]));
  }
  FUCINA_RETURN_IF_ERROR(
      CheckCombination(flags, [&given](absl::string_view flag) {
        return static_cast<int>(given.All(flag).size());
      }));
  return flags;
}

}  // namespace fucina::cli
