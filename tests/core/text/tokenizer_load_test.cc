// What a vocabulary may be and what is said when it is not.

#include <cstdint>
#include <string>
#include <vector>

#include "fucina/text/tokenizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/text/vocab_file.h"

namespace fucina {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

// A file that loads without a note.
VocabFile Good() {
  VocabFile vocab = VocabFile::WithBytes();
  vocab.AddMerge("a", "b");
  return vocab;
}

std::string ErrorOf(VocabFile& vocab, absl::StatusCode code,
                    const TokenizerOptions& options = {}) {
  const auto tokenizer = Load(vocab, options);
  EXPECT_EQ(tokenizer.status().code(), code) << tokenizer.status();
  EXPECT_THAT(std::string(tokenizer.status().message()),
              StartsWith("test.gguf: "));
  return std::string(tokenizer.status().message());
}

constexpr absl::StatusCode kBad = absl::StatusCode::kInvalidArgument;

// Raw array values, for element types the writer has no call for.
GgufValue RawArray(GgufType element, std::uint64_t count,
                   absl::string_view bytes) {
  return {GgufType::kArray, element, count, bytes};
}

TEST(TokenizerLoad, AGoodFileHasNoNotes) {
  VocabFile vocab = Good();
  const auto tokenizer = MustLoad(vocab);
  EXPECT_THAT(tokenizer->notes(), SizeIs(0));
  EXPECT_TRUE(tokenizer->text_status().ok());
  EXPECT_EQ(tokenizer->vocab_size(), 257);
  EXPECT_EQ(tokenizer->real_vocab_size(), 257);
  EXPECT_THAT(MustEncode(*tokenizer, "abab"), ElementsAre(256, 256));
  EXPECT_EQ(Tokenizer::unicode_version(), "16.0.0");
}

TEST(TokenizerLoad, NoTokenizerAtAll) {
  VocabFile vocab;
  vocab.model = "";
  vocab.pre = "";
  vocab.with_types = false;
  vocab.with_merges = false;
  EXPECT_EQ(ErrorOf(vocab, absl::StatusCode::kNotFound),
            "test.gguf: this GGUF has no tokenizer metadata");
  vocab.model = "no_vocab";
  EXPECT_EQ(ErrorOf(vocab, absl::StatusCode::kNotFound),
            "test.gguf: this GGUF has no tokenizer metadata");
}

TEST(TokenizerLoad, OtherModels) {
  VocabFile vocab = Good();
  vocab.model = "llama";
  EXPECT_EQ(ErrorOf(vocab, absl::StatusCode::kUnimplemented),
            "test.gguf: tokenizer.ggml.model: 'llama' is not supported; this "
            "version reads 'gpt2' (byte-level BPE)");
  vocab.model = "";
  EXPECT_EQ(ErrorOf(vocab, kBad),
            "test.gguf: tokenizer.ggml.model: missing; expected 'gpt2' "
            "(byte-level BPE)");
}

TEST(TokenizerLoad, MissingOrEmptyTokensAndMerges) {
  VocabFile vocab = Good();
  vocab.tokens.clear();
  vocab.types.clear();
  EXPECT_EQ(ErrorOf(vocab, kBad),
            "test.gguf: tokenizer.ggml.tokens: missing; a tokenizer needs its "
            "list of tokens");
  vocab.extra.AddStrings("tokenizer.ggml.tokens", std::vector<std::string>());
  EXPECT_EQ(ErrorOf(vocab, kBad),
            "test.gguf: tokenizer.ggml.tokens: empty; a tokenizer needs its "
            "list of tokens");

  vocab = Good();
  vocab.with_merges = false;
  EXPECT_EQ(ErrorOf(vocab, kBad),
            "test.gguf: tokenizer.ggml.merges: missing; byte-level BPE needs "
            "its merges");
  vocab.with_merges = true;
  vocab.merges.clear();
  EXPECT_EQ(ErrorOf(vocab, kBad),
            "test.gguf: tokenizer.ggml.merges: empty; byte-level BPE needs its "
            "merges");
  vocab.with_merges = false;
  vocab.extra.AddF32s("tokenizer.ggml.scores", std::vector<float>(257));
  EXPECT_EQ(ErrorOf(vocab, kBad),
            "test.gguf: tokenizer.ggml.merges: missing; byte-level BPE needs "
            "its merges. The file has tokenizer.ggml.scores instead: it looks "
            "like a wrong conversion");
}

// LOAD-8.
TEST(TokenizerLoad, ArraysOfAnotherElementType) {
  VocabFile vocab = Good();
  vocab.with_types = false;
  const std::string narrow(257, '\1');
  vocab.extra.AddValue("tokenizer.ggml.token_type",
                       RawArray(GgufType::kI8, 257, narrow));
  EXPECT_EQ(ErrorOf(vocab, kBad),
            "test.gguf: tokenizer.ggml.token_type: expected an array of i32, "
            "found an array of i8");

  vocab.extra.AddI32("tokenizer.ggml.token_type", 1);
  EXPECT_EQ(ErrorOf(vocab, kBad),
            "test.gguf: tokenizer.ggml.token_type: expected an array of i32, "
            "found a single i32");

  vocab.extra.AddStrings("tokenizer.ggml.token_type",
                         std::vector<std::string>(257, "1"));
  EXPECT_EQ(ErrorOf(vocab, kBad),
            "test.gguf: tokenizer.ggml.token_type: expected an array of i32, "
            "found an array of string");

  vocab = Good();
  vocab.tokens.clear();
  vocab.extra.AddI32s("tokenizer.ggml.tokens", std::vector<std::int32_t>(257));
  EXPECT_EQ(ErrorOf(vocab, kBad),
            "test.gguf: tokenizer.ggml.tokens: expected an array of string, "
            "found an array of i32");

  vocab = Good();
  vocab.with_merges = false;
  vocab.extra.AddU32s("tokenizer.ggml.merges", std::vector<std::uint32_t>(9));
  EXPECT_EQ(ErrorOf(vocab, kBad),
            "test.gguf: tokenizer.ggml.merges: expected an array of string, "
            "found an array of u32");

  vocab = Good();
  vocab.extra.AddI32s("tokenizer.ggml.scores", std::vector<std::int32_t>(257));
  EXPECT_EQ(ErrorOf(vocab, kBad),
            "test.gguf: tokenizer.ggml.scores: expected an array of f32, found "
            "an array of i32");

  vocab = Good();
  vocab.model = "";
  vocab.extra.AddU32("tokenizer.ggml.model", 2);
  EXPECT_THAT(ErrorOf(vocab, kBad), HasSubstr("tokenizer.ggml.model"));

  vocab = Good();
  vocab.extra.AddString("tokenizer.ggml.eos_token_id", "2");
  EXPECT_THAT(ErrorOf(vocab, kBad), HasSubstr("tokenizer.ggml.eos_token_id"));

  vocab = Good();
  vocab.extra.AddString("tokenizer.ggml.add_bos_token", "yes");
  EXPECT_THAT(ErrorOf(vocab, kBad), HasSubstr("tokenizer.ggml.add_bos_token"));
}

// LOAD-9.
TEST(TokenizerLoad, ArraysOfDifferentLengths) {
  for (const int count : {1, 256, 258}) {
    VocabFile vocab = Good();
    vocab.types.assign(static_cast<std::size_t>(count), 1);
    EXPECT_EQ(ErrorOf(vocab, kBad),
              absl::StrCat("test.gguf: tokenizer.ggml.token_type: expected 257 "
                           "elements, one for each of tokenizer.ggml.tokens, "
                           "found ",
                           count));
  }
  VocabFile vocab = Good();
  vocab.extra.AddF32s("tokenizer.ggml.scores", std::vector<float>(3));
  EXPECT_EQ(ErrorOf(vocab, kBad),
            "test.gguf: tokenizer.ggml.scores: expected 257 elements, one for "
            "each of tokenizer.ggml.tokens, found 3");
}

TEST(TokenizerLoad, MoreTokensThanEmbeddingRows) {
  const auto with_rows = [](std::uint64_t rows) {
    VocabFile vocab = Good();
    const std::uint64_t ne[] = {4, rows};
    vocab.extra.AddF32Tensor("token_embd.weight", ne,
                             std::vector<float>(4 * rows));
    return vocab;
  };
  VocabFile vocab = with_rows(256);
  EXPECT_EQ(ErrorOf(vocab, kBad),
            "test.gguf: tokenizer.ggml.tokens: 257 tokens, but tensor "
            "'token_embd.weight' has only 256 rows");
  // Padding rows are normal.
  for (const std::uint64_t rows : {257, 300}) {
    vocab = with_rows(rows);
    EXPECT_THAT(MustLoad(vocab)->notes(), SizeIs(0));
  }
}

TEST(TokenizerLoad, ClassesOutOfRange) {
  VocabFile vocab = Good();
  vocab.types[7] = 9;
  EXPECT_EQ(ErrorOf(vocab, kBad),
            "test.gguf: tokenizer.ggml.token_type[7]: expected 1 to 6, found "
            "9");
  vocab.types[7] = -1;
  EXPECT_THAT(ErrorOf(vocab, kBad), HasSubstr("found -1"));
  vocab.types[7] = 6;
  EXPECT_EQ(ErrorOf(vocab, kBad),
            "test.gguf: tokenizer.ggml.tokens[7]: of type byte, so expected "
            "<0x00> to <0xFF>");
  vocab.types[7] = 0;
  EXPECT_THAT(MustLoad(vocab)->notes(),
              ElementsAre("tokenizer.ggml.token_type: 1 tokens have the "
                          "undefined type 0; they are taken as normal"));
}

TEST(TokenizerLoad, AnEndlessSpecialTokenIsRefused) {
  VocabFile vocab = Good();
  vocab.Add(std::string(256, 'x'), 3);
  MustLoad(vocab);
  vocab.Add(std::string(257, 'x'), 4);
  EXPECT_EQ(ErrorOf(vocab, kBad),
            "test.gguf: tokenizer.ggml.tokens[258]: a special token of 257 "
            "bytes; at most 256 are supported");
}

TEST(TokenizerLoad, WithoutTypesTheShapeDecides) {
  VocabFile vocab = Good();
  const TokenId control = vocab.Add("<|end|>");
  vocab.Add("<||");
  vocab.with_types = false;
  const auto tokenizer = MustLoad(vocab);
  EXPECT_EQ(tokenizer->ClassOf(control), TokenClass::kControl);
  EXPECT_EQ(tokenizer->ClassOf(control + 1), TokenClass::kNormal);
  EXPECT_THAT(MustEncode(*tokenizer, "x<|end|>"), ElementsAre('x', control));
}

TEST(TokenizerLoad, EmptyTokensAreUnused) {
  VocabFile vocab = Good();
  const TokenId empty = vocab.Add("");
  const TokenId last = vocab.Add("<e>", 4);
  const auto tokenizer = MustLoad(vocab);
  EXPECT_EQ(tokenizer->ClassOf(empty), TokenClass::kUnused);
  EXPECT_EQ(tokenizer->TokenBytes(empty), "");
  EXPECT_EQ(tokenizer->real_vocab_size(), last + 1);
}

TEST(TokenizerLoad, DuplicateTokensLowestIdWins) {
  VocabFile vocab = Good();
  vocab.Add(InAlphabet("ab"));
  vocab.Add("<x>", 3);
  vocab.Add("<x>", 4);
  const auto tokenizer = MustLoad(vocab);
  EXPECT_THAT(tokenizer->notes(),
              ElementsAre("tokenizer.ggml.tokens: 2 tokens repeat an earlier "
                          "one, first id 257 'ab'; the lowest id of a text is "
                          "used"));
  EXPECT_THAT(MustEncode(*tokenizer, "ab"), ElementsAre(256));
  EXPECT_THAT(MustEncode(*tokenizer, "<x>"), ElementsAre(258));
  EXPECT_EQ(tokenizer->TokenBytes(257), "ab");
}

TEST(TokenizerLoad, CharactersOutsideTheAlphabetDecodeToThemselves) {
  VocabFile vocab = Good();
  const TokenId id = vocab.Add("x\xE4\xB8\xAD y");
  const auto tokenizer = MustLoad(vocab);
  EXPECT_EQ(tokenizer->TokenBytes(id), "x\xE4\xB8\xAD y");
  EXPECT_THAT(tokenizer->notes(),
              ElementsAre(HasSubstr("1 normal tokens have characters outside "
                                    "the byte alphabet, first id 257")));
}

TEST(TokenizerLoad, OddMergesAreNotedAndKeepTheirRank) {
  VocabFile vocab = VocabFile::WithBytes();
  vocab.merges = {"ab", "a ", "x\xE4\xB8\xAD y"};  // all malformed
  const TokenId ab = vocab.AddMerge("a", "b");
  const auto tokenizer = MustLoad(vocab);
  EXPECT_THAT(MustEncode(*tokenizer, "ab"), ElementsAre(ab));
  EXPECT_THAT(tokenizer->notes(),
              ElementsAre("tokenizer.ggml.merges: 3 merges are not 'left "
                          "right' in the byte alphabet and are skipped, first "
                          "number 0 'ab'"));
}

TEST(TokenizerLoad, MergesThroughStringsThatAreNoTokens) {
  VocabFile vocab = VocabFile::WithBytes();
  vocab.merges = {"a b", "ab c"};  // "ab" is no token, "abc" is
  const TokenId abc = vocab.Add("abc");
  const auto tokenizer = MustLoad(vocab);
  EXPECT_THAT(tokenizer->notes(),
              ElementsAre("tokenizer.ggml.merges: 2 merges name or make a "
                          "string that is no token, first number 0 'a b'"));
  EXPECT_THAT(MustEncode(*tokenizer, "abc"), ElementsAre(abc));
  // What the merges leave without an id comes out byte by byte.
  EXPECT_THAT(MustEncode(*tokenizer, "abd"), ElementsAre('a', 'b', 'd'));
}

TEST(TokenizerLoad, BytesWithoutATokenAreNamedNotDropped) {
  VocabFile vocab;
  vocab.Add("a");
  vocab.Add("b");
  vocab.merges = {"a b"};
  vocab.Add("ab");
  const auto tokenizer = MustLoad(vocab);
  EXPECT_THAT(MustEncode(*tokenizer, "abba"), ElementsAre(2, 1, 0));
  EXPECT_EQ(tokenizer->Encode("abba cab").status(),
            absl::InvalidArgumentError("byte 0x20 at offset 4 of the text has "
                                       "no token in this vocabulary"));
}

TEST(TokenizerLoad, UnknownPreTokenizerDecodesButDoesNotEncode) {
  VocabFile vocab = Good();
  vocab.pre = "qwen9\n";
  const auto tokenizer = MustLoad(vocab);
  const absl::Status expected = absl::UnimplementedError(
      "test.gguf: tokenizer.ggml.pre: unknown pre-tokenizer 'qwen9\\n', so "
      "text "
      "cannot be encoded; pass --pre NAME to choose one of qwen2, qwen35, "
      "glm4, llama-bpe, gpt-2, smollm, default and their aliases, or give "
      "token "
      "ids");
  EXPECT_EQ(tokenizer->text_status(), expected);
  EXPECT_EQ(tokenizer->Encode("x").status(), expected);
  EXPECT_EQ(tokenizer->EncodeSegments({}).status(), expected);
  EXPECT_EQ(tokenizer->Split("x").status(), expected);
  EXPECT_EQ(tokenizer->Decode(std::vector<TokenId>{'h', 'i', 256}), "hiab");
  // The override helps.
  EXPECT_THAT(MustEncode(*MustLoad(vocab, {.pre = "qwen2"}), "ab"),
              ElementsAre(256));
  EXPECT_EQ(ErrorOf(vocab, kBad, {.pre = "nope"}),
            "test.gguf: pre-tokenizer 'nope' does not exist; known are qwen2, "
            "qwen35, glm4, llama-bpe, gpt-2, smollm, default and their "
            "aliases");
}

TEST(TokenizerLoad, MissingPreIsDefaultWithAWarning) {
  VocabFile vocab = Good();
  vocab.pre = "";
  const auto tokenizer = MustLoad(vocab);
  EXPECT_EQ(tokenizer->pre(), "default");
  EXPECT_THAT(
      tokenizer->notes(),
      ElementsAre(StartsWith("tokenizer.ggml.pre: missing; 'default' is "
                             "used")));
}

TEST(TokenizerLoad, EveryAliasLoads) {
  for (const char* pre :
       {"qwen2", "deepseek-r1-qwen", "hunyuan", "glm4", "chatglm-bpe",
        "llama-bpe", "llama3", "dbrx", "qwen35", "gpt-2", "jina-v2-code",
        "jina-v2-de", "roberta-bpe", "smollm", "starcoder", "default"}) {
    VocabFile vocab = Good();
    vocab.pre = pre;
    EXPECT_TRUE(MustLoad(vocab)->text_status().ok()) << pre;
  }
}

TEST(TokenizerLoad, SpecialIdsOutsideTheVocabularyAreIgnored) {
  VocabFile vocab = Good();
  vocab.extra.AddU32("tokenizer.ggml.bos_token_id", 257);
  vocab.extra.AddI32("tokenizer.ggml.eos_token_id", -1);
  vocab.extra.AddU32("tokenizer.ggml.padding_token_id", 256);
  vocab.extra.AddBool("tokenizer.ggml.add_bos_token", true);
  const auto tokenizer = MustLoad(vocab);
  EXPECT_FALSE(tokenizer->special().bos.has_value());
  EXPECT_FALSE(tokenizer->special().eos.has_value());
  EXPECT_EQ(tokenizer->special().padding, 256);
  EXPECT_FALSE(tokenizer->add_bos());
  EXPECT_THAT(
      tokenizer->notes(),
      ElementsAre("tokenizer.ggml.eos_token_id: -1 is ignored; the vocabulary "
                  "ends at 256",
                  "tokenizer.ggml.bos_token_id: 257 is ignored; the vocabulary "
                  "ends at 256",
                  "tokenizer.ggml.add_bos_token: there is no such token to "
                  "add"));
}

TEST(TokenizerLoad, SpacePrefixIsNotIgnored) {
  VocabFile vocab = Good();
  vocab.extra.AddBool("tokenizer.ggml.add_space_prefix", true);
  EXPECT_EQ(MustLoad(vocab)->Encode("x").status(),
            absl::UnimplementedError(
                "test.gguf: tokenizer.ggml.add_space_prefix: true is not "
                "supported for byte-level BPE, so text cannot be encoded"));
}

}  // namespace
}  // namespace fucina
