#include "cli/flag_rules.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace fucina::cli {
namespace {

absl::Status Usage(absl::string_view message) {
  return absl::InvalidArgumentError(message);
}

}  // namespace

absl::Status CheckCombination(
    const RunFlags& flags,
    absl::FunctionRef<int(absl::string_view)> times_given) {
  const auto given = [&](absl::string_view flag) {
    return times_given(flag) > 0;
  };
  const bool conversation = flags.chat.has_value() || flags.repl;
  const bool verify = flags.verify_cache.has_value() ||
                      flags.verify_batch.has_value() ||
                      flags.verify_spec.has_value() || flags.spec_bench;
  const bool generate = flags.generate.has_value() && !conversation;
  const bool stops_early = flags.tokenize.has_value() || flags.info ||
                           flags.check_grammar || flags.dump_config;
  const bool forward = !conversation && !verify && !generate && !stops_early;
  const bool bench = generate && flags.bench > 1;
  const bool streams = generate && flags.streams > 1;
  const bool constrained =
      conversation || generate || flags.check_grammar || flags.dump_config;
  constexpr char kWhereConstrained[] =
      "--chat, --repl, --gen and --check-grammar";

  // These two are added to a command line that would do something else.
  const bool any_mode = flags.check_grammar || flags.dump_config;
  const bool samples = conversation || generate || any_mode;
  constexpr char kWhereSampled[] = "--chat, --repl and --gen";

  const bool drafts = conversation || flags.dump_config ||
                      (generate && (!bench || streams)) ||
                      flags.verify_spec.has_value();

  struct Rule {
    const char* flag;
    bool fits;
    const char* where;
  };
  const Rule rules[] = {
      {"--repeat", forward, "the plain forward"},
      {"--logits-out", forward, "the plain forward"},
      {"--compare-logits", forward, "the plain forward"},
      {"--max-abs", given("--compare-logits"), "--compare-logits"},
      {"--max-rms", given("--compare-logits"), "--compare-logits"},
      {"--min-top5", given("--compare-logits"), "--compare-logits"},
      {"--bench", generate, "--gen"},
      {"--bench-depth", bench && !streams,
       "--bench 2 or more, without "
       "--streams,"},
      {"--bench-json", bench || streams,
       "--bench 2 or more and --streams 2 "
       "or more"},
      {"--streams", generate, "--gen"},
      {"--tokens-out", generate && !bench && !streams,
       "--gen, without "
       "--bench and --streams,"},
      {"--profile", forward || (generate && !streams),
       "the plain forward and --gen, without --streams,"},
      {"--ids-file", !conversation && !stops_early,
       "modes that read a "
       "prompt"},
      {"--show-prompt", conversation, "--chat and --repl"},
      {"--temp", samples, kWhereSampled},
      {"--top-k", samples, kWhereSampled},
      {"--top-p", samples, kWhereSampled},
      {"--min-p", samples, kWhereSampled},
      {"--repeat-penalty", samples, kWhereSampled},
      {"--seed", samples, kWhereSampled},
      {"--stop", samples, kWhereSampled},
      {"--chat-template", conversation || flags.info || any_mode,
       "--chat, --repl and --info"},
      {"--template-arguments", conversation || flags.info || any_mode,
       "--chat, --repl and --info"},
      {"--option", !flags.info && !flags.tokenize.has_value(),
       "modes that load the model"},
      {"--system", conversation || flags.dump_config, "--chat and --repl"},
      {"--no-think", conversation || flags.dump_config, "--chat and --repl"},
      {"--stop-string", conversation || flags.dump_config, "--chat and --repl"},
      {"--max-tokens", conversation || flags.dump_config, "--chat and --repl"},
      {"--mtp", drafts, "--chat, --repl and --gen, without --bench,"},
      {"--spec", drafts, "--chat, --repl and --gen, without --bench,"},
      {"--drafter", drafts, "--chat, --repl and --gen, without --bench,"},
      {"--spec-draft", drafts, "--chat, --repl and --gen, without --bench,"},
      {"--spec-cost", drafts && !flags.verify_spec.has_value(),
       "--chat, --repl and --gen, without --bench,"},
      {"--no-spec-gate", drafts, "--chat, --repl and --gen, without --bench,"},
      {"--spec-ref", drafts, "--chat, --repl and --gen, without --bench,"},
      {"--json-schema", constrained, kWhereConstrained},
      {"--lark", constrained, kWhereConstrained},
      {"--regex", constrained, kWhereConstrained},
      {"--prompt", !conversation && !stops_early, "modes that read a prompt"},
      {"--verify-cache", !generate && !conversation,
       "a run without --gen, "
       "--chat and --repl"},
      {"--verify-spec", !generate && !conversation,
       "a run without --gen, "
       "--chat and --repl"},
      {"--spec-bench", !generate && !conversation,
       "a run without --gen, "
       "--chat and --repl"},
      {"--verify-batch", !generate && !conversation,
       "a run without --gen, "
       "--chat and --repl"},
  };
  for (const Rule& rule : rules) {
    if (given(rule.flag) && !rule.fits) {
      return Usage(absl::StrCat(rule.flag, " goes with ", rule.where, " only"));
    }
  }
  // The first of these would be done and the others forgotten.
  for (const char* first : {"--tokenize", "--info"}) {
    if (!given(first)) continue;
    for (const char* second : {"--info", "--check-grammar", "--chat", "--repl",
                               "--gen", "--verify-cache", "--verify-batch",
                               "--verify-spec", "--spec-bench"}) {
      if (second == absl::string_view(first) || !given(second)) continue;
      return Usage(absl::StrCat(first, " and ", second, " exclude each other"));
    }
  }
  if (conversation && given("--gen") && given("--max-tokens")) {
    return Usage("--gen and --max-tokens are both the longest reply; give one");
  }
  if (given("--verify-cache") + given("--verify-batch") +
          given("--verify-spec") + given("--spec-bench") >
      1) {
    return Usage(
        "--verify-cache, --verify-batch, --verify-spec and --spec-bench "
        "exclude each other");
  }
  if (!flags.prompts.empty() && flags.token_ids.has_value()) {
    return Usage("--prompt and token ids exclude each other");
  }
  if (!flags.ids_files.empty() &&
      (!flags.prompts.empty() || flags.token_ids.has_value())) {
    return Usage("--ids-file excludes --prompt and token ids");
  }
  if (streams && *flags.generate < 2) {
    return Usage("--streams needs --gen 2 or more");
  }
  const std::size_t num_prompts =
      std::max(flags.prompts.size(), flags.ids_files.size());
  if (streams && num_prompts > static_cast<std::size_t>(flags.streams)) {
    return Usage(absl::StrCat("--streams ", flags.streams, " reads ",
                              flags.streams, " prompts at most, found ",
                              num_prompts));
  }
  if (bench && !streams && given("--stop")) {
    return Usage(
        "--bench writes as many tokens as --gen says; leave out "
        "--stop");
  }
  if (flags.token_ids.has_value() && (conversation || stops_early)) {
    return Usage("token ids go with modes that read a prompt only");
  }
  if (flags.check_grammar && flags.config.constraint.kind.empty()) {
    return Usage(
        "--check-grammar needs a grammar: --json-schema, --lark, --regex or "
        "'constraint:' in the pipeline file");
  }
  if (flags.chat.has_value() && flags.repl) {
    return Usage("--chat and --repl exclude each other");
  }
  if (generate && times_given("--stop") > 1) {
    return Usage("--gen takes one --stop only");
  }
  return absl::OkStatus();
}

}  // namespace fucina::cli
