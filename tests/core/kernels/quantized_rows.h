#ifndef FUCINA_TESTS_CORE_KERNELS_QUANTIZED_ROWS_H_
#define FUCINA_TESTS_CORE_KERNELS_QUANTIZED_ROWS_H_

// Rows that the tests of the quantisers share, and their checksums.

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "fucina/kernels/quantize.h"
#include "fucina/tensor/dtype.h"

namespace fucina {

using Bytes = std::vector<std::uint8_t>;

// CRC-32 as in zip files.
inline std::uint32_t Crc32(const void* data, std::size_t size) {
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

inline std::uint32_t Crc32(const Bytes& bytes) {
  return Crc32(bytes.data(), bytes.size());
}

inline std::uint32_t Crc32(const std::vector<float>& values) {
  return Crc32(values.data(), values.size() * sizeof(float));
}

inline std::string Hex(const Bytes& bytes, std::size_t count) {
  std::string hex;
  for (std::size_t i = 0; i < count; ++i) {
    const char* digits = "0123456789abcdef";
    hex += digits[bytes[i] >> 4];
    hex += digits[bytes[i] & 15];
  }
  return hex;
}

inline Bytes Encode(DType dtype, const std::vector<float>& x) {
  // Poisoned, so that a byte which is not written is seen.
  const auto n = static_cast<std::int64_t>(x.size());
  Bytes row(static_cast<std::size_t>(RowBytes(dtype, n)), 0xa5);
  QuantizeRow(dtype, x.data(), row.data(), n);
  return row;
}

inline std::vector<float> Decode(DType dtype, const Bytes& row,
                                 std::int64_t n) {
  std::vector<float> y(static_cast<std::size_t>(n),
                       std::numeric_limits<float>::quiet_NaN());
  DequantizeRow(dtype, row.data(), y.data(), n);
  return y;
}

inline std::vector<DType> Encodable() {
  std::vector<DType> dtypes;
  for (const DTypeTraits& traits : AllDTypes()) {
    if (CanQuantize(traits.dtype)) dtypes.push_back(traits.dtype);
  }
  return dtypes;
}

inline std::vector<DType> Decodable() {
  std::vector<DType> dtypes;
  for (const DTypeTraits& traits : AllDTypes()) {
    if (CanDequantize(traits.dtype)) dtypes.push_back(traits.dtype);
  }
  return dtypes;
}

// The row that the encoding vectors were made from.
inline std::vector<float> EncodingInput() {
  std::vector<float> x(256);
  for (int i = 0; i < 256; ++i) {
    x[static_cast<std::size_t>(i)] =
        static_cast<float>((i * i * 7 + i * 13 + 5) % 251 - 125) / 32.0f *
        static_cast<float>(1 + i / 32) / 8.0f;
  }
  return x;
}

// Byte i is (73 i + 19) mod 256, but for the scale fields of every block.
inline Bytes DecodingRow(DType dtype) {
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

}  // namespace fucina

#endif  // FUCINA_TESTS_CORE_KERNELS_QUANTIZED_ROWS_H_
