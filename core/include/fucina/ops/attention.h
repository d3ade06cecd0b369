#ifndef FUCINA_OPS_ATTENTION_H_
#define FUCINA_OPS_ATTENTION_H_

// Causal grouped-query attention over cached rows, for a batch of sequences at
// once.
//
// The arithmetic of one (row, head) is one fixed sequence: scores as fused
// multiply-adds over the channels in order; an online softmax that advances by
// blocks of 64 positions; values as fused multiply-adds over the positions in
// order; contexts longer than 512 positions in splits at absolute multiples of
// 512, merged in order. Everything accumulates in f32. Positions after the row
// take no part at all, so neither later rows nor forgotten ones can be felt.

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "fucina/export.h"
#include "fucina/ops/context.h"
#include "fucina/ops/kv_rows.h"
#include "fucina/tensor/tensor.h"

namespace fucina::ops {

// Rows [first_row, first_row + num_rows) of the batch's tensors: consecutive
// tokens of one sequence, the first at absolute position `position`.
struct AttentionItem {
  KvRows kv = {};
  int position = 0;
  int first_row = 0;
  int num_rows = 0;
};

// Memory that attention works in. Owned by the caller, used by one call at a
// time, sized once: calls allocate nothing.
class FUCINA_API AttentionScratch {
 public:
  struct Sizes {
    int num_threads = 1;  // of the pool in the context
    int num_heads = 0;
    int num_kv_heads = 0;
    int head_dim = 0;
    // Longest context, positions. Beyond it results stay right, but few rows
    // over a long context are shared out among fewer threads.
    int capacity = 0;
    // Items expected in one batch; more grow the list of tasks once.
    int num_items = 1;
  };
  // ResourceExhausted, naming the bytes, when memory lacks. Pages are committed
  // when first used.
  static absl::StatusOr<AttentionScratch> Create(const Sizes& sizes);

  AttentionScratch();
  AttentionScratch(AttentionScratch&&) noexcept;
  AttentionScratch& operator=(AttentionScratch&&) noexcept;
  ~AttentionScratch();

  std::size_t size_bytes() const;

  struct Impl;
  Impl* impl() const { return impl_.get(); }

 private:
  std::unique_ptr<Impl> impl_;
};

// Stores the keys and values of each item's rows at its positions. f16 storage
// rounds to nearest even and clips to ±65504, counting the clipped values.
//
// k, v  [num_rows, num_kv_heads * head_dim] f32, rows may be strided
//
// REQUIRES: position + num_rows <= capacity for every item; items of different
// storage, or of disjoint positions.
FUCINA_API void AppendKv(const Context& context, const Tensor& k,
                         const Tensor& v, std::span<const AttentionItem> items);

// out = softmax(scale * q k^T over positions up to the row's own) v.
//
// q    [num_rows, num_heads * head_dim] f32, rows may be strided
// out  [num_rows, num_heads * head_dim] f32; not q
//
// Query head h reads KV head h / (num_heads / num_kv_heads). Each item's own
// rows must have been appended before.
//
// REQUIRES: all items have the scratch's num_kv_heads and head_dim.
// Source: arXiv 2305.13245 (grouped queries), 1805.02867 (online softmax).
FUCINA_API void Attention(const Context& context, const Tensor& q,
                          std::span<const AttentionItem> items, float scale,
                          AttentionScratch& scratch, Tensor out);

}  // namespace fucina::ops

#endif  // FUCINA_OPS_ATTENTION_H_
