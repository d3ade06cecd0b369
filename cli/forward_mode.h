#ifndef FUCINA_CLI_FORWARD_MODE_H_
#define FUCINA_CLI_FORWARD_MODE_H_

// The plain forward: one pass over the prompt from an empty state, the best
// five next tokens, and the dump and comparison of its logits.

#include <optional>
#include <ostream>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "cli/logits_file.h"
#include "fucina/contract/decoder.h"

namespace fucina::cli {

struct ForwardOptions {
  int repeat = 1;              // >= 1
  double load_seconds = 0;     // printed
  std::string logits_out;      // empty: no dump
  std::string compare_logits;  // empty: no comparison
  CompareLimits limits = {};
  bool profile = false;
};

// Prints, in order: tokens, load, forward, top tokens, profile, dump,
// comparison. FailedPrecondition when the comparison fails; nothing is computed
// when the reference file cannot be used.
absl::Status RunForward(Decoder& decoder, std::span<const TokenId> tokens,
                        const ForwardOptions& options, std::ostream& out);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_FORWARD_MODE_H_
