#ifndef FUCINA_CLI_STREAMS_MODE_H_
#define FUCINA_CLI_STREAMS_MODE_H_

// `--streams S`: S sequences in lockstep against the same sequences one by one.

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/generation_options.h"
#include "fucina/contract/decoder.h"
#include "fucina/contract/drafter.h"
#include "fucina/text/tokenizer.h"

namespace fucina::cli {

inline constexpr int kMaxStreams = 1024;

// Each stream writes max_tokens, at least 2; stream i draws from seed + i.
struct StreamsOptions : GenerationOptions {
  int num_streams = 2;  // >= 2
  int repetitions = 1;  // timed, after a warm-up
  // Each ends a stream and is its last token; the others go on.
  std::vector<TokenId> stop_tokens = {};
  // A drafter for each stream; empty: no drafting.
  std::function<absl::StatusOr<std::unique_ptr<Drafter>>()> make_drafter = {};
  std::string json_path = {};                     // empty: none
  const nlohmann::ordered_json* facts = nullptr;  // set with json_path
};

// Stream i reads prompts[i % prompts.size()]. Each repetition runs both arms,
// in turns first: all streams together, and one after the other with the same
// states and seeds. Prints rates over all streams, the speed-up, whether every
// stream wrote the same tokens in both arms, and the tokens of each.
//
// FailedPrecondition, naming stream and token, when they differ; OutOfRange
// when a prompt does not fit a capacity given.
absl::Status RunStreams(Decoder& decoder, const Tokenizer* tokenizer,
                        std::span<const std::vector<TokenId>> prompts,
                        const StreamsOptions& options, std::ostream& out);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_STREAMS_MODE_H_
