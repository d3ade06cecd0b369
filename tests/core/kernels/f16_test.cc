// Short floats: every code, and rounding checked against f64 arithmetic.

#include "fucina/kernels/f16.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace fucina {
namespace {

// The value of a binary16 number by its definition.
double F16Value(int bits) {
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(F16, EveryFiniteCodeDecodesToItsValueAndBack) {
  for (int bits = 0; bits < 65536; ++bits) {
    const auto code = static_cast<std::uint16_t>(bits);
    const float value = F16ToFloat(code);
    if ((bits & 0x7c00) == 0x7c00) {
      if ((bits & 0x3ff) == 0) {
        EXPECT_TRUE(std::isinf(value));
        EXPECT_EQ(FloatToF16(value), code);
      } else {
        EXPECT_TRUE(std::isnan(value));
        EXPECT_EQ(FloatToF16(value), code | 0x200);
      }
      EXPECT_EQ(std::signbit(value), (bits & 0x8000) != 0);
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), F16Value(bits)) << bits;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0);
    ASSERT_EQ(FloatToF16(value), code);
  }
}

// Between two neighbours: below, at and above the middle.
TEST(F16, RoundsToNearestWithTiesToEven) {
  for (int bits = 0; bits < 0x7c00; ++bits) {
    const double lower = F16Value(bits);
    const double upper = bits == 0x7bff ? 65536.0 : F16Value(bits + 1);
    const float middle = static_cast<float>((lower + upper) / 2);  // exact
    const int even = (bits & 1) == 0 ? bits : bits + 1;
    ASSERT_EQ(FloatToF16(middle), even) << bits;
    ASSERT_EQ(FloatToF16(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(FloatToF16(std::nextafter(middle, 1e9f)), bits + 1);
    ASSERT_EQ(FloatToF16(-middle), even | 0x8000);
  }
}

TEST(F16, OverflowsToInfinityFrom65520) {
  EXPECT_EQ(FloatToF16(65519.996f), 0x7bff);
  EXPECT_EQ(FloatToF16(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToF16(-1e30f), 0xfc00);
  EXPECT_EQ(FloatToF16(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(BF16, IsTheUpperHalfRoundedToEven) {
  for (int bits = 0; bits < 65536; ++bits) {
    const auto code = static_cast<std::uint16_t>(bits);
    const float value = BF16ToFloat(code);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value) >> 16, code);
    const bool nan = std::isnan(value);
    ASSERT_EQ(FloatToBF16(value), nan ? code | 64 : code);
  }
  EXPECT_EQ(FloatToBF16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // tie
  EXPECT_EQ(FloatToBF16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(FloatToBF16(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // tie
  EXPECT_EQ(FloatToBF16(std::bit_cast<float>(0x7f7fffffu)), 0x7f80);
  // A payload in the lower half alone must not turn into infinity.
  EXPECT_EQ(FloatToBF16(std::bit_cast<float>(0x7f800001u)), 0x7fc0);
}

TEST(E8M0, IsHalfAPowerOfTwo) {
  for (int e = 0; e < 255; ++e) {
    ASSERT_EQ(
        static_cast<double>(E8M0HalfToFloat(static_cast<std::uint8_t>(e))),
        std::ldexp(1.0, e - 128));
  }
  EXPECT_TRUE(std::isnan(E8M0HalfToFloat(255)));
}

}  // namespace
}  // namespace fucina
