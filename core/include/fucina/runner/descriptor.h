#ifndef FUCINA_RUNNER_DESCRIPTOR_H_
#define FUCINA_RUNNER_DESCRIPTOR_H_

// A decoder as plain data. A family plugin states its rules (FamilyRules); from
// them and a model file FromGguf makes a checked Descriptor; the runner
// computes what the descriptor says. No forward code looks at metadata keys,
// and the keys that all families share are spelled in descriptor.cc and nowhere
// else.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/export.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/ops/rope.h"  // RopePairing, RopeScaling

namespace fucina {

// Which implementation of the layer computes a model. Both compute every
// descriptor.
enum class BlockStyle {
  kFused,          // packed weights, quantized activations: the fast path
  kHostReference,  // plain loops over the file's weights, sums in f64
};
FUCINA_API absl::string_view Name(BlockStyle style);

// How the router's logits become probabilities.
enum class ExpertGating { kSoftmax, kSigmoid };

// Whether a family's models have something.
enum class Presence {
  kNever,
  kByTensor,  // a model has it when its file has the tensors
  kAlways,    // a file without the tensors is refused
};

enum class FeedForward {
  kDense,    // a model with experts is refused
  kExperts,  // a mixture in every layer after the leading dense ones (by key)
};

enum class HeadDimDefault { kFromQueryTensor, kHiddenOverHeads };

// What a family knows about its models beyond their metadata. Static data.
struct FamilyRules {
  absl::string_view architecture;  // also the prefix of its keys
  // Spoken of when the user does not choose.
  BlockStyle block_style = BlockStyle::kFused;

  ops::RopePairing rope_pairing = ops::RopePairing::kHalf;
  double rope_theta = 10000;                 // when the key is missing
  bool rope_theta_default_warns = true;      // a real file states it
  Presence rope_factors = Presence::kNever;  // rope_freqs.weight

  HeadDimDefault head_dim_default = HeadDimDefault::kFromQueryTensor;
  Presence qk_norm = Presence::kNever;  // per head, before rope
  Presence qkv_bias = Presence::kNever;
  Presence attn_out_bias = Presence::kNever;
  Presence ffn_bias = Presence::kNever;  // of dense layers
  Presence output_bias = Presence::kNever;

  // Name, between block number and ".weight", of the norm before the
  // feed-forward.
  absl::string_view ffn_norm = "ffn_norm";
  FeedForward feed_forward = FeedForward::kDense;
  ExpertGating gating = ExpertGating::kSoftmax;  // when the key is missing
  // Weights of the chosen experts are divided by their sum: always, or when the
  // key says so (then false when it is missing).
  bool expert_norm_always = false;
  Presence router_bias = Presence::kNever;  // exp_probs_b

  // The key, after the prefix, that counts prediction layers behind the trunk;
  // empty when the family has none. The trunk runs without them.
  absl::string_view nextn_key = "";
};

// The model as data. Every value has been checked against the file and the
// others; sums and products of sizes fit 64 bits.
struct FUCINA_API Descriptor {
  std::string architecture;
  BlockStyle block_style = BlockStyle::kFused;  // the family's wish

  int vocab_size = 0;  // rows of token_embd.weight
  int hidden_size = 0;
  int num_layers = 0;    // of the trunk
  int nextn_layers = 0;  // prediction layers behind it, not computed here
  int context_length = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int ffn_size = 0;  // of dense layers; 0 when there are none
  float norm_eps = 0;

  ops::RopePairing rope_pairing = ops::RopePairing::kHalf;
  double rope_theta = 0;
  int rope_dims = 0;  // leading elements of a head that rotate
  ops::RopeScaling rope_scaling;
  bool rope_factors = false;

  bool qk_norm = false;
  bool qkv_bias = false;
  bool attn_out_bias = false;
  bool ffn_bias = false;
  bool output_bias = false;
  bool tied_output = false;
  std::string ffn_norm = "ffn_norm";

  // Where in the file the decoder lies. A family that runs a part of its file
  // as a decoder of its own, such as a prediction layer, changes these: the
  // block of the first layer, and the names before ".weight" of the norm and of
  // the matrix behind the last one.
  int first_block = 0;
  std::string output_norm = "output_norm";
  std::string output = "output";  // of no use when tied

  int num_experts = 0;  // 0: every layer is dense
  int num_experts_used = 0;
  int expert_ffn_size = 0;
  int num_shared_experts = 0;
  int leading_dense_layers = 0;
  ExpertGating gating = ExpertGating::kSoftmax;
  bool router_bias = false;
  bool expert_weights_norm = false;
  double expert_weights_scale = 1;

  // What a user would want to know: defaults taken where a real file states the
  // value, parts of the file that are not used. For the log, once.
  std::vector<std::string> notes;

  // Of the queries and of the keys or values of one token.
  std::int64_t query_size() const {
    return static_cast<std::int64_t>(num_heads) * head_dim;
  }
  std::int64_t kv_size() const {
    return static_cast<std::int64_t>(num_kv_heads) * head_dim;
  }
  // Whether the rest of the file belongs to somebody else.
  bool is_part() const { return first_block > 0; }
  bool HasExperts(int layer) const {
    return num_experts > 0 && layer >= leading_dense_layers;
  }

  // Reads and checks the model in `file`.
  //
  // InvalidArgument, naming file, key, value found and expected: another
  // architecture, a required key missing, a value of another class or outside
  // its range, values or tensors that contradict each other. NotFound when a
  // tensor that fixes a dimension is missing. Unimplemented for what no
  // descriptor can say: per-layer geometry, grouped routing, long-rope, other
  // gatings, experts in a dense family.
  static absl::StatusOr<Descriptor> FromGguf(const GgufFile& file,
                                             const FamilyRules& rules);
};

}  // namespace fucina

#endif  // FUCINA_RUNNER_DESCRIPTOR_H_
