// Properties that quantised rows must have whatever the input: zeros, huge,
// tiny and odd values, round trips, validation, alignment.

#include "fucina/kernels/quantize.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "fucina/kernels/f16.h"
#include "fucina/tensor/blocks.h"
#include "fucina/tensor/dtype.h"
#include "gtest/gtest.h"
#include "tests/core/kernels/quantized_rows.h"

namespace fucina {
namespace {

// ----------------------------------------------------------- which types work

TEST(Quantize, DecodesEveryWeightTypeAndNoDataType) {
  for (const DTypeTraits& traits : AllDTypes()) {
    EXPECT_EQ(CanDequantize(traits.dtype), traits.use != DTypeUse::kData)
        << traits.name;
  }
}

TEST(Quantize, EncodesAllButTheCalibratedTypes) {
  for (const DTypeTraits& traits : AllDTypes()) {
    bool calibrated = false;
    for (const char* prefix : {"iq1", "iq2", "iq3"}) {
      calibrated = calibrated || traits.name.substr(0, 3) == prefix;
    }
    EXPECT_EQ(CanQuantize(traits.dtype),
              traits.use != DTypeUse::kData && !calibrated)
        << traits.name;
  }
}

// ------------------------------------------------------------------ odd input

TEST(Quantize, ZeroRowsEncodeToZeros) {
  const std::vector<float> zeros(512, 0.0f);
  for (DType dtype : Encodable()) {
    SCOPED_TRACE(std::string(Name(dtype)));
    const Bytes row = Encode(dtype, zeros);
    EXPECT_EQ(FindInvalidBlock(dtype, row.data(), 512), -1);
    for (float y : Decode(dtype, row, 512)) ASSERT_EQ(y, 0.0f);
  }
}

TEST(Quantize, AZeroIq4BlockHasTheCodesOfZero) {
  const Bytes row = Encode(DType::kIQ4_NL, std::vector<float>(32, 0.0f));
  EXPECT_EQ(Hex(row, 18), "000088888888888888888888888888888888");
}

// One element dwarfs the rest: it must come back within the format's step, and
// nothing may become NaN.
TEST(Quantize, OneHugeElementSurvives) {
  for (DType dtype : Encodable()) {
    SCOPED_TRACE(std::string(Name(dtype)));
    for (std::size_t where : {0u, 100u, 255u}) {
      for (float huge : {1000.0f, -1000.0f}) {
        std::vector<float> x(256, 0.001f);
        x[where] = huge;
        const Bytes row = Encode(dtype, x);
        ASSERT_EQ(FindInvalidBlock(dtype, row.data(), 256), -1);
        const std::vector<float> y = Decode(dtype, row, 256);
        // MXFP4's largest code is 6 of a power-of-two scale that reaches 8.
        EXPECT_NEAR(y[where], huge, dtype == DType::kMXFP4 ? 250 : 40);
        for (float v : y) ASSERT_TRUE(std::isfinite(v));
      }
    }
  }
}

TEST(Quantize, SubnormalRowsStayFinite) {
  std::vector<float> x(256);
  for (std::size_t i = 0; i < 256; ++i) {
    x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i * 37 + 1)) *
           (i % 2 == 0 ? 1.0f : -1.0f);
  }
  for (DType dtype : Encodable()) {
    SCOPED_TRACE(std::string(Name(dtype)));
    const Bytes row = Encode(dtype, x);
    EXPECT_EQ(FindInvalidBlock(dtype, row.data(), 256), -1);
    for (float y : Decode(dtype, row, 256)) {
      ASSERT_TRUE(std::abs(y) < 1e-37f) << y;
    }
  }
}

TEST(Quantize, EqualValuesStayEqual) {
  for (DType dtype : Encodable()) {
    SCOPED_TRACE(std::string(Name(dtype)));
    for (float value : {1.0f, -1.0f, 0.375f}) {
      const std::vector<float> y =
          Decode(dtype, Encode(dtype, std::vector<float>(256, value)), 256);
      for (float v : y) {
        ASSERT_EQ(v, y[0]);
        ASSERT_NEAR(v, value, 0.04f);
      }
    }
  }
}

TEST(Quantize, InputThatIsNotFiniteNeitherTrapsNorHides) {
  for (float odd : {std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity(),
                    std::numeric_limits<float>::quiet_NaN(),
                    std::numeric_limits<float>::max()}) {
    std::vector<float> x(256, 0.5f);
    x[7] = odd;
    for (DType dtype : Encodable()) {
      SCOPED_TRACE(std::string(Name(dtype)));
      Decode(dtype, Encode(dtype, x), 256);
    }
  }
  std::vector<float> x(32, 1e9f);  // too large for an f16 scale
  const Bytes row = Encode(DType::kQ8_0, x);
  EXPECT_EQ(FindInvalidBlock(DType::kQ8_0, row.data(), 32), 0);
}

// --------------------------------------------------------------- round trips

TEST(Quantize, RoundTripErrorIsWithinHalfAStep) {
  std::mt19937 rng(7);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 50; ++round) {
    std::vector<float> x(256);
    for (float& v : x)
      v = normal(rng) * std::exp2(static_cast<float>(round % 9) - 6.0f);
    for (DType dtype : Encodable()) {
      SCOPED_TRACE(std::string(Name(dtype)));
      const std::vector<float> y = Decode(dtype, Encode(dtype, x), 256);
      for (std::size_t first = 0; first < 256; first += 32) {
        float max = 0;
        for (std::size_t j = 0; j < 32; ++j) {
          max = std::fmax(max, std::fabs(x[first + j]));
        }
        float block_max = 0;
        for (float v : x) block_max = std::fmax(block_max, std::fabs(v));
        float bound;  // of one element's error
        switch (dtype) {
          case DType::kF32:
            bound = 0;
            break;
          case DType::kF16:
            bound = max * 0x1p-11f;
            break;
          case DType::kBF16:
            bound = max * 0x1p-8f;
            break;
          case DType::kQ8_0:
          case DType::kQ8_1:
            bound = max / 254.0f + max * 1e-3f;
            break;
          case DType::kQ8_K:
            bound = block_max / 254.0f * 1.001f;
            break;
          case DType::kQ4_0:  // the side without the maximum ends a step short
            bound = max / 8.0f * 1.002f;
            break;
          case DType::kQ5_0:
            bound = max / 16.0f * 1.002f;
            break;
          case DType::kQ4_1:
            bound = max / 15.0f * 1.01f;
            break;
          case DType::kQ5_1:
            bound = max / 31.0f * 1.02f;
            break;
          case DType::kMXFP4:
            bound = max / 4.0f * 1.001f;
            break;
          case DType::kTQ1_0:
          case DType::kTQ2_0:
            bound = block_max / 2.0f * 1.001f;
            break;
          case DType::kQ6_K:
            bound = max / 16.0f;
            break;
          case DType::kQ5_K:
            bound = max / 10.0f;
            break;
          default:  // searches that trade the largest error for the mean
            bound = block_max;
            break;
        }
        for (std::size_t j = 0; j < 32; ++j) {
          ASSERT_LE(std::fabs(x[first + j] - y[first + j]), bound)
              << "element " << first + j << " of " << x[first + j];
        }
      }
    }
  }
}

// ----------------------------------------------------------------- validation

TEST(Quantize, RandomRowsWithFiniteScalesAreValid) {
  for (DType dtype : Decodable()) {
    SCOPED_TRACE(std::string(Name(dtype)));
    if (Traits(dtype).block_size == 1 || dtype == DType::kQ8_1 ||
        dtype == DType::kQ8_K) {
      continue;
    }
    const Bytes row = DecodingRow(dtype);
    EXPECT_EQ(FindInvalidBlock(dtype, row.data(), 256), -1);
    for (float y : Decode(dtype, row, 256)) ASSERT_TRUE(std::isfinite(y));
  }
}

TEST(Quantize, FindsTheFirstBlockWhoseScaleIsNotFinite) {
  struct Field {
    DType dtype;
    int offset;
  };
  constexpr Field kF16Fields[] = {
      {DType::kQ4_0, 0},   {DType::kQ4_1, 0},   {DType::kQ4_1, 2},
      {DType::kQ5_0, 0},   {DType::kQ5_1, 0},   {DType::kQ5_1, 2},
      {DType::kQ8_0, 0},   {DType::kQ8_1, 0},   {DType::kQ8_1, 2},
      {DType::kQ2_K, 80},  {DType::kQ2_K, 82},  {DType::kQ3_K, 108},
      {DType::kQ4_K, 0},   {DType::kQ4_K, 2},   {DType::kQ5_K, 0},
      {DType::kQ5_K, 2},   {DType::kQ6_K, 208}, {DType::kIQ2_XXS, 0},
      {DType::kIQ2_XS, 0}, {DType::kIQ2_S, 0},  {DType::kIQ3_XXS, 0},
      {DType::kIQ3_S, 0},  {DType::kIQ1_S, 0},  {DType::kIQ4_NL, 0},
      {DType::kIQ4_XS, 0}, {DType::kTQ1_0, 52}, {DType::kTQ2_0, 64},
      {DType::kF16, 0},
  };
  for (const Field& field : kF16Fields) {
    SCOPED_TRACE(std::string(Name(field.dtype)));
    const DTypeTraits& traits = Traits(field.dtype);
    for (std::uint16_t bits : {0x7c00, 0xfc00, 0x7c01, 0xfe00}) {
      Bytes rows(static_cast<std::size_t>(4 * traits.block_bytes), 0);
      const std::int64_t n = 4 * traits.block_size;
      EXPECT_EQ(FindInvalidBlock(field.dtype, rows.data(), n), -1);
      for (int block : {3, 2}) {
        std::memcpy(rows.data() + block * traits.block_bytes + field.offset,
                    &bits, sizeof(bits));
        EXPECT_EQ(FindInvalidBlock(field.dtype, rows.data(), n), block);
      }
    }
  }
}

TEST(Quantize, FindsOddScalesOfTheOtherKinds) {
  Bytes mxfp4(34, 0);
  EXPECT_EQ(FindInvalidBlock(DType::kMXFP4, mxfp4.data(), 64), -1);
  mxfp4[17] = 254;
  EXPECT_EQ(FindInvalidBlock(DType::kMXFP4, mxfp4.data(), 64), -1);
  mxfp4[17] = 255;
  EXPECT_EQ(FindInvalidBlock(DType::kMXFP4, mxfp4.data(), 64), 1);

  Bytes iq1m(112, 0);
  EXPECT_EQ(FindInvalidBlock(DType::kIQ1_M, iq1m.data(), 512), -1);
  iq1m[56 + 55] = 0x70;  // exponent bits of the assembled scale
  iq1m[56 + 53] = 0xc0;
  EXPECT_EQ(FindInvalidBlock(DType::kIQ1_M, iq1m.data(), 512), 1);

  for (float odd : {std::numeric_limits<float>::infinity(),
                    std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> f32 = {1.0f, -2.0f, odd, 0.0f};
    EXPECT_EQ(FindInvalidBlock(DType::kF32, f32.data(), 2), -1);
    EXPECT_EQ(FindInvalidBlock(DType::kF32, f32.data(), 4), 2);
    BlockQ8_K q8k = {};
    q8k.d = odd;
    EXPECT_EQ(FindInvalidBlock(DType::kQ8_K, &q8k, 256), 0);
    const std::uint16_t bf16[2] = {0x3f80, FloatToBF16(odd)};
    EXPECT_EQ(FindInvalidBlock(DType::kBF16, bf16, 2), 1);
  }
}

TEST(Quantize, AnMxfp4ExponentOfNanDecodesToNan) {
  Bytes block(17, 0x11);
  block[0] = 255;
  for (float y : Decode(DType::kMXFP4, block, 32)) {
    EXPECT_TRUE(std::isnan(y));
  }
}

TEST(Quantize, RowsMayStartAtAnyAddress) {
  for (DType dtype : Decodable()) {
    SCOPED_TRACE(std::string(Name(dtype)));
    if (Traits(dtype).block_size == 1) continue;
    Bytes row = dtype == DType::kQ8_1 || dtype == DType::kQ8_K
                    ? Encode(dtype, EncodingInput())
                    : DecodingRow(dtype);
    const std::vector<float> expected = Decode(dtype, row, 256);
    row.insert(row.begin(), 0);
    std::vector<float> y(256);
    DequantizeRow(dtype, row.data() + 1, y.data(), 256);
    EXPECT_EQ(Crc32(y), Crc32(expected));
  }
}

}  // namespace
}  // namespace fucina
