#include "core/decode/largest.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

namespace fucina {

float Largest(std::span<const float> values) {
  // Lanes of their own, so that the compiler may go through several at once.
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> lanes;
  lanes.fill(-std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float value = values[i + lane];
      lanes[lane] = value > lanes[lane] ? value : lanes[lane];
    }
  }
  for (; i < values.size(); ++i) lanes[0] = std::max(lanes[0], values[i]);
  return *std::max_element(lanes.begin(), lanes.end());
}

}  // namespace fucina
