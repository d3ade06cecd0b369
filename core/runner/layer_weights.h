#ifndef FUCINA_RUNNER_LAYER_WEIGHTS_H_
#define FUCINA_RUNNER_LAYER_WEIGHTS_H_

// The weights of one layer in the layout of the kernels. Matrices that read the
// same input and share a type are fused into one: q, k and v below each other,
// gate and up interleaved so that the product comes out of one pass. Mixed
// types stay apart; a layer may have any mixture.

#include <vector>

#include "absl/status/statusor.h"
#include "core/runner/model_tensors.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/ops/experts.h"
#include "fucina/ops/linear.h"
#include "fucina/parallel/thread_pool.h"
#include "fucina/tensor/buffer.h"

namespace fucina {

struct FeedForwardWeights {
  ops::PackedLinear gate_up;  // a gated pair; or empty
  ops::PackedLinear gate;     // when gate_up is empty
  ops::PackedLinear up;
  ops::PackedLinear down;
};

struct ExpertLayerWeights {
  ops::PackedLinear router;
  ops::PackedExperts experts;
  std::vector<const ops::ExpertWeights*> by_number;  // [num_experts]
  bool has_shared = false;
  FeedForwardWeights shared;
};

struct LayerWeights {
  ops::PackedLinear qkv;  // or empty
  ops::PackedLinear q;    // when qkv is empty
  ops::PackedLinear k;
  ops::PackedLinear v;
  ops::PackedLinear o;
  FeedForwardWeights dense;    // of a dense layer
  ExpertLayerWeights experts;  // of a layer with experts
};

struct ModelWeights {
  Buffer memory;  // of all matrices
  std::vector<LayerWeights> layers;
  ops::PackedLinear output;
};

// Packs every matrix on all threads of the pool and tells the file which pages
// are no longer needed, so that memory stays near one copy of the model.
// ResourceExhausted when memory lacks.
absl::StatusOr<ModelWeights> PackModel(const GgufFile& file,
                                       const ModelTensors& tensors,
                                       ThreadPool& pool);

}  // namespace fucina

#endif  // FUCINA_RUNNER_LAYER_WEIGHTS_H_
