// Quantised rows against vectors that were made with ggml's own encoders and
// decoders: CRC-32 of whole rows.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "fucina/kernels/f16.h"
#include "fucina/kernels/quantize.h"
#include "fucina/tensor/dtype.h"
#include "gtest/gtest.h"
#include "tests/core/kernels/quantized_rows.h"

namespace fucina {
namespace {

// ------------------------------------------------------------ reference rows

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

}  // namespace
}  // namespace fucina
