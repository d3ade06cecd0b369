#ifndef FUCINA_CLI_RUN_FLAGS_H_
#define FUCINA_CLI_RUN_FLAGS_H_

// The flags of `fucina run`. Flags that a pipeline file knows too are sugar
// over the same struct and are checked by the same code
// (registry/config_keys.h); the rest says what to do with the pipeline.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/logits_file.h"
#include "registry/pipeline_config.h"

namespace fucina::cli {

struct RunFlags {
  PipelineConfig config;
  bool help = false;  // nothing else is read then

  // What to do; the first that applies, in this order.
  bool dump_config = false;
  std::optional<std::string> tokenize;  // a file
  bool info = false;
  bool check_grammar = false;
  std::optional<std::string> chat;  // a message, "-" for stdin, "@FILE"
  bool repl = false;
  std::optional<int> generate;      // tokens; with chat and repl: of a reply
  std::optional<int> verify_cache;  // steps
  std::optional<int> verify_batch;  // steps
  std::optional<int> verify_spec;   // tokens
  bool spec_bench = false;

  // What to do it with.
  // Only one of the three is given; several texts or files with streams only.
  std::vector<std::string> prompts;    // texts
  std::vector<std::string> ids_files;  // files of token ids
  std::optional<std::vector<TokenId>> token_ids;

  // Of the plain forward.
  int repeat = 1;
  std::string logits_out;
  std::string compare_logits;
  CompareLimits compare_limits = {};

  // Of --gen.
  std::string tokens_out;
  int bench = 1;              // repetitions; 1 is off
  bool bench_prompt = false;  // neither prompt nor length given: our own
  int bench_depth = 0;        // tokens
  std::string bench_json;
  int streams = 1;  // 1 is off

  bool profile = false;
  bool show_prompt = false;
  bool quiet = false;
};

// InvalidArgument for an unknown flag (with the nearest one), a missing value,
// a value of the wrong type or out of range, flags that exclude each other, and
// flags that the mode would ignore; what LoadPipelineFile says for --config.
absl::StatusOr<RunFlags> ParseRunFlags(std::span<const std::string> args);

// The text of `fucina run --help`, with examples.
std::string RunHelp();

}  // namespace fucina::cli

#endif  // FUCINA_CLI_RUN_FLAGS_H_
