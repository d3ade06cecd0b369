#ifndef FUCINA_RUNNER_REFERENCE_BLOCK_H_
#define FUCINA_RUNNER_REFERENCE_BLOCK_H_

// A decoder layer in plain loops, written to be checked against the papers by
// reading: weights are decoded from the file row by row, every sum runs in f64
// in index order, results are stored as f32, activations are never rounded.
// Nothing here is shared with the fast path but the file, the cache and the
// descriptor, so the two can be held against each other.

#include <cstdint>
#include <span>
#include <vector>

#include "core/runner/model_tensors.h"
#include "core/runner/phase_clock.h"
#include "core/runner/row_batch.h"
#include "fucina/ops/context.h"
#include "fucina/runner/descriptor.h"
#include "fucina/tensor/tensor.h"

namespace fucina {

struct ExpertPick {
  int expert = 0;
  double weight = 0;
};

// Memory of one forward in this style.
struct ReferenceScratch {
  ReferenceScratch(const Descriptor& descriptor, int max_rows, int capacity,
                   int num_threads);

  int max_rows;
  int max_capacity;                   // longest context, positions
  std::vector<float> h;               // [rows, hidden] input of a linear map
  std::vector<float> q;               // [rows, query_size]
  std::vector<float> k, v;            // [rows, kv_size]
  std::vector<float> o;               // [rows, query_size]
  std::vector<float> delta;           // [rows, hidden]
  std::vector<float> gate, up;        // [rows, widest feed-forward]
  std::vector<float> router;          // [rows, num_experts]
  std::vector<float> expert_out;      // [hidden]
  std::vector<float> shared_out;      // [rows, hidden]
  std::vector<double> sum;            // [hidden]
  std::vector<double> probabilities;  // [num_experts]
  std::vector<ExpertPick> picks;      // [num_experts_used]
  std::vector<float> decoded_rows;    // [num_threads, widest input]
  std::vector<double> scores;         // [num_threads, max_capacity]
  std::vector<double> rank;           // [rank] of a low-rank product
};

class ReferenceBlock {
 public:
  // Borrows everything.
  ReferenceBlock(const Descriptor& descriptor, const ModelTensors& tensors,
                 double expert_top_p, const ops::Context& context);

  // Runs layer `layer` on x [batch.num_rows, hidden] f32 in place. In the last
  // layer, rows that are not wanted are dropped once their keys and values are
  // stored.
  void RunLayer(int layer, RowBatch& batch, const Tensor& x,
                ReferenceScratch& scratch, PhaseClock& clock) const;

  // out = output(norm(x))
  //
  // x    [rows, hidden] f32, normalized in place
  // out  [rows, vocab] f32
  void Normalize(const Tensor& x) const;
  void Logits(const Tensor& x, const Tensor& out,
              ReferenceScratch& scratch) const;

 private:
  void Linear(const LinearTensor& linear, const LowRank* low_rank,
              const float* x, int rows, float* out, std::int64_t out_stride,
              ReferenceScratch& scratch) const;
  void LinearRows(const GgufTensorInfo& weight, std::int64_t first_row,
                  std::int64_t num_rows, const float* bias, const float* x,
                  int rows, float* out, std::int64_t out_stride,
                  ReferenceScratch& scratch) const;
  void Rope(std::span<const std::int32_t> positions, int num_heads,
            float* x) const;
  void Attend(const RowBatch& batch, const float* q, float* o,
              ReferenceScratch& scratch) const;
  void FeedForward(const FeedForwardTensors& t, int layer,
                   const AdapterSet* adapter, int rows, float* out,
                   ReferenceScratch& scratch) const;
  void Experts(const ExpertTensors& t, const float* h, int rows, float* out,
               ReferenceScratch& scratch) const;

  const Descriptor& d_;
  const ModelTensors& tensors_;
  const double expert_top_p_;
  const ops::Context context_;
  std::vector<double> inverse_frequency_;  // [rope_dims / 2], radians a token
  double rope_magnitude_ = 1;              // of cosine and sine
};

}  // namespace fucina

#endif  // FUCINA_RUNNER_REFERENCE_BLOCK_H_
