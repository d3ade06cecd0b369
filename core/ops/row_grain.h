#ifndef FUCINA_CORE_OPS_ROW_GRAIN_H_
#define FUCINA_CORE_OPS_ROW_GRAIN_H_

#include <algorithm>
#include <cstdint>

namespace fucina::ops {

// Rows of one piece of work for cheap functions over rows: about 16 Ki elements
// take some microseconds, ten times the cost of a hand-over; less runs on the
// calling thread alone.
inline std::int64_t RowGrain(std::int64_t row_size) {
  return std::max<std::int64_t>(1, (std::int64_t{1} << 14) / row_size);
}

}  // namespace fucina::ops

#endif  // FUCINA_CORE_OPS_ROW_GRAIN_H_
