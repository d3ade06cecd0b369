#include "fucina/kernels/pack_kernels.h"

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "fucina/kernels/kernels.h"
#include "fucina/tensor/dtype.h"
#include "gtest/gtest.h"

namespace fucina {
namespace {

// Rows of random bytes, a little apart and at odd addresses: packing moves bits
// and has no values that it may not meet.
struct RandomRows {
  std::vector<std::uint8_t> bytes;
  std::array<const void*, kStripRows> pointers = {};

  RandomRows(DType dtype, std::int64_t k, int num_rows, std::mt19937& random) {
    const auto stride = static_cast<std::size_t>(RowBytes(dtype, k)) + 6;
    bytes.resize(1 + stride * kStripRows);
    for (std::uint8_t& byte : bytes) {
      byte = static_cast<std::uint8_t>(random());
    }
    for (int row = 0; row < num_rows; ++row) {
      pointers[static_cast<std::size_t>(row)] =
          bytes.data() + 1 + stride * static_cast<std::size_t>(row);
    }
  }
};

// A strip and a margin that must stay as it is.
std::vector<std::uint8_t> Packed(PackStripFn pack, DType dtype,
                                 const RandomRows& rows, std::int64_t k) {
  std::vector<std::uint8_t> strip(
      static_cast<std::size_t>(StripBytes(PanelFormatOf(dtype), k)) + 64, 0xA5);
  pack(dtype, rows.pointers.data(), k, strip.data());
  return strip;
}

TEST(PackStrip, EveryLevelWritesTheBytesOfTheScalarOne) {
  std::mt19937 random(1);
  const PackStripFn scalar = PackStripFor(KernelLevel::kScalar);
  for (const KernelLevel level : kAllKernelLevels) {
    if (KernelsFor(level) == nullptr) continue;
    const PackStripFn pack = PackStripFor(level);
    for (const DTypeTraits& traits : AllDTypes()) {
      if (traits.use != DTypeUse::kWeight) continue;
      const DType dtype = traits.dtype;
      for (const std::int64_t blocks : {1, 2, 3, 7, 33}) {
        // Types without blocks meet every remainder of a vector this way.
        const std::int64_t k = blocks * traits.block_size;
        for (const int num_rows : {kStripRows, 0, 1, 17, kStripRows}) {
          const RandomRows rows(dtype, k, num_rows, random);
          const std::vector<std::uint8_t> strip = Packed(pack, dtype, rows, k);
          ASSERT_EQ(strip, Packed(scalar, dtype, rows, k))
              << Name(level) << " " << Name(dtype) << " k " << k << ", "
              << num_rows << " rows";
          ASSERT_EQ(strip.back(), 0xA5);
        }
      }
    }
  }
}

TEST(PackStrip, TakesTheBestLevelByItself) {
  std::mt19937 random(2);
  const RandomRows rows(DType::kQ4_K, 512, kStripRows, random);
  EXPECT_EQ(Packed(PackStrip, DType::kQ4_K, rows, 512),
            Packed(PackStripFor(BestKernelLevel()), DType::kQ4_K, rows, 512));
}

}  // namespace
}  // namespace fucina
