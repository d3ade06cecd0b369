#include "core/decode/top_candidates.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "gtest/gtest.h"

namespace fucina {
namespace {

std::vector<TokenId> Sorted(std::span<const float> logits, std::size_t count) {
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](TokenId a, TokenId b) {
    return logits[static_cast<std::size_t>(a)] >
           logits[static_cast<std::size_t>(b)];
  });
  ids.resize(count);
  return ids;
}

std::vector<TokenId> Top(std::span<const float> logits, std::size_t count) {
  std::vector<TokenId> ids(count, -1);
  TopCandidates(logits, ids);
  return ids;
}

TEST(TopCandidates, AreThoseOfASort) {
  std::mt19937 random(3);
  for (const std::size_t size :
       {1, 2, 7, 8, 9, 23, 255, 256, 257, 511, 512, 513, 4096, 5000, 151936}) {
    for (const int values : {1, 3, 50, 1 << 20}) {  // few values: many ties
      std::vector<float> logits(size);
      for (float& logit : logits) {
        logit = static_cast<float>(
            static_cast<int>(random() % static_cast<unsigned>(values)) -
            values / 2);
      }
      for (const std::size_t count : {1, 2, 8, 16}) {
        if (count > size) continue;
        EXPECT_EQ(Top(logits, count), Sorted(logits, count))
            << size << " " << values << " " << count;
      }
    }
  }
}

TEST(TopCandidates, OrderDoesNotMatterToTheResult) {
  std::vector<float> up(1000);
  std::iota(up.begin(), up.end(), 0.0F);
  EXPECT_EQ(Top(up, 3), (std::vector<TokenId>{999, 998, 997}));
  std::reverse(up.begin(), up.end());
  EXPECT_EQ(Top(up, 3), (std::vector<TokenId>{0, 1, 2}));
}

TEST(TopCandidates, InfinitiesAreValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> logits(600, -kInfinity);
  logits[500] = 1;
  logits[501] = kInfinity;
  EXPECT_EQ(Top(logits, 4), (std::vector<TokenId>{501, 500, 0, 1}));
}

}  // namespace
}  // namespace fucina
