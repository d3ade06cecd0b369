#include "fucina/decode/verify_cost.h"

#include <cstdint>
#include <initializer_list>

#include "gtest/gtest.h"

namespace fucina {
namespace {

constexpr std::int64_t kMs = 1'000'000;

VerifyCostTable Published() {
  return {{2, 1.65}, {4, 1.42}, {8, 2.84}, {16, 4.5}};
}

TEST(VerifyCost, InterpolatesItsTable) {
  const VerifyCost cost(Published());
  EXPECT_DOUBLE_EQ(cost.Of(1), 1.325);  // between C(0) = 1 and C(2)
  EXPECT_DOUBLE_EQ(cost.Of(2), 1.65);
  EXPECT_DOUBLE_EQ(cost.Of(3), 1.535);
  EXPECT_DOUBLE_EQ(cost.Of(6), 2.13);
  EXPECT_DOUBLE_EQ(cost.Of(12), 3.67);
  EXPECT_DOUBLE_EQ(cost.Of(32), 7.82);  // the last slope goes on
}

// One sample each, then the cost of 8 over that of the table.
TEST(VerifyCost, ScalesItsTable) {
  const auto scale = [](std::initializer_list<std::int64_t> verifies) {
    VerifyCost cost(Published());
    cost.RecordPlain(kMs);
    for (const std::int64_t ns : verifies) cost.RecordVerify(8, ns);
    return cost.Of(8) / 2.84;
  };
  EXPECT_NEAR(scale({2'840'000}), 1, 1e-12);
  EXPECT_NEAR(scale({5'680'000}), 1.2, 1e-12);
  EXPECT_NEAR(scale({1000 * kMs}), 1.6, 1e-12);  // one stall counts little
  EXPECT_NEAR(scale({0}), 1, 1e-12);             // nobody measured
}

TEST(VerifyCost, BelievesItsOwnSamplesOfOneWidth) {
  VerifyCost cost(Published());
  cost.RecordPlain(kMs);
  for (int i = 0; i < 4; ++i) cost.RecordVerify(8, 5'680'000);
  EXPECT_NEAR(cost.Of(8), 5.68, 1e-9);
  // Other widths have learned the scale only.
  const double scale = 2 - 0.8 * 0.8 * 0.8 * 0.8;
  EXPECT_NEAR(cost.Of(4), 1.42 * scale, 1e-9);
  // A verification is never cheaper than a plain step.
  for (int i = 0; i < 60; ++i) cost.RecordVerify(2, kMs / 10);
  EXPECT_NEAR(cost.Of(2), 1, 1e-5);
  EXPECT_GE(cost.Of(2), 1);
  // Any width may be asked.
  cost.RecordVerify(1000, kMs);
  EXPECT_GT(cost.Of(1000), 1);
}

TEST(VerifyCost, CountsInPlainSteps) {
  VerifyCost cost(Published());
  EXPECT_FALSE(cost.knows_plain());
  EXPECT_EQ(cost.InSteps(kMs), 0);
  cost.RecordVerify(8, kMs);  // nothing to compare with
  EXPECT_DOUBLE_EQ(cost.Of(8), 2.84);
  cost.RecordPlain(0);
  EXPECT_FALSE(cost.knows_plain());
  cost.RecordPlain(kMs);
  EXPECT_DOUBLE_EQ(cost.InSteps(2 * kMs), 2);
  cost.RecordPlain(2 * kMs);
  EXPECT_DOUBLE_EQ(cost.InSteps(5 * kMs / 4), 1);
}

// Four sequences at 1.3 of a single row's time; one more row makes it 1.4.
TEST(VerifyCost, OfRowsInCompanyIsEverybodysWaiting) {
  const VerifyCost cost({{3, 1.3}, {13, 2.3}});
  EXPECT_NEAR(cost.Of(1, 4), 1 + 4 * 0.1 / 1.3, 1e-12);
  EXPECT_NEAR(cost.Of(10, 4), 1 + 4 * 1.0 / 1.3, 1e-12);
}

}  // namespace
}  // namespace fucina
