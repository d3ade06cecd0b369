#ifndef FUCINA_CLI_VERIFY_MODES_H_
#define FUCINA_CLI_VERIFY_MODES_H_

// `--verify-cache` and `--verify-batch`: the promises of a decoder checked on
// the user's own model and machine.

#include <ostream>
#include <span>

#include "absl/status/status.h"
#include "fucina/contract/decoder.h"

namespace fucina::cli {

// After each of `steps` greedy steps, compares the logits of the cached step
// with a forward of the whole sequence from an empty state. Prints a line per
// step and `verify: PASS|FAIL (top-aligned a/b steps, max_abs=…)`.
// FailedPrecondition when the best tokens differ by more than a near tie.
absl::Status VerifyCache(const Decoder& decoder,
                         std::span<const TokenId> prompt, int steps,
                         std::ostream& out);

// Compares, bit by bit, logits of forwards over 2, 3, 4, 5, 8, 12, 16, 24 and
// 32 tokens (up to `steps`) with those of single steps; then one more step on
// the state each left behind; then a forward with wrong drafts that is
// truncated and walked again. FailedPrecondition when a single bit differs.
// REQUIRES: steps >= 2.
absl::Status VerifyBatch(const Decoder& decoder,
                         std::span<const TokenId> prompt, int steps,
                         std::ostream& out);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_VERIFY_MODES_H_
