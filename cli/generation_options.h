#ifndef FUCINA_CLI_GENERATION_OPTIONS_H_
#define FUCINA_CLI_GENERATION_OPTIONS_H_

// What the modes that write tokens behind a prompt of ids have in common.

#include <atomic>

#include "fucina/contract/constraint.h"
#include "fucina/decode/sampler.h"
#include "fucina/decode/speculation_gate.h"

namespace fucina::cli {

struct GenerationOptions {
  int max_tokens = 1;  // the first comes from the prompt's logits
  SamplerConfig sampling = {};
  int capacity = 0;                  // of a context, tokens; 0: what is needed
  int prefill_chunk = 512;           // tokens per forward that reads
  double load_seconds = 0;           // printed
  SpeculationGateOptions gate = {};  // of no use without a drafter
  // Null: every token is allowed. Streams take a clone each.
  Constraint* constraint = nullptr;
  const std::atomic<bool>* cancel = nullptr;
};

// What a user must hear when a reply ended before its constraint was satisfied.
inline constexpr char kIncompleteReply[] =
    "reply is incomplete (constraint not satisfied)";

}  // namespace fucina::cli

#endif  // FUCINA_CLI_GENERATION_OPTIONS_H_
