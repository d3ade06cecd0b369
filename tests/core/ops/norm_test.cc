#include "fucina/ops/norm.h"

#include <cmath>
#include <limits>

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

Floats ReferenceNorm(const Floats& x, const Floats& weight, float eps) {
  const std::size_t size = weight.size();
  Floats y(x.size());
  for (std::size_t row = 0; row < x.size(); row += size) {
    double sum = 0;
    for (std::size_t i = 0; i < size; ++i) {
      sum += static_cast<double>(x[row + i]) * x[row + i];
    }
    const double r = 1.0 / std::sqrt(sum / static_cast<double>(size) + eps);
    for (std::size_t i = 0; i < size; ++i) {
      y[row + i] = static_cast<float>(x[row + i] * r * weight[i]);
    }
  }
  return y;
}

void ExpectRelative(const Floats& found, const Floats& expected,
                    double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], tolerance * std::fabs(expected[i]))
        << "element " << i;
  }
}

TEST(RmsNorm, AgreesWithDoubleReferenceAndAllRigsGiveTheSameBits) {
  std::mt19937 random(1);
  for (const int size : {1, 7, 16, 17, 80, 128, 1000, 1024, 4096}) {
    const int rows = Between(random, 1, 40);
    const Floats x = Normal(random, rows * size, 3);
    const Floats weight = Normal(random, size);
    Floats oracle;
    for (const Rig& rig : Rigs()) {
      Floats y(x.size());
      RmsNorm(rig.context, Rows(x, size), weight, 1e-6f, Rows(y, size));
      if (oracle.empty()) {
        oracle = y;
        ExpectRelative(y, ReferenceNorm(x, weight, 1e-6f), 1e-6);
      }
      EXPECT_TRUE(SameBits(y, oracle)) << rig.name << ", size " << size;
    }
  }
}

TEST(RmsNorm, ARowDoesNotFeelItsNeighboursNorItsPlace) {
  std::mt19937 random(2);
  const int size = 1024;
  const Floats x = Normal(random, 37 * size);
  const Floats weight = Normal(random, size);
  for (const Rig& rig : Rigs()) {
    Floats all(x.size());
    RmsNorm(rig.context, Rows(x, size), weight, 1e-5f, Rows(all, size));
    for (const int row : {0, 11, 36}) {
      Floats one(x.begin() + row * size, x.begin() + (row + 1) * size);
      RmsNorm(rig.context, Rows(one, size), weight, 1e-5f, Rows(one, size));
      EXPECT_TRUE(SameBits(one, Floats(all.begin() + row * size,
                                       all.begin() + (row + 1) * size)))
          << rig.name;
    }
  }
}

TEST(RmsNorm, ExtremesStayFinite) {
  const Floats weight(32, 1.0f);
  const Floats zero(32, 0.0f);
  const Floats huge(32, 1e30f);        // the sum of squares needs f64
  const Floats subnormal(32, 1e-40f);  // flushed
  for (const Rig& rig : Rigs()) {
    Floats y(32);
    RmsNorm(rig.context, Rows(zero, 32), weight, 1e-6f, Rows(y, 32));
    EXPECT_EQ(y, zero);
    RmsNorm(rig.context, Rows(huge, 32), weight, 1e-6f, Rows(y, 32));
    EXPECT_NEAR(y[0], 1.0, 1e-6) << rig.name;
    RmsNorm(rig.context, Rows(subnormal, 32), weight, 1e-6f, Rows(y, 32));
    EXPECT_EQ(y, zero) << rig.name;
  }
}

TEST(HeadRmsNorm, IsTheNormOfEachHead) {
  std::mt19937 random(3);
  for (const int dim : {16, 80, 128}) {
    const Floats x = Normal(random, 5 * 6 * dim);  // 5 rows of 6 heads
    const Floats weight = Normal(random, dim);
    for (const Rig& rig : Rigs()) {
      Floats heads = x;
      HeadRmsNorm(rig.context, weight, 1e-6f, Rows(heads, 6 * dim));
      Floats flat(x.size());
      RmsNorm(rig.context, Rows(x, dim), weight, 1e-6f, Rows(flat, dim));
      EXPECT_TRUE(SameBits(heads, flat)) << rig.name;
    }
  }
}

TEST(HeadRmsNorm, LeavesTheGapsOfStridedRowsAlone) {
  std::mt19937 random(4);
  Floats x = Normal(random, 3 * 96);
  const Floats before = x;
  const Floats weight = Normal(random, 16);
  const Rig& rig = Rigs()[0];
  // 64 elements of each row of 96.
  HeadRmsNorm(rig.context, weight, 1e-6f,
              Tensor::Strided(DType::kF32, 3, 64, 96 * 4, x.data()));
  for (int row = 0; row < 3; ++row) {
    EXPECT_NE(x[row * 96 + 63], before[row * 96 + 63]);
    for (int i = 64; i < 96; ++i) {
      EXPECT_EQ(x[row * 96 + i], before[row * 96 + i]);
    }
  }
}

TEST(AddRmsNorm, HasTheBitsOfAddThenNorm) {
  std::mt19937 random(5);
  for (const int size : {33, 1024}) {
    const Floats x = Normal(random, 9 * size);
    const Floats delta = Normal(random, 9 * size);
    const Floats weight = Normal(random, size);
    for (const Rig& rig : Rigs()) {
      Floats sum = x;
      AddInPlace(rig.context, Rows(delta, size), Rows(sum, size));
      for (std::size_t i = 0; i < sum.size(); ++i) {
        ASSERT_EQ(sum[i], x[i] + delta[i]);
      }
      Floats norm(x.size());
      RmsNorm(rig.context, Rows(sum, size), weight, 1e-6f, Rows(norm, size));
      Floats fused_sum = x;
      Floats fused_norm(x.size());
      AddRmsNorm(rig.context, Rows(delta, size), weight, 1e-6f,
                 Rows(fused_sum, size), Rows(fused_norm, size));
      EXPECT_TRUE(SameBits(fused_sum, sum)) << rig.name;
      EXPECT_TRUE(SameBits(fused_norm, norm)) << rig.name;
    }
  }
}

TEST(RmsNormDeathTest, RefusesAWeightOfAnotherSize) {
  const Floats x(32);
  Floats y(32);
  const Floats weight(16);
  EXPECT_DEATH(
      RmsNorm(Rigs()[0].context, Rows(x, 32), weight, 1e-6f, Rows(y, 32)),
      "32 against 16");
}

}  // namespace
}  // namespace fucina::ops
