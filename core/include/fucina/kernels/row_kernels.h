#ifndef FUCINA_KERNELS_ROW_KERNELS_H_
#define FUCINA_KERNELS_ROW_KERNELS_H_

// Functions over rows of numbers: norms, rotation, activation, attention.
//
// One arithmetic for all levels. Rows are walked in vectors of 16 elements;
// reductions keep one partial result per lane and combine the lanes by one
// tree (i with i + 8, then + 4, + 2, + 1). There is one exponential:
//   n = round(x log2 e), f = x - n ln 2, 2^n (1 + f + f^2 P(f)), P of degree 4
// with fused multiply-adds throughout; 0 below -87.3, +inf above 88.37; within
// 1.5 units in the last place.

#include <cstdint>

namespace fucina {

// Positions of one attention step, of one vector of keys, and the most queries
// that share a register tile.
inline constexpr int kAttentionPositions = 64;
inline constexpr int kAttentionLanes = 16;
inline constexpr int kAttentionTile = 6;
// Queries of one call: converting a block to f32 is then a few percent of the
// work on it, and their results stay in the second-level cache.
inline constexpr int kMaxAttentionQueries = 96;

// One step of online softmax: `num_queries` queries over one block of 64
// positions.
struct AttentionBlock {
  const void* keys = nullptr;    // [4][head_dim][16] f16 or f32
  const void* values = nullptr;  // [64][value_stride] f16 or f32
  int head_dim = 0;
  int value_stride = 0;  // elements, a multiple of 16
  int num_queries = 0;
  const float* queries = nullptr;         // [num_queries][head_dim], scaled
  const std::int32_t* visible = nullptr;  // [num_queries], 0 to 64: the leading
                                          // positions that the query may see
  float* max = nullptr;      // [num_queries] running maximum, -inf at first
  float* sum = nullptr;      // [num_queries] running sum of exponentials
  float* out = nullptr;      // [num_queries][value_stride], not normalised
  float* weights = nullptr;  // [num_queries][64] scratch
  // Scratch of 64 * max(head_dim, value_stride), for a converted block: keys
  // and then values, so that they stay in the first-level cache.
  float* wide = nullptr;
  // The keys that will be wanted next, to be brought near meanwhile; null when
  // not known. No result depends on it.
  const void* next_keys = nullptr;
};

struct RowKernels {
  // y = x * r * weight, r = 1 / sqrt(sum(x^2) / n + eps); the sum in 16 f64
  // lanes, r in f64 and then rounded. y may be x.
  void (*rms_norm)(const float* x, const float* weight, float eps,
                   std::int64_t n, float* y) = nullptr;

  // y = a + b; y may be either.
  void (*add)(const float* a, const float* b, std::int64_t n,
              float* y) = nullptr;

  // y = x * factor.
  void (*scale)(const float* x, float factor, std::int64_t n,
                float* y) = nullptr;

  // The same for num_rows rows, x_stride apart in x, adjacent in y.
  void (*scale_rows)(const float* x, std::int64_t x_stride, float factor,
                     int num_rows, std::int64_t n, float* y) = nullptr;

  // y = exp(x); y may be x.
  void (*exp)(const float* x, std::int64_t n, float* y) = nullptr;

  // y = gate / (1 + exp(-gate)) * up; y may be either.
  void (*gated_silu)(const float* gate, const float* up, std::int64_t n,
                     float* y) = nullptr;

  // x stays where bit i % 32 of marks[i / 32] is one, and becomes `fill`
  // elsewhere.
  void (*keep_marked)(const std::uint32_t* marks, float fill, std::int64_t n,
                      float* x) = nullptr;

  // Rotates pairs (i, i + num_pairs), respectively (2i, 2i + 1), in place:
  //   a' = fma(a, c, -(b s)), b' = fma(b, c, a s)
  // table  [num_pairs] cosines, [num_pairs] sines
  void (*rope_half)(const float* table, int num_pairs, float* x) = nullptr;
  void (*rope_interleaved)(const float* table, int num_pairs,
                           float* x) = nullptr;

  // Rounds x to f16, nearest even, clipped to ±65504; returns how many were
  // clipped. Element i goes to y[i * stride]; stride 1 or 16.
  std::int64_t (*store_f16)(const float* x, std::int64_t n, std::int64_t stride,
                            std::uint16_t* y) = nullptr;

  // The same for 16 rows at once, x_stride apart: element i of row j goes to
  // y[i * 16 + j].
  std::int64_t (*store_f16_transposed)(const float* x, std::int64_t x_stride,
                                       std::int64_t n,
                                       std::uint16_t* y) = nullptr;

  // One step over a block of f16, respectively f32, storage. Per query:
  //   s_j = fma(q_c, k_jc, s_j), c ascending          j < visible
  //   m'  = max(m, max_j s_j), p_j = exp(s_j - m')
  //   sum = fma(sum, exp(m - m'), lane tree of p)
  //   out = out * exp(m - m'), then fma(p_j, v_j, out), j ascending
  // A query that sees nothing keeps all it has.
  void (*attend_f16)(const AttentionBlock& block) = nullptr;
  void (*attend_f32)(const AttentionBlock& block) = nullptr;

  // Adds the partial result (max, sum, out) of later positions to (*to_max,
  // *to_sum, to_out). n elements.
  void (*attention_merge)(float max, float sum, const float* out,
                          std::int64_t n, float* to_max, float* to_sum,
                          float* to_out) = nullptr;

  // y = out / sum, by way of the reciprocal. Query (row, head), rows outermost:
  // n elements at out + query * value_stride, to y + row * y_stride + head * n.
  void (*attention_finish)(const float* out, std::int64_t value_stride,
                           const float* sum, int num_rows, int num_heads,
                           std::int64_t n, float* y,
                           std::int64_t y_stride) = nullptr;
};

}  // namespace fucina

#endif  // FUCINA_KERNELS_ROW_KERNELS_H_
