#ifndef FUCINA_CLI_BENCH_MODE_H_
#define FUCINA_CLI_BENCH_MODE_H_

// `--bench R`: reading a prompt and writing tokens, measured R times after a
// warm-up in one process.

#include <atomic>
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "fucina/contract/decoder.h"
#include "fucina/decode/sampler.h"
#include "fucina/text/tokenizer.h"

namespace fucina::cli {

// What is measured where nothing else is said.
inline constexpr int kBenchPromptTokens = 512;
inline constexpr int kBenchDecodeSteps = 128;

struct BenchOptions {
  int repetitions = 2;  // >= 2
  int max_tokens = 1;   // of each; the first comes from the prompt's logits
  int depth = 0;        // tokens in the context before, read untimed
  SamplerConfig sampling = {};
  int capacity = 0;         // 0: what is needed
  int prefill_chunk = 512;  // of the tokens read untimed
  double load_seconds = 0;  // printed
  bool profile = false;
  std::string json_path = {};                     // empty: none
  const nlohmann::ordered_json* facts = nullptr;  // set with json_path
  const std::atomic<bool>* cancel = nullptr;
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
