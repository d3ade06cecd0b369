#ifndef FUCINA_TESTS_TINY_MODELS_TINY_MODELS_H_
#define FUCINA_TESTS_TINY_MODELS_TINY_MODELS_H_

// Small models with seeded weights, written as GGUF files by the tests that use
// them. Any program that follows the recipe below gets the same bytes.
//
// Each tensor has its own SplitMix64 stream, started at seed XOR the FNV-1a 64
// hash of the tensor's name; elements are drawn in storage order:
//   norms        1 + ((next() >> 44) - 2^19) * 2^-22   in [0.875, 1.125)
//   all others   ((next() >> 40) - 2^23) * 2^-26       in [-0.125, 0.125),
//                times weight_scale
// and then encoded in the tensor's type.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "fucina/tensor/dtype.h"

namespace fucina::testing {

// The types of a model's matrices, by role. Norms, biases and routers are f32.
struct TinyWeightTypes {
  DType embedding = DType::kF32;
  DType output = DType::kF32;
  DType attention = DType::kF32;     // q, k, v and output
  DType feed_forward = DType::kF32;  // gate and up
  DType down = DType::kF32;
  DType experts = DType::kF32;  // routed gate and up
  DType experts_down = DType::kF32;
  DType shared_expert = DType::kF32;  // gate, up and down
  DType nextn = DType::kF32;          // eh_proj, own embedding and head

  static TinyWeightTypes All(DType dtype);
};

struct TinyModelSpec {
  // qwen3, qwen3moe, glm4moe, llama or qwen2.
  std::string architecture = "qwen3";
  int vocab_size = 64;
  int hidden_size = 32;
  int num_layers = 2;  // without the prediction layer
  int num_heads = 4;
  int num_kv_heads = 2;
  int head_dim = 32;
  int ffn_size = 64;
  int context_length = 256;
  float rope_theta = 10000;
  float norm_eps = 1e-6f;
  bool tied_output = false;
  // 0: no key, the family's default.
  int rope_dims = 0;

  // qwen3moe and glm4moe.
  int num_experts = 4;
  int num_experts_used = 2;
  int expert_ffn_size = 32;

  // glm4moe.
  bool qk_norm = false;  // the others have it or not by their nature
  int num_shared_experts = 1;
  int leading_dense_layers = 1;
  bool expert_weights_norm = true;
  float expert_weights_scale = 1.5f;
  int num_nextn_layers = 1;
  bool nextn_own_embedding_and_head = false;

  // 0: no scaling keys.
  float yarn_factor = 0;
  int yarn_original_context_length = 0;
  // llama: rope_freqs.weight, empty for none.
  std::vector<float> rope_factors = {};

  TinyWeightTypes types = {};
  std::uint64_t seed = 0xF0C1A;
  float weight_scale = 1;  // a power of two keeps f32 weights exact

  // A byte-level vocabulary with the family's control tokens and a chat
  // template; raises vocab_size to what that needs, if it is smaller. Rows past
  // the tokens are padding, as in real files.
  bool with_tokenizer = false;
};

// The bytes of a file; stops the program when the spec makes no model.
std::string TinyModelBytes(const TinyModelSpec& spec);
// Writes the same to `path`.
absl::Status WriteTinyModel(const TinyModelSpec& spec, absl::string_view path);

// The fixtures with published logits (see tests/core/runner): common shape
// vocab 64, hidden 32, 2 layers, 4 heads, 2 kv heads, ffn 64, theta 10000, f32.
//   D    qwen3, untied                 Dt   qwen3, tied
//   Dy   qwen3, tied, YaRN factor 4    M    qwen3moe, untied
//   G    glm4moe without QK norm       Gq   glm4moe with QK norm
//   Gi   the file of G; its pairing is overridden by the test that loads it
//   L    llama, untied                 Lf   llama with rope_freqs
//   Q2   qwen2, tied
// REQUIRES: `name` is one of these.
TinyModelSpec SeededFixture(absl::string_view name);
std::span<const absl::string_view> SeededFixtureNames();

// The values of one tensor before encoding, for oracles.
std::vector<float> SeededWeights(absl::string_view tensor_name,
                                 std::size_t count,
                                 std::uint64_t seed = 0xF0C1A,
                                 float weight_scale = 1);

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_TINY_MODELS_TINY_MODELS_H_
