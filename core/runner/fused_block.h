#ifndef FUCINA_RUNNER_FUSED_BLOCK_H_
#define FUCINA_RUNNER_FUSED_BLOCK_H_

// A decoder layer on fused ops and packed weights: the fast path. It computes
// what reference_block computes, with activations rounded where a weight's type
// calls for integer products.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/runner/layer_weights.h"
#include "core/runner/model_tensors.h"
#include "core/runner/phase_clock.h"
#include "core/runner/row_batch.h"
#include "fucina/ops/attention.h"
#include "fucina/ops/context.h"
#include "fucina/ops/experts.h"
#include "fucina/ops/linear.h"
#include "fucina/ops/rope.h"
#include "fucina/ops/routing.h"
#include "fucina/runner/descriptor.h"
#include "fucina/tensor/buffer.h"
#include "fucina/tensor/tensor.h"

namespace fucina {

// Memory of one forward in this style, sized once.
struct FusedScratch {
  struct Sizes {
    int max_rows = 0;
    int max_rank = 0;      // of low-rank pairs on one input, added up
    int max_capacity = 0;  // longest context, positions
  };
  static absl::StatusOr<std::unique_ptr<FusedScratch>> Create(
      const Descriptor& descriptor, const Sizes& sizes, int num_threads);

  Sizes sizes;
  Buffer memory;
  Tensor h;       // [rows, hidden] normed input of a linear map
  Tensor qkv;     // [rows, query_size + 2 kv_size]
  Tensor o;       // [rows, query_size]
  Tensor delta;   // [rows, hidden] to be added to the residual
  Tensor gate;    // [rows, widest feed-forward]
  Tensor up;      // [rows, widest feed-forward]
  Tensor extra;   // [rows, hidden] of shared experts
  Tensor router;  // [rows, num_experts]
  std::vector<std::int32_t> expert_ids;  // [rows, num_experts_used]
  std::vector<float> expert_weights;     // [rows, num_experts_used]
  ops::ActivationRows rows;
  ops::AttentionScratch attention;
  ops::ExpertScratch experts;
  // Whether `delta` still waits for its addition to the residual.
  bool pending = false;
};

class FusedBlock {
 public:
  // Packs every layer and the output matrix. Borrows all arguments.
  // ResourceExhausted when memory lacks.
  static absl::StatusOr<std::unique_ptr<FusedBlock>> Create(
      const GgufFile& file, const Descriptor& descriptor,
      const ModelTensors& tensors, double expert_top_p,
      const ops::Context& context);

  // Runs layer `layer` on x [batch.num_rows, hidden] f32. In the last layer,
  // rows that are not wanted are dropped once their keys and values are stored.
  // Unless `settle`, the last addition to x may be left to the next layer.
  void RunLayer(int layer, bool settle, RowBatch& batch, const Tensor& x,
                FusedScratch& scratch, PhaseClock& clock) const;

  // out = output(norm(x)). x [rows, hidden] f32, out [rows, vocab] f32; x is
  // normalized into the scratch first.
  void Normalize(const Tensor& x, FusedScratch& scratch) const;
  void Logits(std::int64_t first_row, std::int64_t num_rows, const Tensor& out,
              FusedScratch& scratch) const;

  const ops::RopeTable& rope() const { return *rope_; }
  std::int64_t size_bytes() const;

 private:
  FusedBlock(const Descriptor& descriptor, const ModelTensors& tensors,
             double expert_top_p, const ops::Context& context);

  void Qkv(int layer, const RowBatch& batch, FusedScratch& scratch) const;
  void FeedForward(const FeedForwardWeights& weights, int layer,
                   const AdapterSet* adapter, int rows, const Tensor& out,
                   FusedScratch& scratch, PhaseClock& clock) const;
  void Experts(const LayerWeights& weights, const LayerTensors& tensors,
               int rows, FusedScratch& scratch, PhaseClock& clock) const;

  const Descriptor& d_;
  const ModelTensors& tensors_;
  const ops::Context context_;
  ops::RoutingRule routing_;
  std::unique_ptr<ops::RopeTable> rope_;
  ModelWeights weights_;
};

}  // namespace fucina

#endif  // FUCINA_RUNNER_FUSED_BLOCK_H_
