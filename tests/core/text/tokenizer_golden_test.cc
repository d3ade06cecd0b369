// Ids held against Hugging Face tokenizers; see
// tests/oracles/make_tokenizer_goldens.py.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "fucina/text/tokenizer.h"
#include "gtest/gtest.h"
#include "tests/core/text/vocab_file.h"

namespace fucina {
namespace {

constexpr const char* kPreTokenizers[] = {
    "qwen2", "qwen35", "glm4", "llama-bpe", "gpt-2", "smollm", "default"};

TEST(TokenizerGolden, AtlasVocabularyUnderEveryPreTokenizer) {
  const Golden golden = ReadGolden("atlas.txt");
  ASSERT_GT(golden.texts.size(), 400u);
  for (const char* pre : kPreTokenizers) {
    const auto tokenizer = LoadAtlas({.pre = pre});
    ASSERT_NE(tokenizer, nullptr);
    EXPECT_EQ(tokenizer->pre(), pre);
    for (const GoldenText& sample : golden.texts) {
      const auto listed = sample.ids.find(pre);
      const std::vector<TokenId>& expected =
          listed != sample.ids.end() ? listed->second : sample.ids.at("qwen2");
      EXPECT_EQ(MustEncode(*tokenizer, sample.text), expected)
          << pre << ": " << absl::Utf8SafeCEscape(sample.text);
    }
  }
}

// The published vocabulary at its real size and with its real ids; only the
// tokens and merges that the samples meet have their texts.
VocabFile Qwen3Cut(const Golden& golden) {
  VocabFile vocab;
  vocab.merges = golden.merges;
  for (int id = 0; id < 151936; ++id) {
    vocab.Add(absl::StrCat("[PAD", id, "]"), 5);
  }
  for (const auto& [id, token] : golden.tokens) {
    vocab.types[static_cast<std::size_t>(id)] = token.first;
    vocab.tokens[static_cast<std::size_t>(id)] = token.second;
  }
  vocab.extra.AddU32("tokenizer.ggml.eos_token_id", 151645);
  vocab.extra.AddU32("tokenizer.ggml.bos_token_id", 151643);
  vocab.extra.AddU32("tokenizer.ggml.padding_token_id", 151643);
  vocab.extra.AddBool("tokenizer.ggml.add_bos_token", false);
  return vocab;
}

TEST(TokenizerGolden, PublishedQwen3Ids) {
  const Golden golden = ReadGolden("qwen3_cut.txt");
  ASSERT_GT(golden.texts.size(), 100u);
  VocabFile vocab = Qwen3Cut(golden);
  const auto tokenizer = MustLoad(vocab);
  ASSERT_NE(tokenizer, nullptr);
  for (const GoldenText& sample : golden.texts) {
    const std::vector<TokenId> ids = MustEncode(*tokenizer, sample.text);
    EXPECT_EQ(ids, sample.ids.at("qwen2"))
        << absl::Utf8SafeCEscape(sample.text);
    EXPECT_EQ(tokenizer->Decode(ids, {.show_control = true}), sample.text);
  }
  EXPECT_EQ(tokenizer->vocab_size(), 151936);
  EXPECT_EQ(tokenizer->real_vocab_size(), 151669);
  EXPECT_EQ(tokenizer->notes().size(), 0u);
}

TEST(TokenizerGolden, Qwen3MarkersAsPlainTextWhenTheyAreNotParsed) {
  VocabFile vocab = Qwen3Cut(ReadGolden("qwen3_cut.txt"));
  const auto tokenizer = MustLoad(vocab);
  // From the verified table: 27 91 318 4906 91 29 872 needs merges that the cut
  // lacks, so only the property is checked: no control id, same bytes.
  const std::string text = "<|im_start|>user<think>";
  for (const ParseSpecial parse :
       {ParseSpecial::kUserDefined, ParseSpecial::kNone}) {
    const std::vector<TokenId> ids =
        MustEncode(*tokenizer, text, {.parse_special = parse});
    for (const TokenId id : ids) {
      EXPECT_NE(tokenizer->ClassOf(id), TokenClass::kControl);
    }
    EXPECT_EQ(ids.back() == 151667, parse == ParseSpecial::kUserDefined);
    EXPECT_EQ(tokenizer->Decode(ids), text);
  }
}

TEST(TokenizerGolden, Qwen3StopSetIsTheUnion) {
  VocabFile vocab = Qwen3Cut(ReadGolden("qwen3_cut.txt"));
  const auto tokenizer = MustLoad(vocab);
  const std::vector<TokenId> stop(tokenizer->stop_tokens().begin(),
                                  tokenizer->stop_tokens().end());
  EXPECT_EQ(stop,
            (std::vector<TokenId>{151643, 151645, 151662, 151663, 151664}));
  EXPECT_TRUE(tokenizer->IsStop(151645));
  EXPECT_FALSE(tokenizer->IsStop(151644));
  EXPECT_EQ(tokenizer->FindSpecial("<think>"), 151667);
  EXPECT_EQ(tokenizer->ClassOf(151667), TokenClass::kUserDefined);
  EXPECT_EQ(tokenizer->ClassOf(151645), TokenClass::kControl);
  EXPECT_EQ(tokenizer->ClassOf(151669), TokenClass::kUnused);
}

TEST(TokenizerGolden, BytesOfBrokenTextKeepTheirValues) {
  const auto tokenizer = LoadAtlas();
  const Golden golden = ReadGolden("qwen3_cut.txt");
  VocabFile vocab = Qwen3Cut(golden);
  const auto qwen = MustLoad(vocab);
  EXPECT_EQ(MustEncode(*qwen, "\xFF"), std::vector<TokenId>{187});
  std::mt19937 random(3);
  const std::string alphabet = std::string("ab 1\n'<|\0", 9) +
                               "\x80\xBF\xC3\xA9\xE4\xB8\xAD\xF0\x9F\xED\xFF";
  for (int round = 0; round < 4000; ++round) {
    std::string text;
    for (unsigned i = random() % 60; i > 0; --i) {
      text += random() % 8 == 0 ? static_cast<char>(random())
                                : alphabet[random() % alphabet.size()];
    }
    EXPECT_EQ(
        tokenizer->Decode(MustEncode(*tokenizer, text), {.show_control = true}),
        text);
  }
}

}  // namespace
}  // namespace fucina
