#include "core/text/vocabulary.h"

#include <charconv>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/text/byte_alphabet.h"
#include "fucina/diag/status_macros.h"

namespace fucina::text {
namespace {

constexpr char kTokens[] = "tokenizer.ggml.tokens";
constexpr char kTypes[] = "tokenizer.ggml.token_type";
constexpr char kScores[] = "tokenizer.ggml.scores";
constexpr char kEmbedding[] = "token_embd.weight";

// Specials are looked for at every position of a text, length by length; real
// ones have a few dozen bytes.
constexpr std::size_t kLongestSpecial = 256;

bool LooksLikeControl(absl::string_view text) {
  return text.size() >= 4 && text.substr(0, 2) == "<|" &&
         text.substr(text.size() - 2) == "|>";
}

// The byte of "<0xHH>".
std::optional<char> ByteToken(absl::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') {
    return std::nullopt;
  }
  unsigned byte = 0;
  const char* end = text.data() + 5;
  const std::from_chars_result result =
      std::from_chars(text.data() + 3, end, byte, 16);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return static_cast<char>(byte);
}

absl::Status ExpectLength(const GgufFile& file, absl::string_view key,
                          std::size_t tokens) {
  const GgufValue* value = file.Find(key);
  if (value == nullptr || value->count == tokens) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, ": expected ", tokens, " elements, one for each of ",
                   kTokens, ", found ", value->count));
}

absl::StatusOr<std::vector<TokenClass>> ReadClasses(
    const GgufFile& file, const std::vector<absl::string_view>& tokens,
    std::vector<std::string>& notes) {
  std::vector<TokenClass> classes(tokens.size(), TokenClass::kNormal);
  FUCINA_RETURN_IF_ERROR(ExpectArray(file, kTypes, GgufType::kI32));
  FUCINA_RETURN_IF_ERROR(ExpectLength(file, kTypes, tokens.size()));
  FUCINA_ASSIGN_OR_RETURN(const auto types, file.GetInts(kTypes));
  if (!types.has_value()) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (LooksLikeControl(tokens[i])) classes[i] = TokenClass::kControl;
    }
    return classes;
  }
  std::size_t undefined = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::int64_t type = (*types)[i];
    if (type < 0 || type > 6) {
      return absl::InvalidArgumentError(
          absl::StrCat(kTypes, "[", i, "]: expected 1 to 6, found ", type));
    }
    if (type == 0) {
      ++undefined;
    } else {
      classes[i] = static_cast<TokenClass>(type);
    }
  }
  if (undefined > 0) {
    notes.push_back(absl::StrCat(kTypes, ": ", undefined,
                                 " tokens have the undefined type 0; they are "
                                 "taken as normal"));
  }
  return classes;
}

absl::Status CheckRows(const GgufFile& file, std::size_t tokens) {
  const GgufTensorInfo* embedding = file.FindTensor(kEmbedding);
  if (embedding == nullptr || tokens <= embedding->ne[1]) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(kTokens, ": ", tokens, " tokens, but tensor '", kEmbedding,
                   "' has only ", embedding->ne[1], " rows"));
}

}  // namespace

absl::Status ExpectArray(const GgufFile& file, absl::string_view key,
                         GgufType element) {
  const GgufValue* value = file.Find(key);
  if (value == nullptr) return absl::OkStatus();
  if (value->type != GgufType::kArray) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, ": expected an array of ", Name(element),
                     ", found a single ", Name(value->type)));
  }
  if (value->element_type == element) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, ": expected an array of ", Name(element),
                   ", found an array of ", Name(value->element_type)));
}

absl::StatusOr<Vocabulary> ReadVocabulary(const GgufFile& file,
                                          std::vector<std::string>& notes) {
  FUCINA_RETURN_IF_ERROR(ExpectArray(file, kTokens, GgufType::kString));
  FUCINA_ASSIGN_OR_RETURN(const auto tokens, file.GetStrings(kTokens));
  if (!tokens.has_value() || tokens->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kTokens, ": ", tokens.has_value() ? "empty" : "missing",
                     "; a tokenizer needs its list of tokens"));
  }
  if (tokens->size() > std::numeric_limits<std::int32_t>::max() / 8) {
    return absl::InvalidArgumentError(
        absl::StrCat(kTokens, ": ", tokens->size(), " tokens are too many"));
  }
  FUCINA_RETURN_IF_ERROR(CheckRows(file, tokens->size()));
  FUCINA_RETURN_IF_ERROR(ExpectArray(file, kScores, GgufType::kF32));
  FUCINA_RETURN_IF_ERROR(ExpectLength(file, kScores, tokens->size()));

  Vocabulary vocabulary;
  FUCINA_ASSIGN_OR_RETURN(vocabulary.classes,
                          ReadClasses(file, *tokens, notes));
  std::size_t total = 0;
  for (const absl::string_view text : *tokens) total += text.size();
  vocabulary.bytes.reserve(total);
  vocabulary.offsets.reserve(tokens->size() + 1);
  vocabulary.offsets.push_back(0);
  vocabulary.unreachable.resize(tokens->size());
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    const absl::string_view text = (*tokens)[i];
    if (text.empty()) vocabulary.classes[i] = TokenClass::kUnused;
    switch (vocabulary.classes[i]) {
      case TokenClass::kNormal:
        vocabulary.unreachable[i] =
            !AppendAlphabetBytes(text, vocabulary.bytes);
        break;
      case TokenClass::kUnknown:
      case TokenClass::kControl:
      case TokenClass::kUserDefined:
        if (text.size() > kLongestSpecial) {
          return absl::InvalidArgumentError(absl::StrCat(
              kTokens, "[", i, "]: a special token of ", text.size(),
              " bytes; at most ", kLongestSpecial, " are supported"));
        }
        vocabulary.bytes.append(text.data(), text.size());
        break;
      case TokenClass::kUnused:
        break;
      case TokenClass::kByte:
        if (const std::optional<char> byte = ByteToken(text)) {
          vocabulary.bytes.push_back(*byte);
          break;
        }
        return absl::InvalidArgumentError(absl::StrCat(
            kTokens, "[", i, "]: of type byte, so expected <0x00> to <0xFF>"));
    }
    vocabulary.offsets.push_back(vocabulary.bytes.size());
    if (vocabulary.classes[i] != TokenClass::kUnused) {
      vocabulary.num_real = static_cast<int>(i) + 1;
    }
  }
  return vocabulary;
}

}  // namespace fucina::text
