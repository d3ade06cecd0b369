#include "plugins/spec/suffix_index.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <utility>
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

// The period in which a stream goes round at its end, when the match of that
// length says nothing else; 0 for none.
std::size_t PeriodOf(const Tokens& all, std::size_t match) {
  // For each period, how long the stream equals itself that much earlier.
  std::vector<std::size_t> lengths(all.size() + 1, 0);
  for (std::size_t p = 1; p < all.size(); ++p) {
    while (lengths[p] + p < all.size() &&
           all[all.size() - 1 - lengths[p]] ==
               all[all.size() - 1 - lengths[p] - p]) {
      ++lengths[p];
    }
  }
  for (std::size_t length = match; length > 0; --length) {
    for (std::size_t p = 1; p < all.size(); ++p) {
      if (lengths[p] < length) continue;
      // The latest place of the suffix of that length.
      const bool longest =
          std::find(lengths.begin(), lengths.end(), length) != lengths.end();
      if (longest && length >= 2 * p && match <= length + p) return p;
      break;
    }
  }
  return 0;
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
    std::size_t period = all.size() - end;
    if (static_cast<std::size_t>(length) < period) {
      const std::size_t loop = PeriodOf(all, static_cast<std::size_t>(length));
      if (loop > 0) period = loop;
    }
    ASSERT_FALSE(draft.empty());
    for (std::size_t i = 0; latest && i < draft.size(); ++i) {
      ASSERT_EQ(draft[i], all[all.size() - period + i % period])
          << "after " << all.size();
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

// What ended earlier need not end again at the same place, but where it began
// at the same place it does.
TEST(SuffixIndexTest, LoopsThatEndedBeforeGoOn) {
  EXPECT_THAT(Continue(IndexOf({1, 7, 7, 7, 7, 7, 2, 3, 7, 7, 7}), 4),
              ElementsAre(7, 7, 7, 7));
  EXPECT_THAT(
      Continue(IndexOf({5, 6, 5, 6, 5, 6, 5, 6, 9, 1, 5, 6, 5, 6, 5, 6}), 4),
      ElementsAre(5, 6, 5, 6));
  // An indented line like one above.
  EXPECT_THAT(Continue(IndexOf({1, 7, 7, 7, 2, 3, 1, 7, 7, 7}), 3),
              ElementsAre(2, 3, 1));
}

// A document of few letters, so that most strings come up several times.
TEST(SuffixIndexTest, FollowsAForeignStream) {
  for (unsigned seed = 0; seed < 40; ++seed) {
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
      const int length = BruteForce(document, query, document.size()).first;
      ASSERT_EQ(cursor.length, length) << seed << " " << i;
      if (length == 0) continue;
      // The latest place that is followed by something.
      const Tokens match(query.end() - length, query.end());
      const auto [found, end] =
          BruteForce(document, match, document.size() - 1);
      Tokens expected;
      if (found == length) {
        for (std::size_t j = end; j < document.size() && j < end + 5; ++j) {
          expected.push_back(document[j]);
        }
      }
      ASSERT_EQ(From(index, cursor, 5), expected) << seed << " " << i;
    }
  }
}

TEST(SuffixIndexTest, AForeignStreamEndsWithTheDocument) {
  const SuffixIndex index = IndexOf({1, 2, 3, 4, 5, 1, 2, 3, 9});
  SuffixIndex::Cursor cursor;
  for (const TokenId token : {1, 2, 3}) index.Advance(cursor, token);
  EXPECT_THAT(From(index, cursor, 4), ElementsAre(9));
  index.Advance(cursor, 9);
  EXPECT_EQ(cursor.length, 4);
  EXPECT_THAT(From(index, cursor, 4), IsEmpty());
  index.Advance(cursor, -1);
  EXPECT_EQ(cursor.length, 0);
  EXPECT_THAT(From(index, cursor, 4), IsEmpty());
  // An empty document knows nothing.
  const SuffixIndex none;
  none.Advance(cursor, 1);
  EXPECT_EQ(cursor.length, 0);
  EXPECT_THAT(From(none, cursor, 4), IsEmpty());
}

TEST(SuffixIndexTest, ForgetsTokensAsIfTheyHadNotCome) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Tokens stream(120);
    for (TokenId& token : stream) token = static_cast<TokenId>(random() % 3);
    SuffixIndex cut = IndexOf(stream);
    const std::size_t kept = random() % (stream.size() + 1);
    cut.Truncate(kept);
    stream.resize(kept);
    SuffixIndex fresh = IndexOf(stream);
    for (int i = 0; i < 30; ++i) {
      ASSERT_EQ(cut.match_length(), fresh.match_length()) << seed;
      ASSERT_EQ(Continue(cut, 6), Continue(fresh, 6)) << seed;
      ASSERT_EQ(cut.num_states(), fresh.num_states()) << seed;
      const auto token = static_cast<TokenId>(random() % 3);
      ASSERT_TRUE(cut.Append(token) && fresh.Append(token));
    }
  }
}

TEST(SuffixIndexTest, RoomAheadChangesNoAnswer) {
  std::mt19937 random(5);
  SuffixIndex plain;
  SuffixIndex ready;
  ready.Expect(20000);
  for (int i = 0; i < 20000; ++i) {
    const auto token = static_cast<TokenId>(random() % 40);
    ASSERT_TRUE(plain.Append(token) && ready.Append(token));
    ASSERT_EQ(plain.match_length(), ready.match_length());
    ASSERT_EQ(Continue(plain, 4), Continue(ready, 4));
  }
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

// Text-like: words of a few tokens, frequent ones more often, and now and then
// a stretch of the text once more.
class TextLike {
 public:
  TextLike() : words_(60000) {
    for (Tokens& word : words_) {
      word.resize(1 + random_() % 4);
      for (TokenId& token : word) {
        token = static_cast<TokenId>(random_() % 50000);
      }
    }
  }
  TokenId Next() {
    while (waiting_.empty()) {
      if (text_.size() > 1000 && random_() % 40 == 0) {
        const std::size_t start = random_() % (text_.size() - 100);
        const std::size_t length = 4 + random_() % 60;
        waiting_.assign(
            text_.rbegin() +
                static_cast<std::ptrdiff_t>(text_.size() - start - length),
            text_.rbegin() + static_cast<std::ptrdiff_t>(text_.size() - start));
      } else {
        // Zipf's law: the logarithm of the rank is about uniform.
        const double share = std::uniform_real_distribution<>(0, 1)(random_);
        const Tokens& word =
            words_[static_cast<std::size_t>(std::pow(words_.size(), share)) -
                   1];
        waiting_.assign(word.rbegin(), word.rend());
      }
    }
    text_.push_back(waiting_.back());
    waiting_.pop_back();
    return text_.back();
  }

 private:
  std::mt19937 random_{3};
  std::vector<Tokens> words_;
  Tokens text_;
  Tokens waiting_;  // the next token last
};

TEST(SuffixIndexTest, HoldsAtMost64BytesPerToken) {
  TextLike text;
  SuffixIndex index;
  for (std::size_t count = 1; count <= 1'000'000; ++count) {
    ASSERT_TRUE(index.Append(text.Next()));
    // Right behind each growth too, once large pages weigh little.
    if (count > 700'000 && count % 1000 == 0) {
      ASSERT_LE(index.bytes() / count, 64U) << count;
    }
  }
  // As real text has, or the figure would mean nothing.
  const double states = static_cast<double>(index.num_states()) / 1e6;
  const double edges = static_cast<double>(index.num_transitions()) / 1e6;
  EXPECT_GT(states, 1.3);
  EXPECT_LT(states, 1.6);
  EXPECT_GT(edges, 1.7);
  EXPECT_LT(edges, 2.2);
}

// Streams made to be hard stay linear in memory, and in time: something
// quadratic would not end within the test's.
TEST(SuffixIndexTest, HardStreamsStayLinear) {
  constexpr std::size_t kCount = 150'000;
  std::mt19937 random(1);
  const std::vector<std::function<TokenId(std::size_t)>> streams = {
      [](std::size_t) { return 7; },
      [](std::size_t i) { return static_cast<TokenId>(i % 2); },
      [&](std::size_t) { return static_cast<TokenId>(random() % 2); },
      [](std::size_t i) { return static_cast<TokenId>(i); },
      // One token with as many successors as there are.
      [](std::size_t i) {
        return static_cast<TokenId>(i % 2 == 0 ? 0 : i / 2 + 1);
      },
      // Ever longer runs: a b a a b a a a b
      [run = std::size_t{0}, left = std::size_t{0}](std::size_t) mutable {
        if (left > 0) {
          --left;
          return 1;
        }
        left = ++run;
        return 2;
      },
      // Bits of the ruler sequence: every string comes again, ever later.
      [](std::size_t i) {
        TokenId bit = 0;
        for (std::size_t value = i + 1; value % 2 == 0; value /= 2) ++bit;
        return bit;
      },
      // The same half twice.
      [](std::size_t i) {
        const std::uint64_t x = (i % (kCount / 2)) * 0x9E3779B97F4A7C15U;
        return static_cast<TokenId>((x >> 40) % 100000);
      }};
  for (std::size_t s = 0; s < streams.size(); ++s) {
    SuffixIndex index;
    auto next = streams[s];
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_TRUE(index.Append(next(i)));
    EXPECT_LE(index.num_states(), 2 * kCount) << s;
    EXPECT_LE(index.num_transitions(), 3 * kCount) << s;
    EXPECT_LE(index.bytes(), 200 * kCount) << s;
  }
}

}  // namespace
}  // namespace fucina::spec
