#ifndef FUCINA_RUNNER_ROW_BATCH_H_
#define FUCINA_RUNNER_ROW_BATCH_H_

// The rows that go through the layers together: consecutive tokens of one or
// more sequences, one after the other.

#include <cstdint>
#include <span>
#include <vector>

#include "fucina/contract/adapter.h"
#include "fucina/model/kv_cache.h"
#include "fucina/ops/attention.h"
#include "fucina/tensor/tensor.h"

namespace fucina {

struct RowBatch {
  // One item per sequence; `kv` is set anew for each layer.
  std::vector<ops::AttentionItem> items;
  std::vector<KvCache*> caches;         // by item
  std::vector<std::int32_t> positions;  // [num_rows], absolute
  // By item: how many of its last rows are wanted after the last layer. The
  // others are needed for their keys and values only.
  std::vector<int> wanted;
  int num_rows = 0;
  const AdapterSet* adapter = nullptr;  // the same for all rows; may be null

  // Points the items at the storage of `layer`.
  void SetLayer(int layer);

  // Drops all but the last counts[i] rows of each item, in the batch and in the
  // row-major buffers, where the kept rows move to the front in order.
  // REQUIRES: counts[i] <= items[i].num_rows.
  void KeepLast(std::span<const int> counts, std::span<const Tensor> buffers);
};

}  // namespace fucina

#endif  // FUCINA_RUNNER_ROW_BATCH_H_
