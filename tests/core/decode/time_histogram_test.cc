#include "fucina/decode/time_histogram.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"

namespace fucina {
namespace {

// Masks are recorded while a reply is written: nothing that could allocate.
static_assert(std::is_trivially_copyable_v<TimeHistogram>);

constexpr double kPercents[] = {0, 1, 25, 50, 90, 99, 99.9, 100};

// The nearest rank, by sorting.
std::int64_t Exact(std::vector<std::int64_t> times, double percent) {
  std::sort(times.begin(), times.end());
  const double rank =
      std::ceil(static_cast<double>(times.size()) * percent / 100);
  return times[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
}

void ExpectNear(const TimeHistogram& histogram,
                const std::vector<std::int64_t>& times) {
  for (const double percent : kPercents) {
    const std::int64_t exact = Exact(times, percent);
    const std::int64_t found = histogram.Percentile(percent);
    EXPECT_GE(found, exact) << percent;
    EXPECT_LE(found, exact + exact / 8) << percent;
  }
}

TEST(TimeHistogram, IsWithinABucketOfTheExactPercentile) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    // From few equal times to many over twelve decades.
    std::uniform_real_distribution<double> exponent(
        0, static_cast<double>(seed % 12 + 1));
    const std::size_t count = 1 + random() % (seed % 2 == 0 ? 20 : 3000);
    TimeHistogram histogram;
    std::vector<std::int64_t> times;
    double total = 0;
    while (times.size() < count) {
      times.push_back(
          static_cast<std::int64_t>(std::pow(10.0, exponent(random))));
      total += static_cast<double>(times.back());
      histogram.Record(times.back());
    }
    ExpectNear(histogram, times);
    EXPECT_EQ(histogram.count(), static_cast<std::int64_t>(count));
    EXPECT_EQ(histogram.max_ns(), *std::max_element(times.begin(), times.end()))
        << seed;
    EXPECT_DOUBLE_EQ(histogram.mean_ns(), total / static_cast<double>(count));
    EXPECT_EQ(histogram.Percentile(100), histogram.max_ns());
  }
}

// Each edge of a bucket and its neighbours, alone and below a longer time so
// that the longest one does not answer.
TEST(TimeHistogram, EveryBucketIsANarrowOne) {
  for (int bits = 0; bits < 39; ++bits) {
    for (std::int64_t step = 8; step < 16; ++step) {
      for (const std::int64_t near : {-1, 0, 1}) {
        const std::int64_t ns = ((std::int64_t{1} << bits) * step >> 3) + near;
        if (ns < 0) continue;
        TimeHistogram alone;
        alone.Record(ns);
        EXPECT_EQ(alone.Percentile(50), ns);
        TimeHistogram two;
        two.Record(ns);
        two.Record(std::int64_t{1} << 41);
        EXPECT_GE(two.Percentile(50), ns);
        EXPECT_LE(two.Percentile(50), ns < 16 ? ns : ns + ns / 8);
      }
    }
  }
}

TEST(TimeHistogram, TakesAnyTime) {
  TimeHistogram histogram;
  for (const double percent : kPercents) {
    EXPECT_EQ(histogram.Percentile(percent), 0);
  }
  EXPECT_EQ(histogram.mean_ns(), 0);
  histogram.Record(-5);
  EXPECT_EQ(histogram.Percentile(100), 0);
  const std::int64_t hour = 3'600'000'000'000;
  histogram.Record(hour);
  EXPECT_EQ(histogram.Percentile(50), 0);
  EXPECT_EQ(histogram.Percentile(99), hour);
  EXPECT_EQ(histogram.max_ns(), hour);
}

TEST(TimeHistogramDeathTest, APercentIsOneOfAHundred) {
  const TimeHistogram histogram;
  EXPECT_DEATH(histogram.Percentile(-1), "percent");
  EXPECT_DEATH(histogram.Percentile(100.5), "percent");
}

}  // namespace
}  // namespace fucina
