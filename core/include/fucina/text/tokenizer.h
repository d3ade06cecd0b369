#ifndef FUCINA_TEXT_TOKENIZER_H_
#define FUCINA_TEXT_TOKENIZER_H_

// Text to token ids and back, from the vocabulary inside a model file. Nothing
// but the GGUF file is needed; the tokenizer copies what it uses and outlives
// it.
//
// Supported: byte-level BPE (`tokenizer.ggml.model` = "gpt2") with the
// pre-tokenizers qwen2, qwen35, glm4, llama-bpe, gpt-2, smollm, default and
// their aliases. Text is never normalized and no escape sequence is
// interpreted. Any byte string encodes: bytes that are not UTF-8 become the
// tokens of those bytes, so Decode(Encode(x)) == x always, provided that the
// options show control tokens and add none.
//
// Immutable after loading, safe to share between threads.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/export.h"

namespace fucina {

class GgufFile;

// The contract's alias, repeated because text does not depend on the contract.
using TokenId = std::int32_t;

// As `tokenizer.ggml.token_type` numbers them.
enum class TokenClass : std::uint8_t {
  kNormal = 1,       // text in the byte alphabet, reached by merges
  kUnknown = 2,      // treated like control
  kControl = 3,      // structure: <|im_start|>; hidden from the reader
  kUserDefined = 4,  // one id wherever its text occurs: <think>; shown
  kUnused = 5,       // padding; never encoded, decodes to nothing
  kByte = 6,         // <0xHH>; never encoded, decodes to that byte
};

// Which spellings of special tokens inside a text become their one id.
enum class ParseSpecial {
  kAll,          // control, unknown and user-defined: template text, prompts
  kUserDefined,  // user-defined only: text from outside
  kNone,         // none: a spelling is ordinary text
};

struct EncodeOptions {
  // Adds the begin and end tokens that the file's policy asks for.
  bool add_special = false;
  ParseSpecial parse_special = ParseSpecial::kAll;
};

// A stretch of a rendered chat prompt and where it came from.
struct TextSegment {
  absl::string_view text;
  bool is_template = false;  // false: message content, tool data, user input
};

struct DecodeOptions {
  bool show_control = false;  // control and unknown tokens print their text
};

struct TokenizerOptions {
  // Replaces `tokenizer.ggml.pre` when not empty.
  std::string pre;
};

// Ids the file names for a purpose; absent where it names none. Each is inside
// the vocabulary.
struct SpecialTokens {
  std::optional<TokenId> bos = {};
  std::optional<TokenId> eos = {};  // the first, if the file lists several
  std::optional<TokenId> eot = {};
  std::optional<TokenId> eom = {};
  std::optional<TokenId> unknown = {};
  std::optional<TokenId> separator = {};
  std::optional<TokenId> padding = {};
  std::optional<TokenId> mask = {};
  std::optional<TokenId> fim_prefix = {};
  std::optional<TokenId> fim_suffix = {};
  std::optional<TokenId> fim_middle = {};
  std::optional<TokenId> fim_pad = {};
  std::optional<TokenId> fim_repo = {};
  std::optional<TokenId> fim_separator = {};
};

class FUCINA_API Tokenizer {
 public:
  // Reads the vocabulary of `file`.
  //
  // NotFound when the file has none, Unimplemented for a
  // `tokenizer.ggml.model` other than "gpt2", InvalidArgument naming key,
  // expected and found for arrays of the wrong type or length, a vocabulary
  // larger than the embedding, or missing merges, and for an
  // `options.pre` that does not exist. A file whose own `pre` is unknown
  // loads: its ids decode, and Encode answers with text_status().
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromGguf(
      const GgufFile& file, const TokenizerOptions& options = {});

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // --- text to ids ----------------------------------------------------------
  // The ids of `text`. Special tokens are cut out longest spelling first; the
  // text between them is split and merged fragment by fragment.
  //
  // Fails when text_status() does, and with InvalidArgument, naming byte and
  // offset, when the vocabulary lacks a token for a byte that needs one.
  absl::StatusOr<std::vector<TokenId>> Encode(
      absl::string_view text, const EncodeOptions& options = {}) const;

  // The ids of the segments joined to one text. A control token is recognised
  // only where every byte of its spelling comes from the template; a
  // user-defined one anywhere. Borders between segments leave no other trace,
  // so harmless input gets the ids of the joined text. Adds no special tokens.
  absl::StatusOr<std::vector<TokenId>> EncodeSegments(
      std::span<const TextSegment> segments) const;

  // The pieces of `text` before merging, as views into it; for diagnosis.
  // Spellings of special tokens are ordinary text here.
  absl::StatusOr<std::vector<absl::string_view>> Split(
      absl::string_view text) const;

  // OK, or why this file can decode but not encode.
  const absl::Status& text_status() const;

  // --- ids to text ----------------------------------------------------------
  // Joined bytes of `ids`; may end or begin inside a character. Ids outside the
  // vocabulary and unused ones decode to nothing.
  std::string Decode(std::span<const TokenId> ids,
                     const DecodeOptions& options = {}) const;
  // One token of Decode. The view lives as long as the tokenizer.
  absl::string_view DecodeToken(TokenId id,
                                const DecodeOptions& options = {}) const;
  // The bytes a token stands for: raw bytes of a normal or byte token, the
  // spelling of a control, unknown or user-defined one, nothing for unused and
  // out-of-range ids. The view lives as long as the tokenizer.
  absl::string_view TokenBytes(TokenId id) const;

  // --- vocabulary -----------------------------------------------------------
  // Entries of `tokenizer.ggml.tokens`, padding included.
  int vocab_size() const;
  // Entries up to the last one that is not unused.
  int real_vocab_size() const;
  // kUnused for ids outside the vocabulary.
  TokenClass ClassOf(TokenId id) const;
  // The control, unknown or user-defined token spelled exactly `text`, lowest
  // id first.
  std::optional<TokenId> FindSpecial(absl::string_view text) const;

  // --- special tokens -------------------------------------------------------
  const SpecialTokens& special() const;
  bool add_bos() const;
  bool add_eos() const;
  // Every id that ends a turn, ascending: the file's end tokens, and the known
  // end markers by spelling. Never printed, never committed.
  std::span<const TokenId> stop_tokens() const;
  bool IsStop(TokenId id) const;

  // --- about ----------------------------------------------------------------
  // Name of the pre-tokenizer in use, as the file or the options spell it.
  absl::string_view pre() const;
  // Facts worth knowing that are no errors: duplicate tokens, merges of unknown
  // tokens, special ids outside the vocabulary.
  std::span<const std::string> notes() const;
  // Version of the Unicode tables behind the splits, such as "16.0.0".
  static absl::string_view unicode_version();

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fucina

#endif  // FUCINA_TEXT_TOKENIZER_H_
