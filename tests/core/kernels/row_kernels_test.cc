// Row kernels that no op stands in front of.

#include "fucina/kernels/row_kernels.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "fucina/kernels/kernels.h"
#include "gtest/gtest.h"

namespace fucina {
namespace {

constexpr float kFill = -std::numeric_limits<float>::infinity();

TEST(RowKernels, KeepMarkedFillsWhatHasNoBit) {
  std::mt19937 random(1);
  for (const KernelLevel level : kAllKernelLevels) {
    const Kernels* kernels = KernelsFor(level);
    if (kernels == nullptr) continue;
    for (std::int64_t n = 0; n <= 200; ++n) {
      std::vector<std::uint32_t> marks(n / 32 + 1);
      for (std::uint32_t& word : marks) {
        const std::uint32_t kind = random() % 4;
        word = kind == 0 ? 0U : kind == 1 ? 0xFFFFFFFFU : random();
      }
      // What lies behind the row stays; a NaN stays the NaN that it is.
      std::vector<float> x(n + 40);
      for (float& value : x) value = static_cast<float>(random()) - 2e9F;
      x[n / 2] = std::numeric_limits<float>::quiet_NaN();
      std::vector<float> expected = x;
      for (std::int64_t i = 0; i < n; ++i) {
        if ((marks[i / 32] >> (i % 32) & 1) == 0) expected[i] = kFill;
      }
      kernels->rows.keep_marked(marks.data(), kFill, n, x.data());
      EXPECT_EQ(
          std::memcmp(x.data(), expected.data(), x.size() * sizeof(float)), 0)
          << Name(level) << ", " << n;
    }
  }
}

}  // namespace
}  // namespace fucina
