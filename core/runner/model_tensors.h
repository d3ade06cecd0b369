#ifndef FUCINA_RUNNER_MODEL_TENSORS_H_
#define FUCINA_RUNNER_MODEL_TENSORS_H_

// Every tensor that a descriptor needs, found and checked, not yet read: the
// one place that spells tensor names. Small vectors (norms, biases) are read
// and widened to f32; matrices stay in the mapped file, whatever their type.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/model/weights.h"
#include "fucina/runner/descriptor.h"

namespace fucina {

// out = W in (+ bias)
struct LinearTensor {
  const GgufTensorInfo* weight = nullptr;  // [out, in]
  std::vector<float> bias;                 // [out], or empty

  std::int64_t in() const { return static_cast<std::int64_t>(weight->ne[0]); }
  std::int64_t out() const { return static_cast<std::int64_t>(weight->ne[1]); }
};

// down(silu(gate(x)) * up(x))
struct FeedForwardTensors {
  LinearTensor gate, up;  // [ffn, hidden]
  LinearTensor down;      // [hidden, ffn]
};

// Routed experts of one layer, stacked; expert e begins at e * out * row bytes.
struct ExpertTensors {
  LinearTensor router;                // [num_experts, hidden]
  std::vector<float> selection_bias;  // [num_experts], or empty
  // Either two stacks [num_experts, expert_ffn, hidden], or one of both with
  // an expert's gate rows before its up rows: [num_experts, 2 expert_ffn,
  // hidden].
  const GgufTensorInfo* gate = nullptr;
  const GgufTensorInfo* up = nullptr;
  const GgufTensorInfo* gate_up = nullptr;
  const GgufTensorInfo* down = nullptr;  // [num_experts, hidden, expert_ffn]
  bool has_shared = false;
  FeedForwardTensors shared;  // of width num_shared * expert_ffn
};

struct LayerTensors {
  std::vector<float> attn_norm;  // [hidden]
  LinearTensor q, k, v, o;
  std::vector<float> q_norm, k_norm;  // [head_dim], or empty
  std::vector<float> ffn_norm;        // [hidden]
  FeedForwardTensors dense;           // of a dense layer
  ExpertTensors experts;              // of a layer with experts
};

struct ModelTensors {
  const GgufTensorInfo* embedding = nullptr;  // [vocab, hidden]
  std::vector<float> output_norm;             // [hidden]
  LinearTensor output;              // [vocab, hidden]; the embedding when tied
  std::vector<float> rope_factors;  // [rope_dims / 2], or empty
  std::vector<LayerTensors> layers;
};

// Finds and checks all of them. Errors of Weights, each naming the tensor.
// Tensors of prediction layers are known and skipped without reading.
// REQUIRES: `descriptor` was made from weights.file().
absl::StatusOr<ModelTensors> FindModelTensors(const Weights& weights,
                                              const Descriptor& descriptor,
                                              bool strict);

}  // namespace fucina

#endif  // FUCINA_RUNNER_MODEL_TENSORS_H_
