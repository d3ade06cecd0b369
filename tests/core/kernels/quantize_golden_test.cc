// Random rows, block by block, against checksums of what ggml made of them.
// The rows come from the generator that tests/oracles/llama_cpp/record_quant.py
// describes; both sides draw the same numbers.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "fucina/kernels/quantize.h"
#include "fucina/tensor/dtype.h"
#include "gtest/gtest.h"
#include "tests/core/kernels/quantized_rows.h"

namespace fucina {
namespace {

constexpr std::int64_t kChunk = 256;  // elements per checksum
constexpr int kDecodedChunks = 16;
constexpr int kInputKinds = 6;
constexpr int kInputRounds = 4;

// Steele, Lea and Flood, 2014.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

// Offsets of the f16 fields in a block that must be finite.
std::vector<std::size_t> F16Fields(DType dtype) {
  switch (dtype) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108};
    case DType::kQ6_K:
      return {208};
    case DType::kTQ1_0:
      return {52};
    case DType::kTQ2_0:
      return {64};
    case DType::kBF16:
    case DType::kIQ1_M:
    case DType::kMXFP4:
      return {};
    default:
      return {0};
  }
}

// Random blocks with finite scales.
Bytes RandomChunk(DType dtype, SplitMix64& rng) {
  const DTypeTraits& traits = Traits(dtype);
  const auto size = static_cast<std::size_t>(traits.block_bytes);
  Bytes row(static_cast<std::size_t>(RowBytes(dtype, kChunk)));
  for (std::size_t at = 0; at < row.size(); at += 8) {
    const std::uint64_t word = rng.Next();
    for (std::size_t i = at; i < row.size() && i < at + 8; ++i) {
      row[i] = static_cast<std::uint8_t>(word >> (8 * (i - at)));
    }
  }
  const auto clear_exponent_bit = [](std::uint8_t& byte, int mask) {
    if ((byte & mask) == mask) byte &= 0xbf;
  };
  for (std::size_t at = 0; at < row.size(); at += size) {
    for (std::size_t field : F16Fields(dtype)) {
      clear_exponent_bit(row[at + field + 1], 0x7c);
    }
    if (dtype == DType::kMXFP4 && row[at] == 255) row[at] = 254;
    if (dtype == DType::kBF16) clear_exponent_bit(row[at + 1], 0x7f);
    if (dtype == DType::kIQ1_M) clear_exponent_bit(row[at + 55], 0x70);
  }
  return row;
}

std::vector<float> InputRow(int kind, int round, SplitMix64& rng) {
  std::vector<float> row;
  for (int i = 0; i < kChunk; ++i) {
    const std::uint64_t z = rng.Next();
    int total = -2 * 65535;
    for (int shift : {0, 16, 32, 48}) {
      total += static_cast<int>((z >> shift) & 0xffff);
    }
    float v = static_cast<float>(total) / 65536.0f;
    switch (kind) {
      case 1:  // scales far apart
        v = std::ldexp(v, (i / 16 * 5) % 13 - 6);
        break;
      case 2:  // groups of zeros
        if (i / 16 % 3 == round % 3) v = 0.0f;
        break;
      case 3:  // ties, equal values
        v = static_cast<float>(static_cast<int>(z & 15) - 8) * 0.5f;
        break;
      case 4:  // one sign only
        v = round % 2 == 0 ? std::fabs(v) : -std::fabs(v);
        break;
      case 5:  // tiny and large rows
        v = std::ldexp(v, round * 12 - 20);
        break;
      default:
        break;
    }
    row.push_back(v);
  }
  return row;
}

struct Golden {
  std::string what;  // "decode" or "encode"
  DType dtype = DType::kF32;
  std::vector<std::uint32_t> sums;  // one per chunk
};

std::vector<Golden> ReadGoldens() {
  std::ifstream file(FUCINA_SOURCE_DIR "/tests/goldens/quant/ggml.txt");
  EXPECT_TRUE(file.is_open());
  std::vector<Golden> goldens;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    Golden golden;
    std::string name;
    words >> golden.what >> name;
    bool known = false;
    for (const DTypeTraits& traits : AllDTypes()) {
      if (traits.name != name) continue;
      golden.dtype = traits.dtype;
      known = true;
    }
    EXPECT_TRUE(known) << name;
    std::string sum;
    while (words >> sum) {
      golden.sums.push_back(
          static_cast<std::uint32_t>(std::stoul(sum, nullptr, 16)));
    }
    goldens.push_back(golden);
  }
  return goldens;
}

TEST(QuantizeGolden, RandomBlocksDecodeAsGgmlDecodesThem) {
  std::set<DType> seen;
  for (const Golden& golden : ReadGoldens()) {
    if (golden.what != "decode") continue;
    SCOPED_TRACE(std::string(Name(golden.dtype)));
    seen.insert(golden.dtype);
    ASSERT_EQ(golden.sums.size(), static_cast<std::size_t>(kDecodedChunks));
    SplitMix64 rng(1000 + static_cast<std::uint64_t>(golden.dtype));
    for (std::size_t chunk = 0; chunk < golden.sums.size(); ++chunk) {
      const Bytes row = RandomChunk(golden.dtype, rng);
      EXPECT_EQ(FindInvalidBlock(golden.dtype, row.data(), kChunk), -1);
      EXPECT_EQ(Crc32(Decode(golden.dtype, row, kChunk)), golden.sums[chunk])
          << "chunk " << chunk;
    }
  }
  for (DType dtype : Decodable()) {
    if (Traits(dtype).use != DTypeUse::kWeight || dtype == DType::kF32) {
      continue;
    }
    EXPECT_EQ(seen.count(dtype), 1u) << Name(dtype);
  }
}

TEST(QuantizeGolden, RandomRowsEncodeAsGgmlEncodesThem) {
  std::set<DType> seen;
  for (const Golden& golden : ReadGoldens()) {
    if (golden.what != "encode") continue;
    SCOPED_TRACE(std::string(Name(golden.dtype)));
    seen.insert(golden.dtype);
    ASSERT_EQ(golden.sums.size(),
              static_cast<std::size_t>(kInputKinds * kInputRounds));
    SplitMix64 rng(2000 + static_cast<std::uint64_t>(golden.dtype));
    for (std::size_t chunk = 0; chunk < golden.sums.size(); ++chunk) {
      const int kind = static_cast<int>(chunk) / kInputRounds;
      const int round = static_cast<int>(chunk) % kInputRounds;
      const std::vector<float> row = InputRow(kind, round, rng);
      EXPECT_EQ(Crc32(Encode(golden.dtype, row)), golden.sums[chunk])
          << "kind " << kind << ", round " << round;
    }
  }
  for (DType dtype : Encodable()) {
    if (Traits(dtype).use != DTypeUse::kWeight || dtype == DType::kF32) {
      continue;
    }
    EXPECT_EQ(seen.count(dtype), 1u) << Name(dtype);
  }
}

}  // namespace
}  // namespace fucina
