#ifndef FUCINA_DECODE_SAMPLER_H_
#define FUCINA_DECODE_SAMPLER_H_

// From one row of logits to one token: penalties, temperature, top-k, top-p,
// min-p, one random draw. One sampler per stream; thread-compatible.

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fucina/contract/decoder.h"
#include "fucina/decode/random.h"
#include "fucina/export.h"

namespace fucina {

struct SamplerConfig {
  double temperature = 0;        // >= 0; 0 is greedy
  int top_k = 0;                 // >= 0; 0 keeps all
  double top_p = 1;              // 0 to 1; 1 is off
  double min_p = 0;              // 0 to 1; 0 is off
  double repeat_penalty = 1;     // > 0; 1 is off
  double frequency_penalty = 0;  // -2 to 2; 0 is off
  double presence_penalty = 0;   // -2 to 2; 0 is off
  int penalty_window = 64;       // last tokens that penalties look at, >= 0
  std::uint64_t seed = 0;
};

// InvalidArgument naming the field, its value and the range it must be in.
FUCINA_API absl::Status Validate(const SamplerConfig& config);

class FUCINA_API Sampler {
 public:
  // REQUIRES: Validate(config).ok(), vocab_size >= 1.
  Sampler(const SamplerConfig& config, int vocab_size);

  const SamplerConfig& config() const { return config_; }

  // Chooses the next token. `logits` is changed by the penalties; `history` is
  // everything committed, newest last.
  //
  // Order: repeat, frequency and presence penalties over the window, once per
  // distinct id; temperature 0: the largest logit, ties to the lowest id, no
  // draw. Otherwise top-k; softmax of logits / temperature over what is kept,
  // sums in f64; top-p (the token that crosses the threshold stays); min-p
  // against the best; then exactly one draw over the rest, best first.
  //
  // InvalidArgument "all tokens masked" when nothing is finite. Never allocates
  // after the first call.
  //
  // logits  [vocab_size] f32, no NaN or +inf (see CheckLogits); -inf is legal
  absl::StatusOr<TokenId> Sample(std::span<float> logits,
                                 std::span<const TokenId> history);

  // Back to the seed: the draws start over.
  void Restart();

 private:
  struct Candidate {
    float logit;
    TokenId id;
  };

  void ApplyPenalties(std::span<float> logits,
                      std::span<const TokenId> history);
  void SelectBest(std::span<const float> logits, std::size_t count);
  TokenId Draw(std::span<const float> logits);

  SamplerConfig config_;
  Random random_;
  std::vector<Candidate> best_;  // sorted: larger logit first, then lower id
  std::vector<TokenId> window_;  // scratch of the penalties
};

// Internal "numeric error …" naming the first NaN or +inf and its position in
// the sequence; OK otherwise.
FUCINA_API absl::Status CheckLogits(std::span<const float> logits,
                                    int position);

// The index of the largest value, ties to the lowest. REQUIRES: not empty.
FUCINA_API TokenId ArgMax(std::span<const float> logits);

}  // namespace fucina

#endif  // FUCINA_DECODE_SAMPLER_H_
