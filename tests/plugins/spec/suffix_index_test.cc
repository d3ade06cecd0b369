#include "plugins/spec/suffix_index.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fucina::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Tokens = std::vector<TokenId>;

bool EndsWith(const Tokens& text, std::size_t end, const Tokens& all,
              std::size_t length) {
  return end >= length &&
         std::equal(all.end() - static_cast<std::ptrdiff_t>(length), all.end(),
                    text.begin() + static_cast<std::ptrdiff_t>(end - length));
}

// The longest suffix of `all` that ends in `text` before `limit` tokens, and
// the latest such end.
std::pair<int, std::size_t> BruteForce(const Tokens& text, const Tokens& all,
                                       std::size_t limit) {
  for (std::size_t length = all.size(); length > 0; --length) {
    for (std::size_t end = limit; end >= length; --end) {
      if (EndsWith(text, end, all, length)) {
        return {static_cast<int>(length), end};
      }
    }
  }
  return {0, 0};
}

Tokens Continue(const SuffixIndex& index, std::size_t cap) {
  Tokens draft(cap);
  draft.resize(static_cast<std::size_t>(index.Continue(draft)));
  return draft;
}

Tokens From(const SuffixIndex& index, const SuffixIndex::Cursor& cursor,
            std::size_t cap) {
  Tokens draft(cap);
  draft.resize(static_cast<std::size_t>(index.ContinueFrom(cursor, draft)));
  return draft;
}

SuffixIndex IndexOf(const Tokens& tokens) {
  SuffixIndex index;
  for (const TokenId token : tokens) EXPECT_TRUE(index.Append(token));
  return index;
}

// Length and latest place after every token, and the bounds on size.
void CheckStream(const Tokens& stream, bool latest) {
  SuffixIndex index;
  Tokens all;
  for (const TokenId token : stream) {
    ASSERT_TRUE(index.Append(token));
    all.push_back(token);
    const auto [length, end] = BruteForce(all, all, all.size() - 1);
    ASSERT_EQ(index.match_length(), length) << "after " << all.size();
    if (length == 0) continue;
    const Tokens draft = Continue(index, 4);
    const std::size_t period = all.size() - end;
    ASSERT_FALSE(draft.empty());
    for (std::size_t i = 0; latest && i < draft.size(); ++i) {
      ASSERT_EQ(draft[i], all[end + i % period]) << "after " << all.size();
    }
  }
  const std::size_t n = std::max<std::size_t>(stream.size(), 3);
  EXPECT_LE(index.num_states(), 2 * n);
  EXPECT_LE(index.num_transitions(), 3 * n);
}

TEST(SuffixIndexTest, FindsWhatBruteForceFinds) {
  for (const int alphabet : {2, 5, 31}) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      std::mt19937 random(seed);
      Tokens stream(200);
      for (TokenId& token : stream) {
        token = 151000 + static_cast<TokenId>(random() % alphabet);
      }
      SCOPED_TRACE(testing::Message() << alphabet << " seed " << seed);
      CheckStream(stream, /*latest=*/true);
    }
  }
}

TEST(SuffixIndexTest, FindsItInStreamsMadeToBeHard) {
  CheckStream(Tokens(10, 7), true);
  CheckStream({1, 2, 3, 2, 3}, true);
  CheckStream({1, 2, 1, 1, 2, 1, 2, 1, 1, 2, 1, 1, 2}, true);
  CheckStream({1, 2, 3, 1, 2, 9}, true);
  CheckStream({4, 5, 6, 4, 5, 6, 4, 5, 6, 4, 5, 6}, true);
  // de Bruijn of order 4 over two letters
  CheckStream({0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 0, 0}, true);
  // Long chains of links: the place need not be the latest, the length must.
  CheckStream(Tokens(300, 7), false);
}

TEST(SuffixIndexTest, FindsEdgesOfStatesWithManyOfThem) {
  Tokens stream;
  for (TokenId token = 0; token < 400; ++token) {
    stream.push_back(1000);
    stream.push_back(token);
  }
  stream.insert(stream.end(), {1000, 17, 1000, 399, 1000, 3});
  CheckStream(stream, true);
}

TEST(SuffixIndexTest, ContinuesTheLatestPlace) {
  EXPECT_THAT(
      Continue(IndexOf({10, 11, 12, 90, 10, 11, 12, 91, 10, 11, 12}), 4),
      ElementsAre(91, 10, 11, 12));
}

TEST(SuffixIndexTest, SaysNothingAfterANewToken) {
  SuffixIndex index = IndexOf({1, 2, 3, 1, 2, 9});
  EXPECT_THAT(Continue(index, 8), IsEmpty());
  ASSERT_TRUE(index.Append(2));
  ASSERT_TRUE(index.Append(9));
  EXPECT_EQ(index.match_length(), 2);
}

TEST(SuffixIndexTest, ContinuesLoopsAsFarAsAsked) {
  for (int period = 1; period <= 6; ++period) {
    Tokens stream = {99};
    for (int i = 0; i < 2 * period; ++i) stream.push_back(i % period);
    const Tokens draft = Continue(IndexOf(stream), 16);
    ASSERT_EQ(draft.size(), 16U) << period;
    for (int i = 0; i < 16; ++i) EXPECT_EQ(draft[i], i % period) << period;
  }
}

TEST(SuffixIndexTest, FollowsAForeignStream) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Tokens document(80);
    for (TokenId& token : document) token = static_cast<TokenId>(random() % 4);
    const SuffixIndex index = IndexOf(document);
    SuffixIndex::Cursor cursor;
    Tokens query;
    for (int i = 0; i < 150; ++i) {
      const auto token = static_cast<TokenId>(random() % 5);  // 4 is unknown
      query.push_back(token);
      index.Advance(cursor, token);
      ASSERT_EQ(cursor.length,
                BruteForce(document, query, document.size()).first)
          << seed << " " << i;
    }
  }
  const SuffixIndex index = IndexOf({1, 2, 3, 4, 5, 1, 2, 3, 9});
  SuffixIndex::Cursor cursor;
  for (const TokenId token : {1, 2, 3}) index.Advance(cursor, token);
  EXPECT_THAT(From(index, cursor, 4), ElementsAre(9));
  index.Advance(cursor, 9);
  EXPECT_EQ(cursor.length, 4);
  EXPECT_THAT(From(index, cursor, 4), IsEmpty());
  index.Advance(cursor, -1);
  EXPECT_EQ(cursor.length, 0);
}

TEST(SuffixIndexTest, AnswersNothingOnceItIsFull) {
  SuffixIndex index;
  index.set_max_tokens(6);
  for (const TokenId token : {1, 2, 1, 2, 1, 2}) {
    ASSERT_TRUE(index.Append(token));
  }
  EXPECT_FALSE(index.Append(1));
  EXPECT_TRUE(index.degraded());
  EXPECT_THAT(Continue(index, 4), IsEmpty());
  EXPECT_FALSE(index.Append(1));
  index.Clear();
  EXPECT_TRUE(index.Append(1));
}

TEST(SuffixIndexTest, HoldsAtMost64BytesPerToken) {
  // Text-like: words of a few tokens, frequent ones more often.
  std::mt19937 random(3);
  std::vector<Tokens> words(3000);
  for (Tokens& word : words) {
    word.resize(1 + random() % 5);
    for (TokenId& token : word) token = static_cast<TokenId>(random() % 20000);
  }
  SuffixIndex index;
  while (index.tokens().size() < 200000) {
    const double share = std::uniform_real_distribution<>(0, 1)(random);
    const auto rank = static_cast<std::size_t>(share * share * share * 3000);
    for (const TokenId token : words[rank]) ASSERT_TRUE(index.Append(token));
  }
  EXPECT_LE(index.bytes() / index.tokens().size(), 64U);
}

}  // namespace
}  // namespace fucina::spec
