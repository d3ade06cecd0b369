#include "fucina/ops/activation.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "tests/core/ops/ops_testing.h"

namespace fucina::ops {
namespace {

using ops_testing::Floats;
using ops_testing::Normal;
using ops_testing::Rig;
using ops_testing::Rigs;
using ops_testing::Rows;
using ops_testing::SameBits;

TEST(GatedSilu, AgreesWithDoubleReferenceAndAllRigsGiveTheSameBits) {
  std::mt19937 random(1);
  for (const int size : {1, 15, 64, 3072, 12288}) {
    const int rows = size > 1000 ? 3 : 50;
    const Floats gate = Normal(random, rows * size, 8);
    const Floats up = Normal(random, rows * size);
    Floats oracle;
    for (const Rig& rig : Rigs()) {
      Floats y(gate.size());
      GatedSilu(rig.context, Rows(gate, size), Rows(up, size), Rows(y, size));
      if (oracle.empty()) {
        oracle = y;
        for (std::size_t i = 0; i < y.size(); ++i) {
          const double g = gate[i];
          const double expected = g / (1 + std::exp(-g)) * up[i];
          ASSERT_NEAR(y[i], expected, 1e-6 * std::fabs(expected) + 1e-30)
              << "gate " << g;
        }
      }
      EXPECT_TRUE(SameBits(y, oracle)) << rig.name << ", size " << size;
    }
  }
}

TEST(GatedSilu, ExtremesGiveZeroOrTheGate) {
  const Floats gate = {-80,  -88,   -88.5f, -100,  -1e4f,  -3e38f, 0.0f, -0.0f,
                       80.f, 88.5f, 1e4f,   3e38f, 1e-40f, 20,     -20,  1};
  const Floats up(gate.size(), 1.0f);
  const int size = static_cast<int>(gate.size());
  for (const Rig& rig : Rigs()) {
    Floats y(gate.size());
    GatedSilu(rig.context, Rows(gate, size), Rows(up, size), Rows(y, size));
    for (int i = 0; i < 6; ++i) {
      EXPECT_NEAR(y[i], 0.0, 2e-33) << rig.name << " " << gate[i];
    }
    EXPECT_EQ(y[6], 0.0f);
    EXPECT_EQ(y[7], 0.0f);
    for (int i = 8; i < 12; ++i) EXPECT_EQ(y[i], gate[i]) << rig.name;
    EXPECT_EQ(y[12], 0.0f) << "subnormal numbers are flushed";
    EXPECT_NEAR(y[15], 0.7310585786, 1e-7);
  }
}

TEST(GatedSilu, ANaNStaysVisible) {
  Floats gate(20, 1.0f);
  gate[3] = std::numeric_limits<float>::quiet_NaN();
  const Floats up(20, 1.0f);
  for (const Rig& rig : Rigs()) {
    Floats y(20);
    GatedSilu(rig.context, Rows(gate, 20), Rows(up, 20), Rows(y, 20));
    EXPECT_TRUE(std::isnan(y[3])) << rig.name;
    EXPECT_FALSE(std::isnan(y[4])) << rig.name;
  }
}

// The exponential behind silu and softmax, over its whole range.
TEST(Exp, IsWithinTwoUnitsInTheLastPlaceAndEqualOnAllLevels) {
  Floats x;
  for (double v = -90; v < 90; v += 0.00037) x.push_back(static_cast<float>(v));
  x.insert(x.end(), {-1e30f, -std::numeric_limits<float>::infinity(), 0.0f,
                     -0.0f, -87.0f, -87.4f});
  Floats oracle;
  for (const Rig& rig : Rigs()) {
    Floats y(x.size());
    rig.context.kernels.rows.exp(x.data(), static_cast<std::int64_t>(x.size()),
                                 y.data());
    if (oracle.empty()) {
      oracle = y;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double expected = std::exp(static_cast<double>(x[i]));
        if (x[i] < -87) {
          ASSERT_NEAR(y[i], 0.0f, 2e-38) << x[i];
        } else if (x[i] <= 88) {
          ASSERT_NEAR(y[i], expected, expected * 0x1p-22) << x[i];
        } else {
          ASSERT_GE(y[i], 1.6e38f) << x[i];
        }
      }
      EXPECT_EQ(y[x.size() - 4], 1.0f);
      EXPECT_EQ(y[x.size() - 5], 0.0f) << "minus infinity gives an exact zero";
    }
    EXPECT_TRUE(SameBits(y, oracle)) << rig.name;
  }
}

}  // namespace
}  // namespace fucina::ops
