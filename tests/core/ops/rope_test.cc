#include "fucina/ops/rope.h"

#include <cmath>
#include <numbers>
#include <thread>

#include "fucina/ops/norm.h"
#include "gtest/gtest.h"
#include "tests/core/ops/ops_testing.h"

namespace fucina::ops {
namespace {

using ops_testing::Between;
using ops_testing::Floats;
using ops_testing::Normal;
using ops_testing::Rig;
using ops_testing::Rigs;
using ops_testing::Rows;
using ops_testing::SameBits;

// The definition, pair by pair, in f64. `angle` and `magnitude` of a position.
template <typename Angle>
Floats Reference(const Floats& x, int head_dim, int row_size,
                 const std::vector<std::int32_t>& positions, int rotary_dim,
                 bool half, double magnitude, Angle angle) {
  Floats y = x;
  for (std::size_t start = 0; start < x.size(); start += head_dim) {
    const double position = positions[start / row_size];
    for (int i = 0; i < rotary_dim / 2; ++i) {
      const std::size_t a = start + (half ? i : 2 * i);
      const std::size_t b = start + (half ? i + rotary_dim / 2 : 2 * i + 1);
      const double c = magnitude * std::cos(angle(position, i));
      const double s = magnitude * std::sin(angle(position, i));
      y[a] = static_cast<float>(x[a] * c - x[b] * s);
      y[b] = static_cast<float>(x[a] * s + x[b] * c);
    }
  }
  return y;
}

void ExpectClose(const Floats& found, const Floats& expected, double scale) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i],
                scale * 2e-7 * (1 + std::fabs(expected[i])))
        << "element " << i;
  }
}

TEST(Rope, AgreesWithDoubleReferenceAndAllRigsGiveTheSameBits) {
  std::mt19937 random(1);
  struct Case {
    int head_dim, rotary_dim;
  };
  for (const auto [head_dim, rotary_dim] :
       {Case{16, 16}, Case{80, 80}, Case{128, 128}, Case{128, 64}, Case{64, 22},
        Case{256, 256}, Case{2, 2}}) {
    for (const bool half : {true, false}) {
      const RopeTable table(
          {.rotary_dim = rotary_dim,
           .theta = 1e6,
           .pairing = half ? RopePairing::kHalf : RopePairing::kInterleaved});
      ASSERT_TRUE(table.Prepare(32800).ok());
      const std::vector<std::int32_t> positions = {
          0, 1, 511, 512, 513, 4095, 32767, Between(random, 0, 32000)};
      const int row_size = 3 * head_dim;
      const Floats x = Normal(
          random, static_cast<std::int64_t>(positions.size()) * row_size, 0.3f);
      const int dim = rotary_dim;
      const Floats expected =
          Reference(x, head_dim, row_size, positions, dim, half, 1.0,
                    [dim](double position, int i) {
                      return position * std::pow(1e6, -2.0 * i / dim);
                    });
      Floats oracle;
      for (const Rig& rig : Rigs()) {
        Floats y = x;
        Rope(rig.context, table, positions, head_dim, Rows(y, row_size));
        if (oracle.empty()) {
          oracle = y;
          ExpectClose(y, expected, 1.0);
        }
        EXPECT_TRUE(SameBits(y, oracle)) << rig.name << " " << head_dim;
      }
      // What does not rotate is not touched, not even scaled.
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (static_cast<int>(i % head_dim) >= rotary_dim) {
          ASSERT_EQ(oracle[i], x[i]);
        }
      }
    }
  }
}

TEST(Rope, LinearScalingDividesPositions) {
  std::mt19937 random(2);
  RopeSpec plain = {.rotary_dim = 32};
  RopeSpec linear = {
      .rotary_dim = 32,
      .scaling = {.kind = RopeScalingKind::kLinear, .factor = 4.0}};
  const RopeTable a(plain);
  const RopeTable b(linear);
  ASSERT_TRUE(a.Prepare(200).ok());
  ASSERT_TRUE(b.Prepare(800).ok());
  for (const int position : {0, 1, 77, 199}) {
    for (int i = 0; i < 32; ++i) {
      EXPECT_EQ(a.Row(position)[i], b.Row(4 * position)[i]);
    }
  }
}

TEST(Rope, FactorsDivideAngles) {
  const std::vector<float> factors = {1, 1, 1, 1, 2, 4, 8, 8};
  const RopeTable table({.rotary_dim = 16, .factors = factors});
  ASSERT_TRUE(table.Prepare(1000).ok());
  for (int i = 0; i < 8; ++i) {
    const double angle = 999 * std::pow(10000.0, -2.0 * i / 16) / factors[i];
    EXPECT_NEAR(table.Row(999)[i], std::cos(angle), 6e-8);
    EXPECT_NEAR(table.Row(999)[8 + i], std::sin(angle), 6e-8);
  }
}

// Source of the formula: arXiv 2309.00071, as llama.cpp computes it.
TEST(Rope, YarnKeepsFastPairsAndSqueezesSlowOnes) {
  const int dim = 128;
  const double theta = 1e6;
  const int original = 32768;
  const double factor = 4;
  const RopeTable table({.rotary_dim = dim,
                         .theta = theta,
                         .scaling = {.kind = RopeScalingKind::kYarn,
                                     .factor = factor,
                                     .original_context_length = original}});
  ASSERT_TRUE(table.Prepare(5000).ok());
  const double pi = std::numbers::pi;
  const double low = std::floor(dim * std::log(original / (32 * 2 * pi)) /
                                (2 * std::log(theta)));
  const double high = std::ceil(dim * std::log(original / (1 * 2 * pi)) /
                                (2 * std::log(theta)));
  ASSERT_GT(low, 10);
  ASSERT_LT(high, 60);
  const double magnitude = 1 + 0.1 * std::log(factor);
  const int position = 4999;
  for (int i = 0; i < dim / 2; ++i) {
    const double kept = position * std::pow(theta, -2.0 * i / dim);
    const double mix = i <= low    ? 1
                       : i >= high ? 0
                                   : 1 - (i - low) / (high - low);
    const double angle = kept / factor * (1 - mix) + kept * mix;
    EXPECT_NEAR(table.Row(position)[i], magnitude * std::cos(angle), 1e-7) << i;
    EXPECT_NEAR(table.Row(position)[dim / 2 + i], magnitude * std::sin(angle),
                1e-7)
        << i;
  }
}

TEST(RopeTable, GrowingMovesNothingAndIsSafeBetweenThreads) {
  const RopeTable table({.rotary_dim = 64});
  ASSERT_TRUE(table.Prepare(1).ok());
  const float* const row = table.Row(RopeTable::kRunPositions - 1);
  const float before = row[5];
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&table] {
      for (int length = 1; length < 6000; length += 97) {
        ASSERT_TRUE(table.Prepare(length).ok());
        ASSERT_EQ(table.Row(length - 1)[32],
                  static_cast<float>(std::sin(length - 1.0)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(table.Row(RopeTable::kRunPositions - 1), row);
  EXPECT_EQ(row[5], before);
}

TEST(RopeTable, RefusesMorePositionsThanItCanHold) {
  const RopeTable table({.rotary_dim = 2});
  const absl::Status status = table.Prepare(RopeTable::kMaxPositions + 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(status.message(),
            "a context of 4194305 tokens exceeds the limit of 4194304; ask for "
            "a smaller context");
}

TEST(RopeTableDeathTest, RowsMustBePrepared) {
  const RopeTable table({.rotary_dim = 2});
  ASSERT_TRUE(table.Prepare(1).ok());
  EXPECT_DEATH(table.Row(RopeTable::kRunPositions), "is not prepared");
}

TEST(NormAndRope, HasTheBitsOfNormThenRope) {
  std::mt19937 random(21);
  constexpr int kRows = 37;
  constexpr int kDim = 80;
  const RopeTable table({.rotary_dim = 64, .theta = 1e6});
  ASSERT_TRUE(table.Prepare(1000).ok());
  std::vector<std::int32_t> positions(kRows);
  for (std::int32_t& position : positions) position = Between(random, 0, 999);
  // 3 heads and 1 head, side by side in rows of 5.
  const Floats x = Normal(random, kRows * 5 * kDim);
  const Floats weight = Normal(random, kDim);
  const auto columns = [](Floats& rows, int first, int count) {
    return Tensor::Strided(DType::kF32, kRows, count * kDim, 5 * kDim * 4,
                           rows.data() + first * kDim);
  };
  for (const Rig& rig : Rigs()) {
    Floats expected = x;
    HeadRmsNorm(rig.context, weight, 1e-5f, columns(expected, 0, 3));
    Rope(rig.context, table, positions, kDim, columns(expected, 0, 3));
    Rope(rig.context, table, positions, kDim, columns(expected, 3, 1));
    Floats found = x;
    const NormedHeads heads[] = {{columns(found, 0, 3), weight},
                                 {columns(found, 3, 1), {}}};
    NormAndRope(rig.context, table, positions, kDim, 1e-5f, heads);
    EXPECT_TRUE(SameBits(found, expected)) << rig.name;
  }
}

}  // namespace
}  // namespace fucina::ops
