#include "fucina/decode/acceptance_table.h"

#include "gtest/gtest.h"

namespace fucina {
namespace {

TEST(AcceptanceTable, BeginsWithEvenChances) {
  const AcceptanceTable table;
  EXPECT_DOUBLE_EQ(table.Chance(0, 0), 0.5);
  EXPECT_DOUBLE_EQ(table.Chance(15, 40), 0.5);
}

TEST(AcceptanceTable, LearnsByClassAndPlace) {
  AcceptanceTable table;
  // Two right, then a wrong one; later tokens were never tried.
  table.Record(3, 2, 3);
  EXPECT_DOUBLE_EQ(table.Chance(3, 0), 2.0 / 3);
  EXPECT_DOUBLE_EQ(table.Chance(3, 1), (1 + 4.0 / 3) / 3);
  const double third = 2 * table.Chance(3, 1) / 3;
  EXPECT_DOUBLE_EQ(table.Chance(3, 2), third);
  EXPECT_DOUBLE_EQ(table.Chance(3, 3), third);  // as good as the place before
  EXPECT_DOUBLE_EQ(table.Chance(4, 0), 0.5);
  // An end of the reply leaves the rest undecided.
  table.Record(4, 1, 1);
  EXPECT_DOUBLE_EQ(table.Chance(4, 0), 2.0 / 3);
  EXPECT_DOUBLE_EQ(table.Chance(4, 1), 2.0 / 3);
}

TEST(AcceptanceTable, ForgetsWhatIsLongAgo) {
  AcceptanceTable table;
  for (int i = 0; i < 1000; ++i) table.Record(0, 1, 1);
  EXPECT_GT(table.Chance(0, 0), 0.95);
  for (int i = 0; i < 60; ++i) table.Record(0, 0, 1);
  EXPECT_LT(table.Chance(0, 0), 0.15);
}

}  // namespace
}  // namespace fucina
