#include "fucina/ops/token_mask.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace fucina::ops {
namespace {

TEST(TokenMask, ForbidsWhatHasNoBit) {
  const std::vector<std::uint32_t> allowed = {0xFFFFFFFEU, 0, 5};
  std::vector<float> logits(70);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(i) - 30;
  }
  std::vector<float> expected = logits;
  const auto forbid = [&](std::size_t i) {
    expected[i] = -std::numeric_limits<float>::infinity();
  };
  forbid(0);
  for (std::size_t i = 32; i < 64; ++i) forbid(i);
  forbid(65);
  for (std::size_t i = 67; i < 70; ++i) forbid(i);
  ApplyTokenMask(allowed, logits);
  EXPECT_EQ(logits, expected);
}

TEST(TokenMaskDeathTest, NeedsABitForEachLogit) {
  const std::vector<std::uint32_t> allowed(2);
  std::vector<float> logits(65);
  EXPECT_DEATH(ApplyTokenMask(allowed, logits), "64");
}

}  // namespace
}  // namespace fucina::ops
