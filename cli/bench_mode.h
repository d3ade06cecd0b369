#ifndef FUCINA_CLI_BENCH_MODE_H_
#define FUCINA_CLI_BENCH_MODE_H_

// `--bench R`: reading a prompt and writing tokens, measured R times after a
// warm-up in one process.

#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/generation_options.h"
#include "fucina/contract/decoder.h"
#include "fucina/text/tokenizer.h"

namespace fucina::cli {

// What is measured where nothing else is said.
inline constexpr int kBenchPromptTokens = 512;
inline constexpr int kBenchDecodeSteps = 128;

// Each repetition writes max_tokens; prefill_chunk is that of the tokens read
// untimed.
struct BenchOptions : GenerationOptions {
  int repetitions = 2;  // >= 2
  int depth = 0;        // tokens in the context before, read untimed
  bool profile = false;
  std::string json_path = {};                     // empty: none
  const nlohmann::ordered_json* facts = nullptr;  // set with json_path
};

// `count` ids below `vocab_size`, always the same ones and without short
// patterns: experts are chosen as evenly as random ids would.
std::vector<TokenId> BenchTokens(int count, int vocab_size);

// Repetition 0 warms up: the prompt and at most one step. The others start from
// the same state, read `prompt` in one forward and write max_tokens - 1 steps;
// the first token is drawn between the two spans. Prints load, the plan,
// `prefill:`, `decode :` and medians. `tokenizer` may be null. OutOfRange when
// a capacity given is too small.
absl::Status RunBench(Decoder& decoder, const Tokenizer* tokenizer,
                      std::span<const TokenId> prompt,
                      const BenchOptions& options, std::ostream& out);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_BENCH_MODE_H_
