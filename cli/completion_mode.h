#ifndef FUCINA_CLI_COMPLETION_MODE_H_
#define FUCINA_CLI_COMPLETION_MODE_H_

// `--gen N`: continues a prompt token by token and prints what came out, with
// timings that can be held against other engines.

#include <atomic>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "fucina/contract/decoder.h"
#include "fucina/decode/sampler.h"
#include "fucina/text/tokenizer.h"

namespace fucina::cli {

struct CompletionOptions {
  int max_tokens = 0;  // >= 1
  // Ends the run and is the last token printed. End tokens of the model do not
  // end it by themselves: the run has the length that was asked for.
  std::optional<TokenId> stop_token = std::nullopt;
  SamplerConfig sampling = {};
  int capacity = 0;         // 0: prompt and max_tokens
  int prefill_chunk = 512;  // tokens per prefill forward
  double load_seconds = 0;  // printed
  std::string tokens_out;   // empty: none; else prompt and generated ids as u32
  bool profile = false;
  const std::atomic<bool>* cancel = nullptr;
};

// `tokenizer` may be null; then only ids are printed.
absl::Status RunCompletion(Decoder& decoder, const Tokenizer* tokenizer,
                           std::span<const TokenId> prompt,
                           const CompletionOptions& options, std::ostream& out);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_COMPLETION_MODE_H_
