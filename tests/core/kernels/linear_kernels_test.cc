// The products of every level against each other, bit for bit, and against a
// reference in f64 over weights decoded by quantize.h.
#include "fucina/kernels/linear_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "fucina/kernels/kernels.h"
#include "fucina/kernels/quantize.h"
#include "fucina/parallel/flush_denormals.h"
#include "gtest/gtest.h"

namespace fucina {
namespace {

std::vector<DType> WeightTypes() {
  std::vector<DType> types;
  for (const DTypeTraits& traits : AllDTypes()) {
    if (traits.use == DTypeUse::kWeight) types.push_back(traits.dtype);
  }
  return types;
}

// Offsets of the f16 scales of a block.
std::vector<int> F16Fields(DType dtype) {
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
    case DType::kQ4_0:
    case DType::kQ5_0:
    case DType::kQ8_0:
    case DType::kIQ4_NL:
    case DType::kIQ4_XS:
    case DType::kIQ2_XXS:
    case DType::kIQ2_XS:
    case DType::kIQ2_S:
    case DType::kIQ3_XXS:
    case DType::kIQ3_S:
    case DType::kIQ1_S:
      return {0};
    default:
      return {};
  }
}

// 1, or now and then a factor that makes an f16 subnormal, which must survive
// although subnormal f32 numbers are flushed.
float Small(std::mt19937& random) { return random() % 8 == 0 ? 1e-4F : 1.0F; }

// Blocks of random bits with scales of a sensible size and either sign: every
// bit pattern of codes is legal, so this covers all of them.
std::vector<std::uint8_t> RandomRow(DType dtype, std::int64_t k,
                                    std::mt19937& random) {
  const DTypeTraits& traits = Traits(dtype);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(RowBytes(dtype, k)));
  for (std::uint8_t& byte : row) byte = static_cast<std::uint8_t>(random());
  std::normal_distribution<float> normal;
  for (std::int64_t b = 0; b < k / traits.block_size; ++b) {
    std::uint8_t* block = row.data() + b * traits.block_bytes;
    if (dtype == DType::kF32) {
      const float value = normal(random);
      std::memcpy(block, &value, 4);
    } else if (dtype == DType::kF16 || dtype == DType::kBF16) {
      const float value = normal(random) * Small(random);
      QuantizeRow(dtype, &value, block, 1);
    } else if (dtype == DType::kMXFP4) {
      block[0] = static_cast<std::uint8_t>(120 + random() % 8);
    } else if (dtype == DType::kIQ1_M) {
      // The top nibbles of the four scale words are an f16 near 0.05.
      block[49] = static_cast<std::uint8_t>((block[49] & 15) | 0x40);
      block[51] = static_cast<std::uint8_t>((block[51] & 15) | 0x30);
      block[53] = static_cast<std::uint8_t>((block[53] & 15) | 0x80);
      block[55] = static_cast<std::uint8_t>((block[55] & 15) | 0x20);
    }
    for (int offset : F16Fields(dtype)) {
      const float scale = normal(random) * 0.02F * Small(random);
      QuantizeRow(DType::kF16, &scale, block + offset, 1);
    }
  }
  return row;
}

// A strip of rows, the last ones missing, in file form and packed.
struct Strip {
  DType dtype;
  std::int64_t k;
  int rows;
  std::vector<std::vector<std::uint8_t>> source;
  std::vector<std::uint8_t> packed;

  Strip(DType type, std::int64_t features, int num_rows, std::mt19937& random)
      : dtype(type), k(features), rows(num_rows) {
    const void* pointers[kStripRows] = {};
    for (int r = 0; r < rows; ++r) {
      source.push_back(RandomRow(dtype, k, random));
    }
    for (int r = 0; r < rows; ++r) pointers[r] = source[r].data();
    packed.resize(
        static_cast<std::size_t>(StripBytes(PanelFormatOf(dtype), k)));
    PackStrip(dtype, pointers, k, packed.data());
  }

  std::vector<float> Decoded(int row) const {
    std::vector<float> values(static_cast<std::size_t>(k));
    DequantizeRow(dtype, source[row].data(), values.data(), k);
    return values;
  }
};

std::vector<float> RandomActivations(std::int64_t n, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) {
    // Blocks of very different size, and some zeros.
    x[i] = normal(random) * std::exp2(static_cast<float>((i / 32) % 7) - 3.0F);
    if (random() % 16 == 0) x[i] = 0;
  }
  return x;
}

// Tiles in the form that the format reads.
std::vector<std::uint8_t> Prepare(const Kernels& kernels, PanelFormat format,
                                  const float* x, std::int64_t k, int rows) {
  std::vector<std::uint8_t> tile;
  if (IsFloatFormat(format)) {
    tile.resize(static_cast<std::size_t>(k * rows * 4));
    for (int t = 0; t < rows; ++t) {
      for (std::int64_t i = 0; i < k; ++i) {
        std::memcpy(tile.data() + (i * rows + t) * 4, x + t * k + i, 4);
      }
    }
    return tile;
  }
  tile.resize(static_cast<std::size_t>(k / 32 * rows * kActivationBlockBytes));
  for (int t = 0; t < rows; ++t) {
    kernels.linear.quantize_row(x + t * k, k, rows, t, tile.data());
  }
  return tile;
}

// [rows][32], by the direct path or the unpacked one, `piece` features at a
// time; empty when the level has no such entry.
std::vector<float> Multiply(const Kernels& kernels, const Strip& strip,
                            const float* x, int rows, bool unpacked,
                            std::int64_t piece = 1 << 20) {
  const PanelFormat format = PanelFormatOf(strip.dtype);
  const FormatKernels& entry = kernels.linear.formats[static_cast<int>(format)];
  const TileFn multiply = unpacked ? entry.unpacked[rows] : entry.direct[rows];
  if (multiply == nullptr) return {};
  const std::vector<std::uint8_t> tile =
      Prepare(kernels, format, x, strip.k, rows);
  std::vector<std::uint8_t> scratch(
      static_cast<std::size_t>(UnpackedStripBytes(format, strip.k)));
  std::vector<float> out(static_cast<std::size_t>(rows * 40), -1.0F);
  TileArgs args;
  args.table = PanelTable(strip.dtype);
  args.out = out.data();
  args.out_stride = 40;
  const std::int64_t bytes_per_feature =
      static_cast<std::int64_t>(tile.size()) / strip.k;
  for (std::int64_t k = 0; k < strip.k; k += piece) {
    args.weights = strip.packed.data() + StripBytes(format, k);
    args.k = std::min(piece, strip.k - k);
    args.activations = tile.data() + k * bytes_per_feature;
    if (!IsFloatFormat(format)) {
      args.activations = tile.data() + k / 32 * rows * kActivationBlockBytes;
    }
    if (unpacked) {
      entry.unpack(args.weights, args.table, args.k, scratch.data());
      args.weights = scratch.data();
    }
    args.accumulate = k > 0;
    // Prefetching past the end of everything is allowed and changes nothing.
    args.prefetch = args.weights + args.k;
    args.prefetch_lines = 3;
    multiply(args);
  }
  std::vector<float> dense;
  for (int t = 0; t < rows; ++t) {
    dense.insert(dense.end(), out.begin() + t * 40, out.begin() + t * 40 + 32);
    for (int i = 32; i < 40; ++i) EXPECT_EQ(out[t * 40 + i], -1.0F);
  }
  return dense;
}

void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b,
                    const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(a[i]),
              std::bit_cast<std::uint32_t>(b[i]))
        << what << " element " << i << ": " << a[i] << " and " << b[i];
  }
}

std::vector<std::int64_t> FeaturesFor(DType dtype) {
  switch (Traits(dtype).block_size) {
    case 1:
      return {1, 3, 31, 32, 100, 257};
    case 32:
      return {32, 96, 352};
    default:
      return {256, 768};
  }
}

// What the activation quantization makes of a row, as in the header.
std::vector<double> ModelActivations(const float* x, std::int64_t k) {
  std::vector<double> values;
  for (std::int64_t b = 0; b < k; b += 32) {
    float amax = 0;
    for (int i = 0; i < 32; ++i) amax = std::max(amax, std::fabs(x[b + i]));
    const float dx = amax / 127.0F;
    const float inverse = amax > 0 ? 127.0F / amax : 0;
    for (int i = 0; i < 32; ++i) {
      values.push_back(std::nearbyint(x[b + i] * inverse) *
                       static_cast<double>(dx));
    }
  }
  return values;
}

class EveryType : public testing::TestWithParam<DType> {};

TEST_P(EveryType, ScalarProductEqualsReferenceToRounding) {
  const ScopedFlushDenormals flush;
  const DType dtype = GetParam();
  const Kernels& scalar = *KernelsFor(KernelLevel::kScalar);
  std::mt19937 random(7);
  for (std::int64_t k : FeaturesFor(dtype)) {
    const Strip strip(dtype, k, 29, random);
    const std::vector<float> x = RandomActivations(3 * k, random);
    const std::vector<float> y = Multiply(scalar, strip, x.data(), 3, false);
    for (int t = 0; t < 3; ++t) {
      std::vector<double> a(x.begin() + t * k, x.begin() + (t + 1) * k);
      if (!IsFloatFormat(PanelFormatOf(dtype))) {
        a = ModelActivations(x.data() + t * k, k);
      }
      for (int r = 0; r < kStripRows; ++r) {
        const float got = y[static_cast<std::size_t>(t * kStripRows + r)];
        if (r >= strip.rows) {
          EXPECT_EQ(got, 0.0F);
          continue;
        }
        const std::vector<float> w = strip.Decoded(r);
        double sum = 0;
        double magnitude = 0;
        for (std::int64_t i = 0; i < k; ++i) {
          const auto at = static_cast<std::size_t>(i);
          sum += w[at] * a[at];
          magnitude += std::fabs(w[at] * a[at]);
        }
        // Each block adds a few roundings of the running sum. Formats with a
        // minimum cancel a sum that the decoded weights no longer show, which
        // the slack of 8 covers: codes up to 31 against a minimum of 63.
        const double steps = IsFloatFormat(PanelFormatOf(dtype))
                                 ? static_cast<double>(k)
                                 : static_cast<double>(k) / 16;
        EXPECT_NEAR(
            got, sum,
            (steps + 2) * 8 * magnitude * std::numeric_limits<float>::epsilon())
            << Name(dtype) << " k " << k << " row " << r;
      }
    }
  }
}

TEST_P(EveryType, LevelsPathsAndTilesGiveTheSameBits) {
  const ScopedFlushDenormals flush;
  const DType dtype = GetParam();
  const Kernels& scalar = *KernelsFor(KernelLevel::kScalar);
  std::mt19937 random(11);
  for (std::int64_t k : FeaturesFor(dtype)) {
    const Strip strip(dtype, k, 32, random);
    const std::vector<float> x = RandomActivations(kMaxTileRows * k, random);
    // Row by row at the scalar level is the definition.
    std::vector<float> expected;
    for (int t = 0; t < kMaxTileRows; ++t) {
      const std::vector<float> row =
          Multiply(scalar, strip, x.data() + t * k, 1, false);
      expected.insert(expected.end(), row.begin(), row.end());
    }
    for (KernelLevel level : kAllKernelLevels) {
      const Kernels* kernels = KernelsFor(level);
      if (kernels == nullptr) continue;
      for (int rows = 1; rows <= kMaxTileRows; ++rows) {
        for (bool unpacked : {false, true}) {
          const std::vector<float> got =
              Multiply(*kernels, strip, x.data(), rows, unpacked);
          if (got.empty()) continue;
          ExpectSameBits(
              got,
              std::vector<float>(expected.begin(),
                                 expected.begin() + rows * kStripRows),
              std::string(Name(level)) + " " + std::string(Name(dtype)) +
                  " k " + std::to_string(k) + " rows " + std::to_string(rows) +
                  (unpacked ? " unpacked" : " direct"));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(EveryType, PiecesOfKGiveTheBitsOfTheWhole) {
  const ScopedFlushDenormals flush;
  const DType dtype = GetParam();
  const std::int64_t record =
      std::max<std::int64_t>(Traits(dtype).block_size, 1);
  const std::int64_t k = 5 * record;
  std::mt19937 random(19);
  const Strip strip(dtype, k, 32, random);
  const std::vector<float> x = RandomActivations(kMaxTileRows * k, random);
  for (KernelLevel level : kAllKernelLevels) {
    const Kernels* kernels = KernelsFor(level);
    if (kernels == nullptr) continue;
    for (int rows : {1, 2, 3, 4, 6, kMaxTileRows}) {
      for (bool unpacked : {false, true}) {
        const std::vector<float> whole =
            Multiply(*kernels, strip, x.data(), rows, unpacked);
        for (std::int64_t records : {1, 2, 3}) {
          ExpectSameBits(Multiply(*kernels, strip, x.data(), rows, unpacked,
                                  records * record),
                         whole,
                         std::string(Name(level)) + " " +
                             std::string(Name(dtype)) + " rows " +
                             std::to_string(rows) + " pieces of " +
                             std::to_string(records * record));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(EveryType, ScalesOfInfinityAndNanReachTheOutput) {
  const ScopedFlushDenormals flush;
  const DType dtype = GetParam();
  const std::vector<int> fields = F16Fields(dtype);
  if (fields.empty()) return;  // no f16 scale: covered by the float types
  std::mt19937 random(13);
  const std::int64_t k = FeaturesFor(dtype).back();
  Strip strip(dtype, k, 32, random);
  const std::uint16_t bits[3] = {0x7C00, 0xFC00, 0x7E00};
  const void* pointers[kStripRows] = {};
  for (int r = 0; r < kStripRows; ++r) {
    if (r < 3) std::memcpy(strip.source[r].data() + fields[0], &bits[r], 2);
    pointers[r] = strip.source[r].data();
  }
  PackStrip(dtype, pointers, k, strip.packed.data());
  const std::vector<float> x = RandomActivations(k, random);
  const std::vector<float> expected =
      Multiply(*KernelsFor(KernelLevel::kScalar), strip, x.data(), 1, false);
  for (int r = 0; r < kStripRows; ++r) {
    EXPECT_EQ(std::isfinite(expected[static_cast<std::size_t>(r)]), r >= 3);
  }
  for (KernelLevel level : kAllKernelLevels) {
    const Kernels* kernels = KernelsFor(level);
    if (kernels == nullptr) continue;
    ExpectSameBits(Multiply(*kernels, strip, x.data(), 1, false), expected,
                   std::string(Name(level)));
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, EveryType, testing::ValuesIn(WeightTypes()),
                         [](const testing::TestParamInfo<DType>& type) {
                           return std::string(Name(type.param));
                         });

// The tile bytes of one row, at one level.
std::vector<std::uint8_t> Quantize(const Kernels& kernels,
                                   const std::vector<float>& x, int rows,
                                   int row) {
  std::vector<std::uint8_t> tile(
      x.size() / 32 * static_cast<std::size_t>(rows) * kActivationBlockBytes);
  kernels.linear.quantize_row(x.data(), static_cast<std::int64_t>(x.size()),
                              rows, row, tile.data());
  return tile;
}

TEST(QuantizeActivations, EveryLevelWritesTheSameBytes) {
  const ScopedFlushDenormals flush;
  std::mt19937 random(17);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<float> x = RandomActivations(96, random);
    switch (trial % 8) {
      case 1:
        x[5] = std::numeric_limits<float>::infinity();
        break;
      case 2:
        x[40] = std::numeric_limits<float>::quiet_NaN();
        break;
      case 3:
        std::fill(x.begin(), x.begin() + 32, 0.0F);
        break;
      case 4:
        for (float& v : x) v *= 0x1p-100F;
        break;
      case 5:
        for (float& v : x) v *= 0x1p-126F;
        break;
      case 6:
        for (float& v : x) v *= 0x1p120F;
        break;
      case 7:  // ties
        for (std::size_t i = 0; i < x.size(); ++i) {
          x[i] = static_cast<float>(static_cast<int>(random() % 255) - 127) / 2;
        }
        x[0] = x[32] = x[64] = 127.0F;
        break;
      default:
        break;
    }
    const std::vector<std::uint8_t> expected =
        Quantize(*KernelsFor(KernelLevel::kScalar), x, 3, 1);
    for (KernelLevel level : kAllKernelLevels) {
      const Kernels* kernels = KernelsFor(level);
      if (kernels == nullptr) continue;
      EXPECT_EQ(Quantize(*kernels, x, 3, 1), expected)
          << Name(level) << " trial " << trial;
    }
  }
}

TEST(QuantizeActivations, MatchesItsDefinition) {
  const ScopedFlushDenormals flush;
  std::mt19937 random(19);
  const std::vector<float> x = RandomActivations(64, random);
  const std::vector<std::uint8_t> tile =
      Quantize(*KernelsFor(KernelLevel::kScalar), x, 1, 0);
  const std::vector<double> model = ModelActivations(x.data(), 64);
  for (int b = 0; b < 2; ++b) {
    const std::uint8_t* block = tile.data() + b * kActivationBlockBytes;
    float dx;
    float scaled_sum;
    std::int32_t sums[3];
    std::memcpy(&dx, block + 32, 4);
    std::memcpy(sums, block + 36, 12);
    std::memcpy(&scaled_sum, block + 48, 4);
    int low = 0;
    int high = 0;
    for (int i = 0; i < 32; ++i) {
      const int code = static_cast<std::int8_t>(block[i]);
      EXPECT_EQ(code * static_cast<double>(dx),
                model[static_cast<std::size_t>(b * 32 + i)]);
      (i < 16 ? low : high) += code;
    }
    EXPECT_EQ(sums[0], -(low + high));
    EXPECT_EQ(sums[1], -low);
    EXPECT_EQ(sums[2], -high);
    EXPECT_EQ(scaled_sum, dx * static_cast<float>(low + high));
  }
}

TEST(QuantizeActivations, RowWithNanGivesNanEverywhere) {
  const ScopedFlushDenormals flush;
  std::mt19937 random(23);
  const Strip strip(DType::kQ4_K, 256, 32, random);
  std::vector<float> x = RandomActivations(2 * 256, random);
  const std::vector<float> clean = Multiply(*KernelsFor(KernelLevel::kScalar),
                                            strip, x.data() + 256, 1, false);
  x[77] = std::numeric_limits<float>::quiet_NaN();
  for (KernelLevel level : kAllKernelLevels) {
    const Kernels* kernels = KernelsFor(level);
    if (kernels == nullptr) continue;
    const std::vector<float> y = Multiply(*kernels, strip, x.data(), 2, false);
    for (int i = 0; i < 32; ++i) EXPECT_TRUE(std::isnan(y[i])) << Name(level);
    ExpectSameBits(std::vector<float>(y.begin() + 32, y.end()), clean,
                   std::string(Name(level)));
  }
}

TEST(AddDotRows, EveryLevelAgreesAndIsNearTheExactSum) {
  const ScopedFlushDenormals flush;
  std::mt19937 random(29);
  std::normal_distribution<float> normal;
  for (std::int64_t k : {1, 5, 16, 33, 200}) {
    const std::int64_t stride = k + 3;
    std::vector<float> w(static_cast<std::size_t>(7 * stride));
    std::vector<float> x(static_cast<std::size_t>(k));
    for (float& v : w) v = normal(random);
    for (float& v : x) v = normal(random);
    std::vector<float> start(7);
    for (float& v : start) v = normal(random);
    std::vector<float> expected = start;
    KernelsFor(KernelLevel::kScalar)
        ->linear.add_dot_rows(w.data(), stride, 7, k, x.data(), 0.5F,
                              expected.data());
    for (int r = 0; r < 7; ++r) {
      double sum = 0;
      double magnitude = 1;
      for (std::int64_t i = 0; i < k; ++i) {
        const double product = static_cast<double>(w[r * stride + i]) * x[i];
        sum += product;
        magnitude += std::fabs(product);
      }
      EXPECT_NEAR(expected[r], start[r] + 0.5 * sum, 1e-6 * magnitude);
    }
    for (KernelLevel level : kAllKernelLevels) {
      const Kernels* kernels = KernelsFor(level);
      if (kernels == nullptr) continue;
      std::vector<float> y = start;
      kernels->linear.add_dot_rows(w.data(), stride, 7, k, x.data(), 0.5F,
                                   y.data());
      ExpectSameBits(y, expected, std::string(Name(level)));
    }
  }
}

TEST(AddScaled, EveryLevelIsTheFusedDefinition) {
  const ScopedFlushDenormals flush;
  std::mt19937 random(31);
  std::normal_distribution<float> normal;
  for (std::int64_t n : {1, 7, 16, 35}) {
    std::vector<float> x(static_cast<std::size_t>(n));
    std::vector<float> start(static_cast<std::size_t>(n));
    for (float& v : x) v = normal(random);
    for (float& v : start) v = normal(random);
    std::vector<float> expected = start;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] = std::fma(0.3F, x[i], start[i]);
    }
    for (KernelLevel level : kAllKernelLevels) {
      const Kernels* kernels = KernelsFor(level);
      if (kernels == nullptr) continue;
      std::vector<float> y = start;
      kernels->linear.add_scaled(x.data(), n, 0.3F, y.data());
      ExpectSameBits(y, expected, std::string(Name(level)));
    }
  }
}

TEST(KernelLevel, NamesRoundTrip) {
  for (KernelLevel level : kAllKernelLevels) {
    EXPECT_EQ(ParseKernelLevel(Name(level)), level);
  }
  EXPECT_EQ(ParseKernelLevel("sse9"), std::nullopt);
  EXPECT_EQ(ParseKernelLevel(""), std::nullopt);
}

// Long rows take another path than short ones; blocks of every kind in each.
TEST(QuantizeRow, LevelsGiveTheSameTiles) {
  const ScopedFlushDenormals flush;
  const float kInfinity = std::numeric_limits<float>::infinity();
  const float kNan = std::numeric_limits<float>::quiet_NaN();
  std::mt19937 random(23);
  for (std::int64_t blocks : {1, 15, 16, 17, 33, 47}) {
    const std::int64_t k = blocks * kBlockSize;
    for (int rows : {1, 3, 6}) {
      std::vector<float> x = RandomActivations(rows * k, random);
      for (std::int64_t b = 0; b < rows * blocks; ++b) {
        float* const block = x.data() + b * kBlockSize;
        const std::uint32_t at = random() % kBlockSize;
        switch (random() % 8) {
          case 0:
            block[at] = kInfinity;
            break;
          case 1:
            block[at] = -kInfinity;
            break;
          case 2:
            block[at] = kNan;
            break;
          case 3:
            std::fill(block, block + kBlockSize, 0.0F);
            break;
          case 4:
            for (int i = 0; i < kBlockSize; ++i) block[i] *= 0x1p-120F;
            break;
          case 5:
            std::fill(block, block + kBlockSize, -0x1p-100F);
            break;
          case 6:
            for (int i = 0; i < kBlockSize; ++i) block[i] *= 0x1p+120F;
            break;
          default:
            break;
        }
      }
      const std::vector<std::uint8_t> expected =
          Prepare(*KernelsFor(KernelLevel::kScalar), PanelFormat::kQ8, x.data(),
                  k, rows);
      for (KernelLevel level : kAllKernelLevels) {
        if (KernelsFor(level) == nullptr) continue;
        EXPECT_EQ(
            Prepare(*KernelsFor(level), PanelFormat::kQ8, x.data(), k, rows),
            expected)
            << Name(level) << " blocks " << blocks << " rows " << rows;
      }
    }
  }
}

TEST(KernelLevel, ScalarIsAlwaysThereAndTheBestIsSupported) {
  ASSERT_NE(KernelsFor(KernelLevel::kScalar), nullptr);
  ASSERT_NE(KernelsFor(BestKernelLevel()), nullptr);
  EXPECT_EQ(KernelsFor(BestKernelLevel())->level, BestKernelLevel());
}

}  // namespace
}  // namespace fucina
