#ifndef FUCINA_OPS_ROPE_H_
#define FUCINA_OPS_ROPE_H_

// Rotary position embedding. Inverse frequencies, angles, cosines and sines are
// computed in f64 once per position and kept rounded to f32, so long contexts
// do not drift and a row never depends on how its position was reached.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "fucina/export.h"
#include "fucina/ops/context.h"
#include "fucina/tensor/tensor.h"

namespace fucina::ops {

// Which elements of a head rotate together, for pair i of the first
// `rotary_dim` elements.
enum class RopePairing {
  kHalf,         // i and i + rotary_dim / 2
  kInterleaved,  // 2i and 2i + 1
};

// How positions past the trained context are squeezed into it.
enum class RopeScalingKind {
  kNone,
  kLinear,  // angles divided by `factor`
  kYarn,    // slow pairs divided, fast pairs kept (arXiv 2309.00071)
};

struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  double factor = 1.0;
  double attn_factor = 1.0;  // multiplies cosine and sine
  // YaRN only.
  double ext_factor = 1.0;          // weight of the kept angles, 0 to 1
  double beta_fast = 32.0;          // rotations over the original context
  double beta_slow = 1.0;           // rotations over the original context
  int original_context_length = 0;  // tokens
};

struct RopeSpec {
  int rotary_dim = 0;  // elements of a head that rotate; even
  double theta = 10000.0;
  RopePairing pairing = RopePairing::kHalf;
  RopeScaling scaling = {};
  // [rotary_dim / 2] divisors of the angles (`rope_freqs`); empty: all 1.
  std::vector<float> factors = {};
};

// Cosines and sines by absolute position. Grows on request, in runs of
// positions; rows once there never move, so growing does not disturb readers.
//
// Thread-safe: one table serves every state of a decoder.
class FUCINA_API RopeTable {
 public:
  // Positions of one run: what Prepare computes at least.
  static constexpr int kRunPositions = 512;
  // Positions a table can hold.
  static constexpr int kMaxPositions = 1 << 22;

  // REQUIRES: rotary_dim even and positive, theta > 0, factor > 0, factors
  // empty or rotary_dim / 2 positive numbers.
  explicit RopeTable(RopeSpec spec);
  ~RopeTable();
  RopeTable(const RopeTable&) = delete;
  RopeTable& operator=(const RopeTable&) = delete;

  const RopeSpec& spec() const;

  // Makes the rows of positions [0, num_positions) available. Free when they
  // are already; call it at the start of a forward (or with the capacity when
  // a state is made). OutOfRange past kMaxPositions, ResourceExhausted when
  // memory lacks; the rows there before stay.
  absl::Status Prepare(int num_positions) const;

  // [rotary_dim / 2] cosines followed by as many sines, both multiplied by the
  // attention factor. REQUIRES: Prepare covered `position`.
  const float* Row(int position) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Rotates the leading rotary_dim elements of every head in place; the others
// stay as they are.
//
// positions  [num_rows], absolute token positions
// x          [num_rows, num_heads * head_dim] f32, modified in place
//
// REQUIRES: the row size is a multiple of head_dim; rotary_dim <= head_dim;
// Prepare covered every position.
// Source: RoFormer (arXiv 2104.09864) section 3.4.2.
FUCINA_API void Rope(const Context& context, const RopeTable& table,
                     std::span<const std::int32_t> positions, int head_dim,
                     Tensor x);

// Queries or keys: rows of heads, and the weight of the norm that each head
// passes first. An empty weight is no norm.
struct NormedHeads {
  Tensor x;  // [num_rows, num_heads * head_dim] f32, modified in place
  std::span<const float> weight;  // [head_dim] or []
};

// HeadRmsNorm and then Rope, of several tensors, in one pass over memory: each
// gives the bits of the two calls.
//
// REQUIRES: as Rope and HeadRmsNorm do, of each tensor.
FUCINA_API void NormAndRope(const Context& context, const RopeTable& table,
                            std::span<const std::int32_t> positions,
                            int head_dim, float eps,
                            std::span<const NormedHeads> tensors);

}  // namespace fucina::ops

#endif  // FUCINA_OPS_ROPE_H_
