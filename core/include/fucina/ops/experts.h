#ifndef FUCINA_OPS_EXPERTS_H_
#define FUCINA_OPS_EXPERTS_H_

// A mixture of gated feed-forward experts: every row through the experts it was
// routed to. Rows are grouped by expert, so each expert's weights are read once
// per call; the result of a row does not depend on the grouping, its neighbours
// or the number of threads, bit for bit.

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "fucina/export.h"
#include "fucina/ops/context.h"
#include "fucina/ops/linear.h"
#include "fucina/tensor/buffer.h"
#include "fucina/tensor/tensor.h"

namespace fucina::ops {

// The matrices of one expert. Gate and up are one gated pair when they share a
// type, else two matrices.
struct ExpertWeights {
  PackedLinear gate_up;  // gated; or empty
  PackedLinear gate;     // when gate_up is empty
  PackedLinear up;
  PackedLinear down;
};

// All experts of a layer, packed into one allocation.
class FUCINA_API PackedExperts {
 public:
  PackedExperts() = default;

  // gate, up [experts, ffn, hidden], down [experts, hidden, ffn], contiguous,
  // of any weight types. Packs in parallel. ResourceExhausted when memory is
  // refused.
  static absl::StatusOr<PackedExperts> Pack(const Tensor& gate,
                                            const Tensor& up,
                                            const Tensor& down,
                                            ThreadPool& pool);

  // One expert into memory of the caller, for experts that are loaded on
  // demand. gate, up [ffn, hidden], down [hidden, ffn].
  static std::int64_t ExpertBytes(const Tensor& gate, const Tensor& up,
                                  const Tensor& down);
  static ExpertWeights PackExpertInto(const Tensor& gate, const Tensor& up,
                                      const Tensor& down,
                                      std::span<std::byte> memory);

  std::span<const ExpertWeights> experts() const { return experts_; }
  // Memory held, or borrowed from the memory of a PackPlan.
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  friend class PackPlan;
  static void CheckShapes(const Tensor& gate, const Tensor& up,
                          const Tensor& down);

  std::vector<ExpertWeights> experts_;
  std::size_t size_bytes_ = 0;
  Buffer memory_;
};

// Which experts each row goes to; see routing.h.
struct ExpertChoice {
  int num_used = 0;                            // slots of a row
  std::span<const std::int32_t> experts = {};  // [rows * num_used]
  std::span<const float> weights = {};         // [rows * num_used]
};

// Scratch of ExpertMixture; made once per decode state.
class FUCINA_API ExpertScratch {
 public:
  ExpertScratch() = default;
  // ResourceExhausted when memory is refused.
  static absl::StatusOr<ExpertScratch> Create(std::int64_t max_rows,
                                              int num_experts, int num_used,
                                              std::int64_t hidden_size,
                                              std::int64_t ffn_size,
                                              int num_threads);

 private:
  friend class ExpertRunner;
  std::int64_t max_rows_ = 0;
  int num_experts_ = 0;
  int num_used_ = 0;
  std::int64_t hidden_size_ = 0;
  std::int64_t ffn_size_ = 0;
  int num_threads_ = 0;
  Buffer memory_;
};

// out[i] = sum over slots j, in order, of weight_ij * expert_ij(x[i]), where
// expert(h) = down(silu(gate h) * (up h)). A slot whose weight is 0 and whose
// expert an earlier slot of the row has is skipped (the top-p rule makes them).
//
// x    [rows, hidden] f32
// out  [rows, hidden] f32, overwritten; must not overlap x
// experts[e] is read only where some row chose e.
FUCINA_API void ExpertMixture(const Context& context, const Tensor& x,
                              const ExpertChoice& choice,
                              std::span<const ExpertWeights* const> experts,
                              ExpertScratch& scratch, const Tensor& out);

}  // namespace fucina::ops

#endif  // FUCINA_OPS_EXPERTS_H_
