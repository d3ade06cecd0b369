#ifndef FUCINA_OPS_KV_ROWS_H_
#define FUCINA_OPS_KV_ROWS_H_

// How the keys and values of one layer of one sequence lie in memory.
//
// Positions are cut into runs of kKvRunPositions. Within a run, each KV head
// has its keys and then its values, contiguous:
//
//   keys    [run_positions / 16][head_dim][16]: a vector of 16 elements holds
//           one channel of 16 positions, so that scores need no sum across
//           lanes
//   values  [run_positions][value_stride]: value_stride is head_dim rounded up
//           to 16; the padding is zero and never used
//
// A run is the unit in which attention splits a long context, and memory past
// the last run in use is never touched.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fucina/export.h"
#include "fucina/tensor/dtype.h"

namespace fucina::ops {

// Positions of a run and of a split of attention. Splits lie at absolute
// multiples of it, so results do not depend on what is processed together.
inline constexpr int kKvRunPositions = 512;
// Positions of one softmax step.
inline constexpr int kKvBlockPositions = 64;
// Positions that share a vector of keys.
inline constexpr int kKvLanes = 16;

struct FUCINA_API KvShape {
  DType dtype = DType::kF16;  // kF16 or kF32
  int num_kv_heads = 0;
  int head_dim = 0;
  int capacity = 0;  // positions

  // Positions of each run: kKvRunPositions, or the capacity rounded up to a
  // block when that is less.
  int run_positions() const;
  int num_runs() const;
  int value_stride() const { return head_dim + (16 - head_dim % 16) % 16; }
  std::size_t element_bytes() const { return dtype == DType::kF32 ? 4 : 2; }
  // Keys, respectively keys and values, of one head in one run.
  std::size_t key_bytes() const;
  std::size_t head_bytes() const;
  // All heads of one run of one layer.
  std::size_t run_bytes() const { return head_bytes() * num_kv_heads; }
};

// One layer's keys and values of one sequence. A view: it owns nothing.
struct KvRows {
  KvShape shape = {};
  std::byte* data = nullptr;                       // of this layer in run 0
  std::size_t run_stride_bytes = 0;                // from one run to the next
  std::atomic<std::int64_t>* saturated = nullptr;  // counts clipped values

  std::byte* keys(int run, int head) const {
    return data + run * run_stride_bytes + head * shape.head_bytes();
  }
  std::byte* values(int run, int head) const {
    return keys(run, head) + shape.key_bytes();
  }
};

}  // namespace fucina::ops

#endif  // FUCINA_OPS_KV_ROWS_H_
