#include "fucina/decode/time_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "fucina/diag/check.h"

namespace fucina {

// Times below 8 have a bucket each. Above, the leading bit chooses a group of
// eight buckets and the three bits behind it one of them.
std::size_t TimeHistogram::BucketOf(std::int64_t ns) {
  const auto value = static_cast<std::uint64_t>(ns);
  if (value >> kStepBits == 0) return value;
  const int shift = static_cast<int>(std::bit_width(value)) - 1 - kStepBits;
  const std::size_t group = static_cast<std::size_t>(shift) << kStepBits;
  return std::min<std::size_t>(group + (value >> shift), kNumBuckets - 1);
}

std::int64_t TimeHistogram::EndOf(std::size_t bucket) {
  if (bucket >> kStepBits == 0) return static_cast<std::int64_t>(bucket);
  const std::size_t shift = (bucket >> kStepBits) - 1;
  const std::size_t step = bucket - (shift << kStepBits);
  return static_cast<std::int64_t>(((step + 1) << shift) - 1);
}

void TimeHistogram::Record(std::int64_t ns) {
  ns = std::max<std::int64_t>(ns, 0);
  ++counts_[BucketOf(ns)];
  ++count_;
  total_ns_ += ns;
  max_ns_ = std::max(max_ns_, ns);
}

std::int64_t TimeHistogram::Percentile(double percent) const {
  FUCINA_CHECK(percent >= 0 && percent <= 100) << percent;
  // How many times the one sought does not come before.
  const auto rank = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(
             std::ceil(static_cast<double>(count_) * percent / 100)));
  std::int64_t seen = 0;
  for (std::size_t bucket = 0; bucket + 1 < kNumBuckets; ++bucket) {
    seen += counts_[bucket];
    if (seen >= rank) return std::min(EndOf(bucket), max_ns_);
  }
  return max_ns_;
}

}  // namespace fucina
