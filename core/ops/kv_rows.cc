#include "fucina/ops/kv_rows.h"

#include <algorithm>

namespace fucina::ops {

int KvShape::run_positions() const {
  const int rounded =
      (std::min(capacity, kKvRunPositions) + kKvBlockPositions - 1) /
      kKvBlockPositions * kKvBlockPositions;
  return std::max(rounded, kKvBlockPositions);
}

int KvShape::num_runs() const {
  const int run = run_positions();
  return capacity / run + (capacity % run != 0 ? 1 : 0);
}

std::size_t KvShape::key_bytes() const {
  return element_bytes() * run_positions() * head_dim;
}

std::size_t KvShape::head_bytes() const {
  return key_bytes() + element_bytes() * run_positions() * value_stride();
}

}  // namespace fucina::ops
