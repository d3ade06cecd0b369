#ifndef FUCINA_TESTS_CORE_TEXT_VOCAB_FILE_H_
#define FUCINA_TESTS_CORE_TEXT_VOCAB_FILE_H_

// Small vocabulary-only GGUF files made in memory, and the golden files of
// tests/goldens/tokenizer.

#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "fucina/diag/log.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/gguf/gguf_writer.h"
#include "fucina/text/tokenizer.h"
#include "gtest/gtest.h"

namespace fucina {

// The byte-level BPE alphabet, written from its definition.
inline std::string InAlphabet(absl::string_view bytes) {
  static const std::vector<std::string>* const kLetters = [] {
    auto* letters = new std::vector<std::string>;
    unsigned next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool itself = (byte >= 0x21 && byte <= 0x7E) ||
                          (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const unsigned c = itself ? byte : next++;
      letters->push_back(
          c < 0x80 ? std::string(1, static_cast<char>(c))
                   : std::string{static_cast<char>(0xC0 | (c >> 6)),
                                 static_cast<char>(0x80 | (c & 0x3F))});
    }
    return letters;
  }();
  std::string text;
  for (const char c : bytes) text += (*kLetters)[static_cast<unsigned char>(c)];
  return text;
}

// A file under construction. Begins with the 256 bytes as tokens 0 … 255 when
// made by WithBytes.
struct VocabFile {
  std::string model = "gpt2";  // empty: no such key
  std::string pre = "qwen2";   // empty: no such key
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  std::vector<std::string> merges;
  GgufWriter extra;  // other keys and tensors
  bool with_types = true;
  bool with_merges = true;

  static VocabFile WithBytes() {
    VocabFile file;
    for (int byte = 0; byte < 256; ++byte) {
      file.Add(InAlphabet(std::string(1, static_cast<char>(byte))));
    }
    return file;
  }

  TokenId Add(absl::string_view text, int type = 1) {
    tokens.emplace_back(text);
    types.push_back(type);
    return static_cast<TokenId>(tokens.size()) - 1;
  }
  // A merge of two byte strings, and its result as a token.
  TokenId AddMerge(absl::string_view left, absl::string_view right) {
    merges.push_back(absl::StrCat(InAlphabet(left), " ", InAlphabet(right)));
    return Add(InAlphabet(absl::StrCat(left, right)));
  }

  std::string Bytes() {
    GgufWriter writer = std::move(extra);
    extra = GgufWriter();
    writer.AddString("general.architecture", "test");
    if (!model.empty()) writer.AddString("tokenizer.ggml.model", model);
    if (!pre.empty()) writer.AddString("tokenizer.ggml.pre", pre);
    if (!tokens.empty()) writer.AddStrings("tokenizer.ggml.tokens", tokens);
    if (with_types) writer.AddI32s("tokenizer.ggml.token_type", types);
    if (with_merges) writer.AddStrings("tokenizer.ggml.merges", merges);
    absl::StatusOr<std::string> bytes = writer.Serialize();
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.value_or("");
  }
};

inline absl::StatusOr<std::unique_ptr<Tokenizer>> Load(
    VocabFile& vocab, const TokenizerOptions& options = {}) {
  const std::string bytes = vocab.Bytes();
  const auto file = GgufFile::Parse(
      "test.gguf", std::as_bytes(std::span(bytes.data(), bytes.size())));
  if (!file.ok()) return file.status();
  // What is odd about a file is read from notes(), not from the log.
  const LogLevel level = GetLogLevel();
  SetLogLevel(LogLevel::kError);
  auto tokenizer = Tokenizer::FromGguf(**file, options);
  SetLogLevel(level);
  return tokenizer;  // outlives file and bytes
}

inline std::unique_ptr<Tokenizer> MustLoad(
    VocabFile& vocab, const TokenizerOptions& options = {}) {
  auto tokenizer = Load(vocab, options);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

inline std::vector<TokenId> MustEncode(const Tokenizer& tokenizer,
                                       absl::string_view text,
                                       const EncodeOptions& options = {}) {
  auto ids = tokenizer.Encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return ids.value_or(std::vector<TokenId>());
}

inline std::unique_ptr<Tokenizer> LoadAtlas(
    const TokenizerOptions& options = {}) {
  const auto file = GgufFile::Open(
      absl::StrCat(FUCINA_SOURCE_DIR, "/models/atlas-6m-q8_0.gguf"));
  EXPECT_TRUE(file.ok()) << file.status();
  auto tokenizer = Tokenizer::FromGguf(**file, options);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

// One text of a golden file and its ids by pre-tokenizer; a pre-tokenizer that
// is not listed gives the ids of qwen2.
struct GoldenText {
  std::string text;
  std::map<std::string, std::vector<TokenId>> ids;
};

struct Golden {
  std::vector<GoldenText> texts;
  // The vocabulary lines of a cut file.
  std::vector<std::pair<TokenId, std::pair<int, std::string>>> tokens;
  std::vector<std::string> merges;
};

inline Golden ReadGolden(const std::string& name) {
  std::ifstream in(
      absl::StrCat(FUCINA_SOURCE_DIR, "/tests/goldens/tokenizer/", name));
  EXPECT_TRUE(in.good()) << name;
  Golden golden;
  for (std::string line; std::getline(in, line);) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    const auto& [word, rest] = parts;
    if (word == "#") continue;
    if (word == "text") {
      golden.texts.emplace_back();
      EXPECT_TRUE(
          absl::CUnescape(absl::string_view(rest).substr(1, rest.size() - 2),
                          &golden.texts.back().text));
    } else if (word == "merge") {
      golden.merges.push_back(rest);
    } else if (word == "token") {
      const std::vector<std::string> fields =
          absl::StrSplit(rest, absl::MaxSplits(' ', 2));
      golden.tokens.push_back(
          {std::stoi(fields[0]), {std::stoi(fields[1]), fields[2]}});
    } else {
      std::istringstream numbers(rest);
      std::vector<TokenId>& ids = golden.texts.back().ids[word];
      for (TokenId id; numbers >> id;) ids.push_back(id);
    }
  }
  return golden;
}

}  // namespace fucina

#endif  // FUCINA_TESTS_CORE_TEXT_VOCAB_FILE_H_
