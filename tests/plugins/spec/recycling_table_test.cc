#include "plugins/spec/recycling_table.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fucina::spec {
namespace {

using ::testing::ElementsAre;

std::vector<TokenId> Chain(const RecyclingTable& table, TokenId token,
                           std::size_t cap) {
  std::vector<TokenId> draft(cap);
  draft.resize(static_cast<std::size_t>(table.Chain(token, draft)));
  return draft;
}

TEST(RecyclingTableTest, ChainsTheBestSuccessors) {
  RecyclingTable table(100);
  table.Replace(5, std::vector<TokenId>{7, 9, 11});
  table.Replace(7, std::vector<TokenId>{3});
  EXPECT_THAT(Chain(table, 5, 8), ElementsAre(7, 3));
  EXPECT_THAT(Chain(table, 5, 1), ElementsAre(7));
  table.Replace(3, std::vector<TokenId>{3});
  EXPECT_THAT(Chain(table, 5, 5), ElementsAre(7, 3, 3, 3, 3));
  table.Clear();
  EXPECT_THAT(Chain(table, 5, 5), ElementsAre());
}

TEST(RecyclingTableTest, MovesWhatFollowedToTheFront) {
  RecyclingTable table(100);
  table.Replace(5, std::vector<TokenId>{7, 9, 11});
  table.Promote(5, 9);
  EXPECT_THAT(table.Row(5), ElementsAre(9, 7, 11, -1, -1, -1, -1, -1));
  table.Replace(6, std::vector<TokenId>{1, 2, 3, 4, 5, 6, 7, 8, 9});
  table.Promote(6, 50);
  EXPECT_THAT(table.Row(6), ElementsAre(50, 1, 2, 3, 4, 5, 6, 7));
}

TEST(RecyclingTableTest, IgnoresTokensOutsideTheVocabulary) {
  RecyclingTable table(10);
  table.Replace(10, std::vector<TokenId>{1});
  table.Replace(-1, std::vector<TokenId>{1});
  table.Promote(-1, 1);
  table.Promote(1, 10);
  table.Replace(2, std::vector<TokenId>{11, 3, -1});
  EXPECT_THAT(Chain(table, 2, 4), ElementsAre(3));
  EXPECT_THAT(Chain(table, 10, 4), ElementsAre());
}

}  // namespace
}  // namespace fucina::spec
