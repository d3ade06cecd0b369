// Splits and merges against slow references, hostile lengths, threads.

#include <ctime>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fucina/text/tokenizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/text/vocab_file.h"

namespace fucina {
namespace {

using ::testing::ElementsAre;

// Byte pair encoding as its paper says it: rescan, merge the lowest rank, the
// leftmost of equals.
std::vector<std::string> SlowMerges(
    absl::string_view piece,
    const std::map<std::pair<std::string, std::string>, int>& ranks) {
  std::vector<std::string> symbols;
  for (const char c : piece) symbols.emplace_back(1, c);
  while (true) {
    int best = -1;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks.find({symbols[i], symbols[i + 1]});
      if (found == ranks.end()) continue;
      if (best < 0 || found->second < best) {
        best = found->second;
        at = i;
      }
    }
    if (best < 0) return symbols;
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(TokenizerMerge, RandomMergesEqualTheRescan) {
  std::mt19937 random(17);
  for (int round = 0; round < 60; ++round) {
    VocabFile vocab = VocabFile::WithBytes();
    std::vector<std::string> symbols = {"a", "b", "c"};
    std::map<std::pair<std::string, std::string>, int> ranks;
    std::map<std::string, TokenId> ids = {{"a", 'a'}, {"b", 'b'}, {"c", 'c'}};
    const int num_merges = 1 + static_cast<int>(random() % 40);
    for (int rank = 0; rank < num_merges; ++rank) {
      const std::string left = symbols[random() % symbols.size()];
      const std::string right = symbols[random() % symbols.size()];
      vocab.merges.push_back(left + " " + right);
      ranks.emplace(std::pair(left, right), rank);
      const std::string both = left + right;
      if (both.size() > 20) continue;
      symbols.push_back(both);
      // Some results are no tokens and come out byte by byte.
      if (random() % 5 != 0 && ids.count(both) == 0) {
        ids[both] = vocab.Add(both);
      }
    }
    // Ranks out of step with the order of the tokens.
    const auto tokenizer = MustLoad(vocab);
    for (int k = 0; k < 30; ++k) {
      std::string text;
      const unsigned longest = k % 3 == 0 ? 300 : 40;  // both implementations
      for (unsigned n = 1 + random() % longest; n > 0; --n) {
        text += "abc"[random() % 3];
      }
      std::vector<TokenId> expected;
      for (const std::string& symbol : SlowMerges(text, ranks)) {
        if (const auto id = ids.find(symbol); id != ids.end()) {
          expected.push_back(id->second);
        } else {
          expected.insert(expected.end(), symbol.begin(), symbol.end());
        }
      }
      EXPECT_EQ(MustEncode(*tokenizer, text), expected) << text;
      EXPECT_EQ(MustEncode(*tokenizer, text), expected) << "again: " << text;
    }
  }
}

TEST(TokenizerMerge, ATokenThatNoMergeReachesIsNotUsedUnlessTheFamilySaysSo) {
  for (const auto& [pre, whole] :
       {std::pair{"qwen2", false}, std::pair{"llama-bpe", true}}) {
    VocabFile vocab = VocabFile::WithBytes();
    vocab.pre = pre;
    const TokenId bc = vocab.AddMerge("b", "c");
    const TokenId abc = vocab.Add("abc");
    const auto tokenizer = MustLoad(vocab);
    for (int again = 0; again < 2; ++again) {
      if (whole) {
        EXPECT_THAT(MustEncode(*tokenizer, "abc"), ElementsAre(abc));
      } else {
        EXPECT_THAT(MustEncode(*tokenizer, "abc"), ElementsAre('a', bc));
      }
    }
  }
}

std::vector<std::string> SplitOf(const std::string& pre,
                                 const std::string& text) {
  VocabFile vocab = VocabFile::WithBytes();
  vocab.AddMerge("a", "b");
  const auto tokenizer = MustLoad(vocab, {.pre = pre});
  std::vector<std::string> pieces;
  const auto split = tokenizer->Split(text);
  EXPECT_TRUE(split.ok());
  for (const absl::string_view piece : *split) pieces.emplace_back(piece);
  return pieces;
}

TEST(TokenizerSplit, ConsequencesOfTheExpressions) {
  EXPECT_THAT(SplitOf("smollm", "a  5"), ElementsAre("a", "  ", "5"));
  EXPECT_THAT(SplitOf("gpt-2", "a  5"), ElementsAre("a", " ", " 5"));
  EXPECT_THAT(SplitOf("qwen2", "1234567"),
              ElementsAre("1", "2", "3", "4", "5", "6", "7"));
  EXPECT_THAT(SplitOf("glm4", "1234567"), ElementsAre("123", "456", "7"));
  EXPECT_THAT(SplitOf("default", "x=12345;"),
              ElementsAre("x", "=", "123", "45", ";"));
  EXPECT_THAT(SplitOf("qwen2", "DON'T don't"),
              ElementsAre("DON", "'T", " don", "'t"));
  EXPECT_THAT(SplitOf("gpt-2", "DON'T don't"),
              ElementsAre("DON", "'", "T", " don", "'t"));
  EXPECT_THAT(SplitOf("qwen2", "x \r\n \n  y"),
              ElementsAre("x", " \r\n \n", " ", " y"));
  EXPECT_THAT(SplitOf("qwen2", "foo();\r\n\r\nbar "),
              ElementsAre("foo", "();\r\n\r\n", "bar", " "));
  EXPECT_THAT(SplitOf("qwen2", "e\u0301x"), ElementsAre("e", "\u0301x"));
  EXPECT_THAT(SplitOf("qwen35", "e\u0301x"), ElementsAre("e\u0301x"));
  EXPECT_THAT(SplitOf("qwen2", "'\u017F"), ElementsAre("'\u017F"));
  EXPECT_THAT(SplitOf("qwen2", "\u180E\u00A0x"),
              ElementsAre("\u180E", "\u00A0x"));
  EXPECT_THAT(SplitOf("qwen2", "a\xFF\xE4\xB8"),
              ElementsAre("a", "\xFF\xE4\xB8"));
}

TEST(TokenizerSplit, PiecesAreTheTextAndNoneIsEmpty) {
  std::mt19937 random(23);
  VocabFile vocab = VocabFile::WithBytes();
  vocab.AddMerge("a", "b");
  for (const char* pre :
       {"qwen2", "qwen35", "glm4", "gpt-2", "smollm", "default"}) {
    const auto tokenizer = MustLoad(vocab, {.pre = pre});
    for (int round = 0; round < 500; ++round) {
      std::string text;
      for (unsigned n = random() % 80; n > 0; --n) {
        text += random() % 3 == 0 ? static_cast<char>(random())
                                  : "a 1\n\r'.\xC3"[random() % 8];
      }
      std::string joined;
      const auto split = tokenizer->Split(text);
      ASSERT_TRUE(split.ok());
      for (const absl::string_view piece : *split) {
        EXPECT_FALSE(piece.empty());
        joined.append(piece.data(), piece.size());
      }
      EXPECT_EQ(joined, text);
    }
  }
}

// TOK-6.
TEST(TokenizerDecode, AnyIdAndAnySequence) {
  const auto tokenizer = LoadAtlas();
  for (TokenId id = -3; id < tokenizer->vocab_size() + 3; ++id) {
    const std::string one = tokenizer->Decode(std::span(&id, 1));
    EXPECT_EQ(one, tokenizer->DecodeToken(id));
    if (id < 0 || id >= tokenizer->real_vocab_size()) {
      EXPECT_EQ(one, "");
    }
  }
  std::mt19937 random(29);
  for (int round = 0; round < 100; ++round) {
    std::vector<TokenId> ids;
    std::string joined;
    for (int i = 0; i < 100; ++i) {
      ids.push_back(static_cast<TokenId>(random() % 5000) - 100);
      joined += std::string(tokenizer->TokenBytes(ids.back()));
    }
    EXPECT_EQ(tokenizer->Decode(ids, {.show_control = true}), joined);
  }
  EXPECT_EQ(tokenizer->DecodeToken(1 << 30), "");
  EXPECT_EQ(tokenizer->DecodeToken(-(1 << 30)), "");
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

TEST(TokenizerMerge, AMebibyteWithoutASpaceTakesUnderASecond) {
  const auto tokenizer = LoadAtlas();
  std::mt19937 random(31);
  std::string letters;
  std::string markers;
  while (letters.size() < (1 << 20)) {
    letters += static_cast<char>('a' + random() % 26);
  }
  while (markers.size() < (1 << 20)) markers += "<|im_start|";
  for (const std::string& text :
       {std::string(1 << 20, 'a'), std::string(1 << 20, ' '),
        std::string(1 << 20, '\n'), std::string(1 << 20, '\0'),
        std::string(1 << 20, '\xFF'), std::string(1 << 20, '<'), letters,
        markers}) {
    // Processor time: other programs must not fail this.
    const std::clock_t start = std::clock();
    const auto ids = MustEncode(*tokenizer, text);
    const double seconds =
        static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    EXPECT_EQ(tokenizer->Decode(ids, {.show_control = true}), text);
    EXPECT_LT(seconds, kSanitized ? 20.0 : 1.0);
  }
}

TEST(TokenizerMerge, ThreadsShareOneTokenizer) {
  const auto tokenizer = LoadAtlas();
  const Golden golden = ReadGolden("atlas.txt");
  std::vector<int> different(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < different.size(); ++i) {
    threads.emplace_back([&, i] {
      for (const GoldenText& sample : golden.texts) {
        const auto ids = tokenizer->Encode(sample.text);
        if (!ids.ok() || *ids != sample.ids.at("qwen2")) ++different[i];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(different, ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace fucina
