#ifndef FUCINA_CLI_SPEC_MODES_H_
#define FUCINA_CLI_SPEC_MODES_H_

// What drafting costs on this machine, and the proof that it changes no token.

#include <memory>
#include <ostream>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fucina/contract/decoder.h"
#include "fucina/contract/drafter.h"

namespace fucina::cli {

using DrafterMaker =
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<Drafter>>()>;

// Times a forward over 1 + d tokens against one over a single token for several
// d behind the prompt, in turns, best and median of `repetitions`. Prints a
// line per d and `spec-cost-table: 1:…,2:…`, costs in plain steps; a table's
// are at least 1, whatever was measured.
// Unimplemented for a family that cannot take back tokens.
absl::Status RunSpecBench(const Decoder& decoder,
                          std::span<const TokenId> prompt, int repetitions,
                          std::ostream& out);

struct VerifySpecOptions {
  int max_tokens = 1;       // to write each time
  int max_draft = 16;       // tokens to draft at a time
  int prefill_chunk = 512;  // tokens per forward that reads
};

// Writes tokens without drafts and with those of `maker` (null results are left
// out), of an oracle, of garbage and of both in turns, greedy and sampled with
// penalties, and compares tokens and the logits that follow them, bit by bit.
// FailedPrecondition when anything differs.
absl::Status VerifySpec(const Decoder& decoder, std::span<const TokenId> prompt,
                        const VerifySpecOptions& options, DrafterMaker maker,
                        std::ostream& out);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_SPEC_MODES_H_
