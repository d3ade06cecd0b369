#ifndef FUCINA_CLI_COMPLETION_MODE_H_
#define FUCINA_CLI_COMPLETION_MODE_H_

// `--gen N`: continues a prompt token by token and prints what came out, with
// timings that can be held against other engines.

#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/generation_options.h"
#include "fucina/contract/decoder.h"
#include "fucina/contract/drafter.h"
#include "fucina/text/tokenizer.h"

namespace fucina::cli {

struct CompletionOptions : GenerationOptions {
  // Each ends the run and is the last token printed. End tokens of the model do
  // not end it by themselves: the run has the length that was asked for.
  std::vector<TokenId> stop_tokens = {};
  std::string tokens_out =
      {};  // empty: none; else prompt and generated ids as u32
  bool profile = false;
  Drafter* drafter = nullptr;  // null: no drafting
};

// `tokenizer` may be null; then only ids are printed.
absl::Status RunCompletion(Decoder& decoder, const Tokenizer* tokenizer,
                           std::span<const TokenId> prompt,
                           const CompletionOptions& options, std::ostream& out);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_COMPLETION_MODE_H_
