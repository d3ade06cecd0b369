// Storing keys and values; see ops/kv_rows.h for where they go.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "fucina/diag/check.h"
#include "fucina/kernels/kernels.h"
#include "fucina/ops/attention.h"
#include "fucina/parallel/thread_pool.h"

namespace fucina::ops {
namespace {

const float* RowOf(const Tensor& x, const AttentionItem& item, int row,
                   int head, int dim) {
  return x.row_f32(item.first_row + row) +
         static_cast<std::int64_t>(head) * dim;
}

// One KV head of one item. Returns how many values were clipped.
std::int64_t AppendHead(const RowKernels& kernels, const AttentionItem& item,
                        const Tensor& k, const Tensor& v, int head) {
  const KvShape& shape = item.kv.shape;
  const int dim = shape.head_dim;
  const int run_positions = shape.run_positions();
  const bool half = shape.dtype == DType::kF16;
  std::int64_t clipped = 0;
  int rows = 1;
  for (int row = 0; row < item.num_rows; row += rows) {
    const int position = item.position + row;
    const int run = position / run_positions;
    const std::int64_t slot = position % run_positions;
    // All positions of a vector of keys are written at once where they can be.
    const bool whole =
        half && slot % kKvLanes == 0 && row + kKvLanes <= item.num_rows;
    rows = whole ? kKvLanes : 1;
    const float* const key = RowOf(k, item, row, head, dim);
    const std::int64_t key_at =
        slot / kKvLanes * kKvLanes * dim + slot % kKvLanes;
    const std::int64_t value_at = slot * shape.value_stride();
    std::byte* const keys = item.kv.keys(run, head);
    std::byte* const values = item.kv.values(run, head);
    if (!half) {
      float* const to = reinterpret_cast<float*>(keys) + key_at;
      for (int c = 0; c < dim; ++c) to[c * kKvLanes] = key[c];
      std::memcpy(reinterpret_cast<float*>(values) + value_at,
                  RowOf(v, item, row, head, dim), sizeof(float) * dim);
      continue;
    }
    auto* const to = reinterpret_cast<std::uint16_t*>(keys) + key_at;
    clipped += whole ? kernels.store_f16_transposed(
                           key, k.row_stride_bytes() / sizeof(float), dim, to)
                     : kernels.store_f16(key, dim, kKvLanes, to);
    for (int i = 0; i < rows; ++i) {
      clipped += kernels.store_f16(RowOf(v, item, row + i, head, dim), dim, 1,
                                   reinterpret_cast<std::uint16_t*>(values) +
                                       value_at + i * shape.value_stride());
    }
  }
  return clipped;
}

}  // namespace

void AppendKv(const Context& context, const Tensor& k, const Tensor& v,
              std::span<const AttentionItem> items) {
  if (items.empty()) return;
  const int num_kv_heads = items[0].kv.shape.num_kv_heads;
  std::int64_t num_rows = 0;
  for (const AttentionItem& item : items) {
    const KvShape& shape = item.kv.shape;
    FUCINA_CHECK_EQ(shape.num_kv_heads, num_kv_heads);
    FUCINA_CHECK_EQ(
        k.row_size(),
        static_cast<std::int64_t>(shape.num_kv_heads) * shape.head_dim);
    FUCINA_CHECK_EQ(v.row_size(), k.row_size());
    FUCINA_CHECK(item.position >= 0 && item.num_rows >= 0 &&
                 item.num_rows <= shape.capacity - item.position)
        << item.num_rows << " rows at " << item.position << " of "
        << shape.capacity;
    FUCINA_CHECK(item.first_row >= 0 &&
                 item.first_row + item.num_rows <= k.num_rows() &&
                 item.first_row + item.num_rows <= v.num_rows());
    num_rows += item.num_rows;
  }
  // Heads, not rows, are shared out: a thread then writes whole lines of keys.
  const std::int64_t num_tasks =
      static_cast<std::int64_t>(items.size()) * num_kv_heads;
  const std::int64_t elements =
      2 * num_rows * k.row_size() / num_tasks;  // of a task, on average
  const std::int64_t grain =
      std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, elements));
  context.pool.ParallelFor(
      num_tasks, grain,
      [&](std::int64_t begin, std::int64_t end, int /*worker*/) {
        for (std::int64_t task = begin; task < end; ++task) {
          const AttentionItem& item = items[task / num_kv_heads];
          const std::int64_t clipped =
              AppendHead(context.kernels.rows, item, k, v,
                         static_cast<int>(task % num_kv_heads));
          if (clipped > 0 && item.kv.saturated != nullptr) {
            item.kv.saturated->fetch_add(clipped, std::memory_order_relaxed);
          }
        }
      });
}

}  // namespace fucina::ops
