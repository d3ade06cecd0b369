#ifndef FUCINA_OPS_LINEAR_H_
#define FUCINA_OPS_LINEAR_H_

// y = x Wᵀ (+ bias) (+ low rank), for weights of any file type.
//
// Weights are packed once at load (PackedLinear). The rows of an input are
// prepared once (ActivationRows) and shared by every matrix that reads them.
// An output element is computed from start to end by one thread in an order
// that only the number of in features decides: row i of a call equals the same
// row computed alone, bit for bit, with any number of threads and at any kernel
// level. The arithmetic is written down in kernels/linear_kernels.h.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "fucina/export.h"
#include "fucina/kernels/linear_kernels.h"
#include "fucina/ops/context.h"
#include "fucina/parallel/thread_pool.h"
#include "fucina/tensor/buffer.h"
#include "fucina/tensor/low_rank.h"
#include "fucina/tensor/tensor.h"

namespace fucina::ops {

// One matrix as it is in the file, with its bias.
struct LinearPart {
  Tensor weight = {};  // [out, in], any weight type
  Tensor bias = {};    // f32 [out]; empty for none
};

// Weights in the layout of the kernels. Immutable after packing; movable.
class FUCINA_API PackedLinear {
 public:
  PackedLinear() = default;

  // The parts one below the other: out features are those of the parts in
  // order. Source bytes are read once, in parallel, and not kept; the caller
  // may release them. ResourceExhausted when memory is refused.
  // REQUIRES: at least one part, all of one type and one number of in features,
  // which is a multiple of the type's block size.
  static absl::StatusOr<PackedLinear> Pack(std::span<const LinearPart> parts,
                                           ThreadPool& pool);
  static absl::StatusOr<PackedLinear> Pack(const Tensor& weight,
                                           ThreadPool& pool);

  // Gate and up [ffn, in] interleaved for the fused epilogue: the output of a
  // product is silu(gate) * up, [rows, ffn]. REQUIRES: as Pack; equal shapes.
  static absl::StatusOr<PackedLinear> PackGated(const LinearPart& gate,
                                                const LinearPart& up,
                                                ThreadPool& pool);

  // The same into memory of the caller, which must outlive the result: for
  // weights that are loaded and dropped again. `memory` is aligned to 64 bytes
  // and at least PackedBytes(...) long. Serial.
  static PackedLinear PackInto(const Tensor& weight,
                               std::span<std::byte> memory);
  static PackedLinear PackGatedInto(const Tensor& gate, const Tensor& up,
                                    std::span<std::byte> memory);
  static std::int64_t PackedBytes(DType dtype, std::int64_t out_features,
                                  std::int64_t in_features);
  static std::int64_t PackedGatedBytes(DType dtype, std::int64_t ffn,
                                       std::int64_t in_features);

  bool empty() const { return strips_ == nullptr; }
  std::int64_t in_features() const { return in_features_; }
  // Width of the output; of a gated pair that of one half.
  std::int64_t out_features() const { return out_features_; }
  DType dtype() const { return dtype_; }
  bool gated() const { return gated_; }
  // Out features of each part, in order; {ffn, ffn} for a gated pair.
  std::span<const std::int64_t> part_features() const { return parts_; }
  // Memory held (or borrowed) for weights and bias.
  std::size_t size_bytes() const { return size_bytes_; }

  // --- for ops --------------------------------------------------------------
  PanelFormat format() const { return format_; }
  std::int64_t num_strips() const { return num_strips_; }
  std::int64_t strip_bytes() const { return strip_bytes_; }
  const std::uint8_t* strip(std::int64_t i) const {
    return strips_ + i * strip_bytes_;
  }
  // f32 [num_strips * 32] in strip order, zeros where a part has none; null
  // when no part has one.
  const float* bias() const { return bias_; }

 private:
  friend class PackPlan;
  static PackedLinear Layout(std::span<const LinearPart> parts, bool gated);
  void SetMemory(std::byte* memory);
  // Packs strips [begin, end) into the memory that was set.
  void FillStrips(std::span<const LinearPart> parts, std::int64_t begin,
                  std::int64_t end);
  void Fill(std::span<const LinearPart> parts, std::byte* memory,
            ThreadPool* pool);

  DType dtype_ = DType::kF32;
  PanelFormat format_ = PanelFormat::kF32;
  bool gated_ = false;
  bool has_bias_ = false;
  std::int64_t in_features_ = 0;
  std::int64_t out_features_ = 0;
  std::int64_t num_strips_ = 0;
  std::int64_t strip_bytes_ = 0;
  std::size_t size_bytes_ = 0;
  std::vector<std::int64_t> parts_;
  std::uint8_t* strips_ = nullptr;
  float* bias_ = nullptr;
  Buffer memory_;
};

// The rows that linears read, in the forms that kernels read, and the scratch
// memory of the product. Made once per decode state; nothing is allocated
// later. One thread at a time.
class FUCINA_API ActivationRows {
 public:
  ActivationRows() = default;

  // Room for `max_rows` rows of up to `max_features`, computed by up to
  // `num_threads` threads; `max_rank` is the most that the ranks of the
  // low-rank pairs of one call add up to, 0 for none. ResourceExhausted when
  // memory is refused; it commits lazily.
  static absl::StatusOr<ActivationRows> Create(std::int64_t max_rows,
                                               std::int64_t max_features,
                                               int num_threads,
                                               std::int64_t max_rank = 0);

  // Takes `x` [rows, features] f32 as the input of the following products. The
  // values must stay as they are until the next Assign. Forms are prepared by
  // the first product that needs them.
  // REQUIRES: at least one row, no more than Create's maxima.
  void Assign(const Tensor& x);

  std::int64_t rows() const { return rows_; }
  std::int64_t features() const { return features_; }
  const Tensor& values() const { return values_; }

 private:
  friend class LinearRunner;
  std::int64_t max_rows_ = 0;
  std::int64_t max_features_ = 0;
  std::int64_t max_rank_ = 0;
  int num_threads_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t features_ = 0;
  bool has_int_tiles_ = false;
  bool has_float_tiles_ = false;
  Tensor values_;
  Buffer int_tiles_;
  Buffer float_tiles_;
  Buffer low_rank_;
  Buffer worker_scratch_;
  std::int64_t worker_scratch_bytes_ = 0;
};

// One product of a call.
struct LinearJob {
  const PackedLinear& weight;
  Tensor out = {};  // f32 [rows, weight.out_features()], rows may be strided
  // One entry per part of the weight (gate and up of a gated pair), null for
  // none; an empty span for none at all. Added before the gated activation.
  // REQUIRES: a [part features, rank], b [rank, in], f32.
  std::span<const LowRank* const> low_rank = {};
};

// Computes all jobs over the same input in one parallel dispatch. Outputs must
// not overlap each other or the input.
// REQUIRES: shapes agree with x; at most 16 jobs and 16 low-rank pairs.
FUCINA_API void Linear(const Context& context, ActivationRows& x,
                       std::span<const LinearJob> jobs);
FUCINA_API void Linear(const Context& context, ActivationRows& x,
                       const PackedLinear& weight, const Tensor& out);

}  // namespace fucina::ops

#endif  // FUCINA_OPS_LINEAR_H_
