#include "core/runner/row_batch.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "fucina/diag/check.h"

namespace fucina {

void RowBatch::SetLayer(int layer) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].kv = caches[i]->layer(layer);
  }
}

void RowBatch::KeepLast(std::span<const int> counts,
                        std::span<const Tensor> buffers) {
  int next = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    ops::AttentionItem& item = items[i];
    const int keep = counts[i];
    FUCINA_CHECK(keep >= 0 && keep <= item.num_rows) << keep;
    const int from = item.first_row + item.num_rows - keep;
    if (from != next) {
      // Rows only move towards the front, so no row is overwritten before it
      // has been moved.
      for (int r = 0; r < keep; ++r) {
        for (const Tensor& buffer : buffers) {
          std::memcpy(
              buffer.mutable_row_f32(next + r), buffer.row_f32(from + r),
              static_cast<std::size_t>(buffer.row_size()) * sizeof(float));
        }
      }
      std::copy_n(positions.begin() + from, keep, positions.begin() + next);
    }
    item.position += item.num_rows - keep;
    item.first_row = next;
    item.num_rows = keep;
    next += keep;
  }
  num_rows = next;
  positions.resize(static_cast<std::size_t>(next));
}

}  // namespace fucina
