#ifndef FUCINA_DECODE_TIME_HISTOGRAM_H_
#define FUCINA_DECODE_TIME_HISTOGRAM_H_

// Percentiles of times without keeping the times: buckets of logarithmic width,
// eight to a doubling. Of a fixed size; recording never allocates.

#include <array>
#include <cstddef>
#include <cstdint>

#include "fucina/export.h"

namespace fucina {

class FUCINA_API TimeHistogram {
 public:
  // A negative time counts as 0.
  void Record(std::int64_t ns);

  // The smallest time that `percent` of the recorded ones do not exceed, ns: at
  // least that, and at most an eighth above it. Exact below 16 ns and for the
  // longest time. 0 without times. REQUIRES: 0 <= percent <= 100.
  std::int64_t Percentile(double percent) const;

  std::int64_t count() const { return count_; }
  std::int64_t max_ns() const { return max_ns_; }
  double mean_ns() const {  // 0 without times
    return count_ == 0
               ? 0
               : static_cast<double>(total_ns_) / static_cast<double>(count_);
  }

 private:
  static constexpr int kStepBits = 3;  // 8 buckets to a doubling
  // Times from 2^40 ns (18 minutes) on share the last bucket.
  static constexpr int kMaxBits = 40;
  static constexpr std::size_t kNumBuckets =
      static_cast<std::size_t>(kMaxBits - kStepBits + 1) << kStepBits;

  static std::size_t BucketOf(std::int64_t ns);
  // The longest time of a bucket.
  static std::int64_t EndOf(std::size_t bucket);

  std::array<std::uint32_t, kNumBuckets> counts_ = {};
  std::int64_t count_ = 0;
  std::int64_t total_ns_ = 0;
  std::int64_t max_ns_ = 0;
};

}  // namespace fucina

#endif  // FUCINA_DECODE_TIME_HISTOGRAM_H_
