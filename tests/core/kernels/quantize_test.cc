// Quantised rows against vectors that were made with ggml's own encoders and
// decoders (CRC-32 of whole rows), and the properties that any row must have.

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

namespace fucina {
namespace {

using Bytes = std::vector<std::uint8_t>;

// CRC-32 as in zip files.
std::uint32_t Crc32(const void* data, std::size_t size) {
  const auto* p = static_cast<const std::uint8_t*>(data);
  std::uint32_t crc = 0xffffffffu;
  for (std::size_t i = 0; i < size; ++i) {
    crc ^= p[i];
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0xedb88320u : 0u);
    }
  }
  return ~crc;
}

std::uint32_t Crc32(const Bytes& bytes) {
  return Crc32(bytes.data(), bytes.size());
}

std::uint32_t Crc32(const std::vector<float>& values) {
  return Crc32(values.data(), values.size() * sizeof(float));
}

std::string Hex(const Bytes& bytes, std::size_t count) {
  std::string hex;
  for (std::size_t i = 0; i < count; ++i) {
    const char* digits = "0123456789abcdef";
    hex += digits[bytes[i] >> 4];
    hex += digits[bytes[i] & 15];
  }
  return hex;
}

Bytes Encode(DType dtype, const std::vector<float>& x) {
  // Poisoned, so that a byte which is not written is seen.
  const auto n = static_cast<std::int64_t>(x.size());
  Bytes row(static_cast<std::size_t>(RowBytes(dtype, n)), 0xa5);
  QuantizeRow(dtype, x.data(), row.data(), n);
  return row;
}

std::vector<float> Decode(DType dtype, const Bytes& row, std::int64_t n) {
  std::vector<float> y(static_cast<std::size_t>(n),
                       std::numeric_limits<float>::quiet_NaN());
  DequantizeRow(dtype, row.data(), y.data(), n);
  return y;
}

std::vector<DType> Encodable() {
  std::vector<DType> dtypes;
  for (const DTypeTraits& traits : AllDTypes()) {
    if (CanQuantize(traits.dtype)) dtypes.push_back(traits.dtype);
  }
  return dtypes;
}

std::vector<DType> Decodable() {
  std::vector<DType> dtypes;
  for (const DTypeTraits& traits : AllDTypes()) {
    if (CanDequantize(traits.dtype)) dtypes.push_back(traits.dtype);
  }
  return dtypes;
}

// ------------------------------------------------------------ reference rows

std::vector<float> EncodingInput() {
  std::vector<float> x(256);
  for (int i = 0; i < 256; ++i) {
    x[static_cast<std::size_t>(i)] =
        static_cast<float>((i * i * 7 + i * 13 + 5) % 251 - 125) / 32.0f *
        static_cast<float>(1 + i / 32) / 8.0f;
  }
  return x;
}

TEST(Quantize, ReferenceInputIsTheOneTheVectorsWereMadeFrom) {
  const std::vector<float> x = EncodingInput();
  EXPECT_EQ(Crc32(x), 0x66a783bdu);
  EXPECT_EQ(x[0], -0.46875f);
  EXPECT_EQ(x[7], 0.24609375f);
}

struct EncodingVector {
  DType dtype;
  std::uint32_t crc;
  const char* first_bytes;
  double relative_error;  // root mean square, to 5 decimals; 0: not given
};

TEST(Quantize, EncodesTheReferenceRowByteForByte) {
  const EncodingVector kVectors[] = {
      {DType::kQ8_0, 0xc9cb63ee, "bf1b8499bced2d7cd641b840d47929e8", 0.00366},
      {DType::kQ8_1, 0x0b18a37c, "bf1bee3a8499bced2d7cd641b840d479", 0},
      {DType::kQ4_0, 0x5ef7a5d1, "b0ab0f0f0cf9d5905b04bd44db40b509", 0.06198},
      {DType::kQ4_1, 0x974b588d, "0d2c80b7f0f1f3163a6fa5fb53bb35bf", 0.05861},
      {DType::kQ5_0, 0x20439888, "b0a74fe538950f1d09e29a30b5186988", 0.03029},
      {DType::kQ5_1, 0x0e41c7ac, "d72780b7b01ac76af0e3f72d65cf4ae7", 0.02889},
      {DType::kQ2_K, 0x60814c48, "2212443355447776979788baa9ddbbff", 0.2453},
      {DType::kQ3_K, 0x52aed636, "36faee6c57cbfae3d0bbceed9b50b6f2", 0.13605},
      {DType::kQ4_K, 0xb44b49f6, "f61f882b88d0d6e188cfd7e1432257ff", 0.05508},
      {DType::kQ5_K, 0x523b6f6f, "fa1ba12b88d0d5e088d0d6e0620055ff", 0.02852},
      {DType::kQ6_K, 0x979da6d9, "52d7dfcb0b7e36104eb0553e1a7a0e95", 0.0138},
      {DType::kQ8_K, 0xf08af7de, "eff7fbbc0f0d0802faf105f809f805f1", 0},
      {DType::kIQ4_NL, 0xfa0bfa14, "a09b0f0f0df9d4a05b03bd33db30b50a", 0.06583},
      {DType::kIQ4_XS, 0xe6b485ac, "2514a50f8cfb60050f1e0df9d4a05b13", 0.0601},
      {DType::kMXFP4, 0x95a37e03, "7b7f7f7efae5b74d76de66ed67d47b5e", 0.12071},
      {DType::kTQ1_0, 0x5c3eefcc, "80807f80808080808080807f80808080", 0},
      {DType::kTQ2_0, 0x50e4e7aa, "55555555555555555555555555555555", 0},
  };
  const std::vector<float> x = EncodingInput();
  for (const EncodingVector& vector : kVectors) {
    SCOPED_TRACE(std::string(Name(vector.dtype)));
    const Bytes row = Encode(vector.dtype, x);
    EXPECT_EQ(Hex(row, 16), vector.first_bytes);
    EXPECT_EQ(Crc32(row), vector.crc);
    if (vector.relative_error == 0) continue;
    const std::vector<float> y = Decode(vector.dtype, row, 256);
    double error = 0;
    double norm = 0;
    for (std::size_t i = 0; i < 256; ++i) {
      error += (x[i] - y[i]) * static_cast<double>(x[i] - y[i]);
      norm += static_cast<double>(x[i]) * x[i];
    }
    EXPECT_NEAR(std::sqrt(error / norm), vector.relative_error, 5.01e-6);
  }
}

TEST(Quantize, EncodesActivationsAsTheReference) {
  std::vector<float> a(256);
  for (int i = 0; i < 256; ++i) {
    a[static_cast<std::size_t>(i)] =
        static_cast<float>((31 * i + 7) % 127 - 63) / 16.0f;
  }
  EXPECT_EQ(Crc32(a), 0x52404994u);
  const Bytes q8k = Encode(DType::kQ8_K, a);
  EXPECT_EQ(Crc32(q8k), 0x715617f1u);
  float d;
  std::memcpy(&d, q8k.data(), sizeof(d));
  EXPECT_EQ(d, -0.0310039371f);
  EXPECT_EQ(Crc32(Encode(DType::kQ8_0, a)), 0x62b97d5eu);
  EXPECT_EQ(Crc32(Encode(DType::kQ8_1, a)), 0x61b0069cu);
}

// -------------------------------------------------------- reference decodings

// Byte i is (73 i + 19) mod 256, but for the scale fields of every block.
Bytes DecodingRow(DType dtype) {
  Bytes row(static_cast<std::size_t>(RowBytes(dtype, 256)));
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = static_cast<std::uint8_t>((73 * i + 19) & 255);
  }
  struct Scales {
    DType dtype;
    int d;     // offset of the f16 scale
    int dmin;  // offset of the second one, -1 for none
  };
  constexpr Scales kScales[] = {
      {DType::kQ4_0, 0, -1},    {DType::kQ4_1, 0, 2},
      {DType::kQ5_0, 0, -1},    {DType::kQ5_1, 0, 2},
      {DType::kQ8_0, 0, -1},    {DType::kQ2_K, 80, 82},
      {DType::kQ3_K, 108, -1},  {DType::kQ4_K, 0, 2},
      {DType::kQ5_K, 0, 2},     {DType::kQ6_K, 208, -1},
      {DType::kIQ2_XXS, 0, -1}, {DType::kIQ2_XS, 0, -1},
      {DType::kIQ2_S, 0, -1},   {DType::kIQ3_XXS, 0, -1},
      {DType::kIQ3_S, 0, -1},   {DType::kIQ1_S, 0, -1},
      {DType::kIQ4_NL, 0, -1},  {DType::kIQ4_XS, 0, -1},
      {DType::kTQ1_0, 52, -1},  {DType::kTQ2_0, 64, -1},
  };
  const std::size_t block = static_cast<std::size_t>(Traits(dtype).block_bytes);
  for (std::size_t at = 0; at < row.size(); at += block) {
    for (const Scales& scales : kScales) {
      if (scales.dtype != dtype) continue;
      row[at + static_cast<std::size_t>(scales.d)] = 0;
      row[at + static_cast<std::size_t>(scales.d) + 1] = 0x2c;
      if (scales.dmin >= 0) {
        row[at + static_cast<std::size_t>(scales.dmin)] = 0;
        row[at + static_cast<std::size_t>(scales.dmin) + 1] = 0x28;
      }
    }
    if (dtype == DType::kMXFP4) row[at] = 124;
    if (dtype == DType::kIQ1_M) {
      constexpr std::uint8_t kNibbles[4] = {0x00, 0x00, 0xc0, 0x20};
      for (std::size_t s = 0; s < 4; ++s) {
        std::uint8_t& byte = row[at + 49 + 2 * s];
        byte = static_cast<std::uint8_t>((byte & 15) | kNibbles[s]);
      }
    }
  }
  return row;
}

struct DecodingVector {
  DType dtype;
  std::uint32_t row_crc;
  std::uint32_t decoded_crc;
  float first[4];
  float last;
};

TEST(Quantize, DecodesTheReferenceRowsBitForBit) {
  const DecodingVector kVectors[] = {
      {DType::kQ4_0,
       0xa1f32bea,
       0x38f575f2,
       {-0.1875f, 0.375f, -0.0625f, -0.5f},
       0.3125f},
      {DType::kQ4_1,
       0x448c82c3,
       0x78f7e5a6,
       {0.46875f, 0.03125f, 0.59375f, 0.15625f},
       0.40625f},
      {DType::kQ5_0,
       0x67a50496,
       0x3f42cf6c,
       {0.5625f, -0.875f, 0.6875f, -0.75f},
       -0.0625f},
      {DType::kQ5_1,
       0x0d439286,
       0x429a494a,
       {1.71875f, 1.28125f, 1.84375f, 0.40625f},
       1.53125f},
      {DType::kQ8_0,
       0xdc110bed,
       0xdc855168,
       {-5.6875f, -1.125f, 3.4375f, -8.0f},
       5.625f},
      {DType::kQ2_K,
       0x7b64804e,
       0x0301bdc1,
       {0.53125f, -0.03125f, 0.15625f, 0.34375f},
       1.09375f},
      {DType::kQ3_K,
       0xdee29946,
       0x1014b398,
       {3.5625f, -4.75f, 1.1875f, -2.375f},
       0.0f},
      {DType::kQ4_K,
       0xfd61a565,
       0xe7c83eb8,
       {9.46875f, 40.40625f, 16.34375f, 47.28125f},
       7.96875f},
      {DType::kQ5_K,
       0xcbb9be03,
       0x1d03eb21,
       {64.46875f, 40.40625f, 71.34375f, 47.28125f},
       9.21875f},
      {DType::kQ6_K,
       0xac8167b3,
       0x40e9c8ad,
       {-53.4375f, 56.25f, 30.9375f, -39.375f},
       6.5f},
      {DType::kIQ2_XXS,
       0x549a442d,
       0xb66b3dd3,
       {-1.3125f, 1.3125f, 4.1015625f, -1.3125f},
       -1.1875f},
      {DType::kIQ2_XS,
       0x4a19d928,
       0xb6dc2717,
       {-0.6875f, -2.1484375f, -2.1484375f, 3.6953125f},
       1.8125f},
      {DType::kIQ2_S,
       0xb5e9127d,
       0xf7eccbde,
       {-5.2734375f, 9.0703125f, -1.6875f, 1.6875f},
       -1.6796875f},
      {DType::kIQ3_XXS,
       0x53c61002,
       0x3d0ade36,
       {-1.5625f, 1.5625f, -17.1875f, 10.9375f},
       10.0625f},
      {DType::kIQ3_S,
       0xb90c006d,
       0xeaa0027c,
       {-11.8125f, 8.4375f, -8.4375f, -18.5625f},
       3.4375f},
      {DType::kIQ1_S,
       0x5182335a,
       0xa98041b4,
       {-0.0546875f, 0.0703125f, -0.0546875f, 0.0703125f},
       0.0703125f},
      {DType::kIQ1_M,
       0xdd2793ac,
       0xca95c1c5,
       {0.0546875f, 0.0546875f, 0.0546875f, 0.4921875f},
       0.2109375f},
      {DType::kIQ4_NL,
       0xa1f32bea,
       0xcba262a1,
       {-2.1875f, 5.5625f, -0.625f, -7.9375f},
       4.3125f},
      {DType::kIQ4_XS,
       0x9b66d3ed,
       0x9d42ef0a,
       {-21.375f, 27.5625f, -38.8125f, 12.375f},
       13.8125f},
      {DType::kMXFP4,
       0xb39fd207,
       0xfefd19ca,
       {-0.25f, 0.375f, -0.5f, 0.75f},
       -0.0625f},
      {DType::kTQ1_0,
       0xa03dc865,
       0xa9a4a285,
       {-0.0625f, 0.0f, 0.0f, 0.0625f},
       0.0f},
      {DType::kTQ2_0,
       0x6052c5e3,
       0x1b7527d7,
       {0.125f, -0.0625f, 0.0f, 0.0625f},
       -0.0625f},
  };
  for (const DecodingVector& vector : kVectors) {
    SCOPED_TRACE(std::string(Name(vector.dtype)));
    const Bytes row = DecodingRow(vector.dtype);
    ASSERT_EQ(Crc32(row), vector.row_crc);
    const std::vector<float> y = Decode(vector.dtype, row, 256);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(y[i], vector.first[i]) << i;
    EXPECT_EQ(y[255], vector.last);
    EXPECT_EQ(Crc32(y), vector.decoded_crc);
  }
}

// -------------------------------------------------------------- lattice tables

// Every grid entry, read back through a format that uses it with a factor of
// one and no signs: elements as signed bytes, entry after entry.
struct Grid {
  DType dtype;
  int entries;
  int elements;         // per entry
  std::uint16_t d_f16;  // makes the factor one
  std::uint32_t crc;    // of the expanded table
};

Bytes BlockOfEntries(const Grid& grid, int first) {
  Bytes block(static_cast<std::size_t>(Traits(grid.dtype).block_bytes), 0);
  std::memcpy(block.data(), &grid.d_f16, sizeof(grid.d_f16));
  const int count = 256 / grid.elements;
  for (int k = 0; k < count; ++k) {
    const int index = first + k;
    const auto low = static_cast<std::uint8_t>(index & 255);
    const int high = index >> 8;
    const std::size_t at = static_cast<std::size_t>(k);
    switch (grid.dtype) {
      case DType::kIQ2_XXS:  // four indices, then four bytes of signs and scale
        block[2 + at / 4 * 8 + at % 4] = low;
        break;
      case DType::kIQ2_XS:
        block[2 + 2 * at] = low;
        block[3 + 2 * at] = static_cast<std::uint8_t>(high);
        break;
      case DType::kIQ2_S:
        block[2 + at] = low;
        block[66 + at / 4] |= static_cast<std::uint8_t>(high << (2 * (k % 4)));
        break;
      case DType::kIQ3_XXS:
        block[2 + at] = low;
        break;
      case DType::kIQ3_S:
        block[2 + at] = low;
        block[66 + at / 8] |= static_cast<std::uint8_t>(high << (k % 8));
        break;
      default: {  // IQ1_S
        block[2 + at] = low;
        std::uint16_t qh;
        std::memcpy(&qh, block.data() + 34 + at / 4 * 2, sizeof(qh));
        qh = static_cast<std::uint16_t>(qh | high << (3 * (k % 4)));
        std::memcpy(block.data() + 34 + at / 4 * 2, &qh, sizeof(qh));
        break;
      }
    }
  }
  return block;
}

TEST(Quantize, LatticeTablesHaveTheReferenceDigests) {
  const Grid kGrids[] = {
      {DType::kIQ2_XXS, 256, 8, FloatToF16(8), 0x9924ff02},
      {DType::kIQ2_XS, 512, 8, FloatToF16(8), 0xfa1e1bfd},
      {DType::kIQ2_S, 1024, 8, FloatToF16(8), 0x25ae5bf1},
      {DType::kIQ3_XXS, 256, 4, FloatToF16(4), 0x07ba9ed0},
      {DType::kIQ3_S, 512, 4, FloatToF16(1), 0xf576e4f3},
      {DType::kIQ1_S, 2048, 8, FloatToF16(1), 0xb85e6ccf},
  };
  for (const Grid& grid : kGrids) {
    SCOPED_TRACE(std::string(Name(grid.dtype)));
    Bytes table;
    const int per_block = 256 / grid.elements;
    for (int first = 0; first < grid.entries; first += per_block) {
      const Bytes block = BlockOfEntries(grid, first);
      // IQ1_S adds 1/8 to every element.
      const float shift = grid.dtype == DType::kIQ1_S ? 0.125f : 0.0f;
      for (float y : Decode(grid.dtype, block, 256)) {
        table.push_back(static_cast<std::uint8_t>(static_cast<int>(y - shift)));
      }
    }
    EXPECT_EQ(Crc32(table), grid.crc);
  }
}

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
