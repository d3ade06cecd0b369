// Any bytes as a model file with a vocabulary, and any text through a small
// vocabulary of the fuzzer's choice. The promises of tokenizer.h are checked.
//
// Input that begins with "GGUF" is a file. Other input is
//   pre-tokenizer and policy, one byte; then lines:
//   "m LEFT RIGHT"  a merge of two byte strings, in the byte alphabet
//   "c TEXT"        a control token;  "u TEXT"  a user-defined one
//   an empty line, then the text.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fucina/diag/check.h"
#include "fucina/diag/log.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/gguf/gguf_writer.h"
#include "fucina/text/tokenizer.h"
#include "fucina/text/utf8_stream.h"

namespace fucina {
namespace {

constexpr const char* kPre[] = {"qwen2", "qwen35", "glm4",   "llama-bpe",
                                "gpt-2", "smollm", "default"};
constexpr std::size_t kMaxTokens = 4096;  // of a file; larger ones only decode

std::string InAlphabet(unsigned char byte) {
  static const std::vector<std::string>* const kLetters = [] {
    auto* letters = new std::vector<std::string>;
    unsigned next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      const bool itself =
          (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      const unsigned c = itself ? b : next++;
      letters->push_back(
          c < 0x80 ? std::string(1, static_cast<char>(c))
                   : std::string{static_cast<char>(0xC0 | (c >> 6)),
                                 static_cast<char>(0x80 | (c & 0x3F))});
    }
    return letters;
  }();
  return (*kLetters)[byte];
}

std::string Joined(const std::vector<absl::string_view>& pieces) {
  std::string text;
  for (const absl::string_view piece : pieces) {
    FUCINA_CHECK(!piece.empty());
    text.append(piece.data(), piece.size());
  }
  return text;
}

void CheckIds(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
              absl::string_view text) {
  FUCINA_CHECK(tokenizer.Decode(ids, {.show_control = true}) == text);
  Utf8Stream keep;
  Utf8Stream replace(Utf8Stream::Invalid::kReplace);
  std::string kept;
  std::string replaced;
  for (const TokenId id : ids) {
    FUCINA_CHECK(id >= 0 && id < tokenizer.vocab_size());
    FUCINA_CHECK(tokenizer.ClassOf(id) != TokenClass::kUnused);
    kept += keep.Push(tokenizer.TokenBytes(id));
    replaced += replace.Push(tokenizer.TokenBytes(id));
    FUCINA_CHECK_EQ(FirstInvalidUtf8(replaced), replaced.size());
  }
  FUCINA_CHECK(kept + keep.Finish() == text);
  FUCINA_CHECK(replaced + replace.Finish() == ReplaceInvalidUtf8(text));
}

void CheckText(const Tokenizer& tokenizer, absl::string_view text) {
  const auto pieces = tokenizer.Split(text);
  if (!pieces.ok()) {
    FUCINA_CHECK(pieces.status() == tokenizer.text_status());
    return;
  }
  FUCINA_CHECK(Joined(*pieces) == text);
  for (const ParseSpecial parse :
       {ParseSpecial::kAll, ParseSpecial::kUserDefined, ParseSpecial::kNone}) {
    const auto ids = tokenizer.Encode(text, {.parse_special = parse});
    if (ids.ok()) CheckIds(tokenizer, *ids, text);
    FUCINA_CHECK(
        tokenizer.Encode(text, {.add_special = true, .parse_special = parse})
            .ok() == ids.ok());
  }
  const std::size_t middle = text.size() / 2;
  for (int mask = 0; mask < 4; ++mask) {
    const TextSegment segments[] = {{text.substr(0, middle), (mask & 1) != 0},
                                    {text.substr(middle), (mask & 2) != 0}};
    const auto ids = tokenizer.EncodeSegments(segments);
    if (!ids.ok()) continue;
    CheckIds(tokenizer, *ids, text);
    if (mask == 3) {
      FUCINA_CHECK(*ids == *tokenizer.Encode(
                               text, {.parse_special = ParseSpecial::kAll}));
    }
    if (mask != 0) continue;
    for (const TokenId id : *ids) {
      FUCINA_CHECK(tokenizer.ClassOf(id) != TokenClass::kControl);
    }
  }
}

void TryFile(absl::string_view bytes) {
  const auto file = GgufFile::Parse("input", std::as_bytes(std::span(bytes)));
  if (!file.ok()) return;
  const auto tokenizer = Tokenizer::FromGguf(**file);
  if (!tokenizer.ok()) {
    FUCINA_CHECK(tokenizer.status().message().substr(0, 7) == "input: ");
    return;
  }
  for (TokenId id = -1; id <= (*tokenizer)->vocab_size(); ++id) {
    (*tokenizer)->DecodeToken(id);
    FUCINA_CHECK(!(*tokenizer)->IsStop(id) ||
                 (*tokenizer)->ClassOf(id) != TokenClass::kUnused ||
                 (*tokenizer)->TokenBytes(id).empty());
  }
  if (static_cast<std::size_t>((*tokenizer)->vocab_size()) > kMaxTokens) {
    return;
  }
  CheckText(**tokenizer, "Hello  wor1d\n\xFF <|im_end|><think>it's 123");
}

// The line at the front of `rest`, which shrinks.
absl::string_view TakeLine(absl::string_view& rest) {
  const std::size_t end = rest.find('\n');
  const absl::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == absl::string_view::npos ? rest.size() : end + 1);
  return line;
}

void TryText(absl::string_view input) {
  const auto choice = static_cast<unsigned char>(input[0]);
  input.remove_prefix(1);
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  std::vector<std::string> merges = {"a b"};
  const auto add = [&](std::string text, int type) {
    tokens.push_back(std::move(text));
    types.push_back(type);
  };
  for (unsigned byte = 0; byte < 256; ++byte) {
    add(InAlphabet(static_cast<unsigned char>(byte)), 1);
  }
  for (absl::string_view line = TakeLine(input);
       !line.empty() && tokens.size() < 400; line = TakeLine(input)) {
    if (line.size() < 3 || line[1] != ' ') continue;
    const absl::string_view rest = line.substr(2);
    if (line[0] == 'c') add(std::string(rest), 3);
    if (line[0] == 'u') add(std::string(rest), 4);
    if (line[0] != 'm') continue;
    merges.emplace_back(rest);
    std::string both(rest);
    if (const std::size_t space = both.find(' ', 1);
        space != std::string::npos && (choice & 0x40) == 0) {
      add(both.erase(space, 1), 1);
    }
  }
  GgufWriter writer;
  writer.AddString("tokenizer.ggml.model", "gpt2");
  writer.AddString("tokenizer.ggml.pre", kPre[choice % 7]);
  writer.AddStrings("tokenizer.ggml.tokens", tokens);
  writer.AddI32s("tokenizer.ggml.token_type", types);
  writer.AddStrings("tokenizer.ggml.merges", merges);
  if ((choice & 0x80) != 0) {
    writer.AddU32("tokenizer.ggml.bos_token_id", 'b');
    writer.AddBool("tokenizer.ggml.add_bos_token", true);
  }
  const auto bytes = writer.Serialize();
  FUCINA_CHECK(bytes.ok()) << bytes.status().ToString();
  const auto file = GgufFile::Parse("made", std::as_bytes(std::span(*bytes)));
  FUCINA_CHECK(file.ok()) << file.status().ToString();
  const auto tokenizer = Tokenizer::FromGguf(**file);
  // A spelling may be too long.
  if (tokenizer.ok()) CheckText(**tokenizer, input);
}

}  // namespace
}  // namespace fucina

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  fucina::SetLogLevel(fucina::LogLevel::kSilent);
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.empty()) return 0;
  if (input.substr(0, 4) == "GGUF") {
    fucina::TryFile(input);
  } else {
    fucina::TryText(input);
  }
  return 0;
}
