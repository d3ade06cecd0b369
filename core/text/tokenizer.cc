#include "fucina/text/tokenizer.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/text/byte_alphabet.h"
#include "core/text/byte_bpe.h"
#include "core/text/pretokenize.h"
#include "core/text/special_spellings.h"
#include "core/text/special_tokens.h"
#include "core/text/unicode_tables.h"
#include "core/text/vocabulary.h"
#include "fucina/diag/log.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "fucina/gguf/gguf_file.h"

namespace fucina {
namespace {

constexpr char kModel[] = "tokenizer.ggml.model";
constexpr char kPre[] = "tokenizer.ggml.pre";
constexpr char kTokens[] = "tokenizer.ggml.tokens";
constexpr char kMerges[] = "tokenizer.ggml.merges";
constexpr char kScores[] = "tokenizer.ggml.scores";

// Positions in a text are 32 bit in the merge queue.
constexpr std::size_t kLongestText = std::size_t{1} << 30;  // bytes

bool IsSpecial(TokenClass type) {
  return type == TokenClass::kControl || type == TokenClass::kUnknown ||
         type == TokenClass::kUserDefined;
}

absl::Status WithFile(const GgufFile& file, const absl::Status& status) {
  const std::string& name = file.display_name();
  const absl::string_view message = status.message();
  if (status.ok() || message.substr(0, name.size()) == name) return status;
  return absl::Status(status.code(), absl::StrCat(name, ": ", message));
}

std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", Printable(text, 64), "'");
}

}  // namespace

struct Tokenizer::Impl {
  text::Vocabulary vocabulary;
  std::unique_ptr<text::ByteBpe> bpe;
  text::SpecialSpellings all_specials;
  text::SpecialSpellings user_specials;
  text::SpecialTokenSet special;
  std::vector<bool> is_stop;
  std::string pre;
  const text::PreTokenizer* pre_tokenizer = nullptr;  // null: cannot encode
  absl::Status text_status;
  bool add_bos = false;
  bool add_eos = false;
  std::vector<std::string> notes;
  mutable std::atomic<bool> warned_double_bos = false;

  // --- loading --------------------------------------------------------------
  absl::Status Load(const GgufFile& file, const TokenizerOptions& options);
  absl::Status ReadModel(const GgufFile& file);
  absl::Status ReadPre(const GgufFile& file, const TokenizerOptions& options);
  void AddTokens();
  absl::Status ReadMerges(const GgufFile& file);
  absl::Status ReadPolicy(const GgufFile& file);
  TokenId FindToken(absl::string_view text) const;

  // --- encoding -------------------------------------------------------------
  absl::Status EncodeFragment(absl::string_view text, std::size_t begin,
                              std::size_t end, text::ByteBpe::Scratch& scratch,
                              std::vector<TokenId>& ids) const;
  absl::Status EncodeAround(
      absl::string_view text,
      std::span<const text::SpecialSpellings::Match> matches,
      std::vector<TokenId>& ids) const;
  absl::Status CheckText(absl::string_view text) const;
};

// --- loading ----------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::FromGguf(
    const GgufFile& file, const TokenizerOptions& options) {
  auto impl = std::make_unique<Impl>();
  FUCINA_RETURN_IF_ERROR(WithFile(file, impl->Load(file, options)));
  impl->text_status = WithFile(file, impl->text_status);
  for (const std::string& note : impl->notes) {
    FUCINA_LOG(WARNING) << file.display_name() << ": " << note;
  }
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(impl)));
}

absl::Status Tokenizer::Impl::Load(const GgufFile& file,
                                   const TokenizerOptions& options) {
  FUCINA_RETURN_IF_ERROR(ReadModel(file));
  FUCINA_RETURN_IF_ERROR(ReadPre(file, options));
  FUCINA_ASSIGN_OR_RETURN(vocabulary, text::ReadVocabulary(file, notes));
  FUCINA_RETURN_IF_ERROR(ReadMerges(file));
  FUCINA_ASSIGN_OR_RETURN(
      special,
      text::ReadSpecialTokens(
          file, vocabulary,
          [this](absl::string_view text) { return FindToken(text); }, notes));
  is_stop.resize(static_cast<std::size_t>(vocabulary.size()));
  for (const TokenId id : special.stop) {
    is_stop[static_cast<std::size_t>(id)] = true;
  }
  return ReadPolicy(file);
}

absl::Status Tokenizer::Impl::ReadModel(const GgufFile& file) {
  FUCINA_ASSIGN_OR_RETURN(const auto model, file.GetString(kModel));
  if (!model.has_value()) {
    if (!file.Has(kTokens)) {
      return absl::NotFoundError("this GGUF has no tokenizer metadata");
    }
    return absl::InvalidArgumentError(
        absl::StrCat(kModel, ": missing; expected 'gpt2' (byte-level BPE)"));
  }
  if (*model == "no_vocab") {
    return absl::NotFoundError("this GGUF has no tokenizer metadata");
  }
  if (*model == "gpt2") return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      kModel, ": ", Quoted(*model),
      " is not supported; this version reads 'gpt2' (byte-level BPE)"));
}

absl::Status Tokenizer::Impl::ReadPre(const GgufFile& file,
                                      const TokenizerOptions& options) {
  constexpr char kKnown[] =
      "qwen2, qwen35, glm4, llama-bpe, gpt-2, smollm, default and their "
      "aliases";
  if (!options.pre.empty()) {
    pre = options.pre;
    pre_tokenizer = text::FindPreTokenizer(pre);
    if (pre_tokenizer != nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "pre-tokenizer ", Quoted(pre), " does not exist; known are ", kKnown));
  }
  FUCINA_ASSIGN_OR_RETURN(const auto named, file.GetString(kPre));
  if (!named.has_value()) {
    notes.push_back(absl::StrCat(
        kPre,
        ": missing; 'default' is used, which may split text unlike the model's "
        "training; pass --pre NAME to choose another"));
  }
  pre = std::string(named.value_or("default"));
  pre_tokenizer = text::FindPreTokenizer(pre);
  if (pre_tokenizer == nullptr) {
    text_status = absl::UnimplementedError(absl::StrCat(
        kPre, ": unknown pre-tokenizer ", Quoted(pre),
        ", so text cannot be encoded; pass --pre NAME to choose one of ",
        kKnown, ", or give token ids"));
  }
  return absl::OkStatus();
}

void Tokenizer::Impl::AddTokens() {
  std::size_t duplicates = 0;
  std::size_t broken = 0;
  TokenId first_duplicate = -1;
  TokenId first_broken = -1;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const auto i = static_cast<std::size_t>(id);
    const TokenClass type = vocabulary.classes[i];
    const absl::string_view bytes = vocabulary.BytesOf(id);
    bool added = true;
    if (type == TokenClass::kNormal && vocabulary.unreachable[i]) {
      if (broken++ == 0) first_broken = id;
    } else if (type == TokenClass::kNormal) {
      added = bpe->AddToken(id, bytes);
    } else if (IsSpecial(type)) {
      added = all_specials.Add(id, bytes);
      if (type == TokenClass::kUserDefined) user_specials.Add(id, bytes);
    }
    if (!added && duplicates++ == 0) first_duplicate = id;
  }
  if (duplicates > 0) {
    notes.push_back(absl::StrCat(
        kTokens, ": ", duplicates, " tokens repeat an earlier one, first id ",
        first_duplicate, " ", Quoted(vocabulary.BytesOf(first_duplicate)),
        "; the lowest id of a text is used"));
  }
  if (broken > 0) {
    notes.push_back(absl::StrCat(
        kTokens, ": ", broken,
        " normal tokens have characters outside the byte alphabet, first id ",
        first_broken, " ", Quoted(vocabulary.BytesOf(first_broken)),
        "; no text encodes to them"));
  }
}

absl::Status Tokenizer::Impl::ReadMerges(const GgufFile& file) {
  FUCINA_RETURN_IF_ERROR(text::ExpectArray(file, kMerges, GgufType::kString));
  FUCINA_ASSIGN_OR_RETURN(const auto merges, file.GetStrings(kMerges));
  if (!merges.has_value() || merges->empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        kMerges, ": ", merges.has_value() ? "empty" : "missing",
        "; byte-level BPE needs its merges",
        file.Has(kScores) ? ". The file has tokenizer.ggml.scores instead: it "
                            "looks like a wrong conversion"
                          : ""));
  }
  if (merges->size() >= std::numeric_limits<std::int32_t>::max() / 8) {
    return absl::InvalidArgumentError(
        absl::StrCat(kMerges, ": ", merges->size(), " merges are too many"));
  }
  bpe = std::make_unique<text::ByteBpe>(vocabulary.size(), merges->size());
  AddTokens();
  bpe->FinishTokens();
  struct Oddity {
    const char* what;
    std::size_t count = 0;
    std::size_t first = 0;
    void Add(std::size_t rank) {
      if (count++ == 0) first = rank;
    }
  };
  Oddity malformed{"are not 'left right' in the byte alphabet and are skipped"};
  Oddity unknown{"name or make a string that is no token"};
  std::string left;
  std::string right;
  for (std::size_t rank = 0; rank < merges->size(); ++rank) {
    const absl::string_view merge = (*merges)[rank];
    // A left part may itself begin with a space.
    const std::size_t space = merge.find(' ', 1);
    left.clear();
    right.clear();
    const bool good = space != absl::string_view::npos &&
                      space + 1 < merge.size() &&
                      text::AppendAlphabetBytes(merge.substr(0, space), left) &&
                      text::AppendAlphabetBytes(merge.substr(space + 1), right);
    if (!good) {
      malformed.Add(rank);
    } else if (!bpe->AddMerge(left, right, static_cast<std::uint32_t>(rank))) {
      unknown.Add(rank);
    }
  }
  for (const Oddity& oddity : {malformed, unknown}) {
    if (oddity.count == 0) continue;
    notes.push_back(absl::StrCat(kMerges, ": ", oddity.count, " merges ",
                                 oddity.what, ", first number ", oddity.first,
                                 " ", Quoted((*merges)[oddity.first])));
  }
  return absl::OkStatus();
}

absl::Status Tokenizer::Impl::ReadPolicy(const GgufFile& file) {
  FUCINA_ASSIGN_OR_RETURN(const auto bos,
                          file.GetBool("tokenizer.ggml.add_bos_token"));
  FUCINA_ASSIGN_OR_RETURN(const auto eos,
                          file.GetBool("tokenizer.ggml.add_eos_token"));
  add_bos = bos.value_or(pre_tokenizer != nullptr && pre_tokenizer->add_bos &&
                         special.tokens.bos.has_value());
  add_eos = eos.value_or(false);
  // A space put before the text belongs to SentencePiece; no byte-level BPE
  // file asks for it, and ignoring it would change ids.
  FUCINA_ASSIGN_OR_RETURN(const auto prefix,
                          file.GetBool("tokenizer.ggml.add_space_prefix"));
  if (prefix.value_or(false)) {
    text_status.Update(absl::UnimplementedError(
        "tokenizer.ggml.add_space_prefix: true is not supported for "
        "byte-level BPE, so text cannot be encoded"));
  }
  const struct {
    bool& wanted;
    const std::optional<TokenId>& id;
    const char* name;
  } policies[] = {{add_bos, special.tokens.bos, "bos"},
                  {add_eos, special.tokens.eos, "eos"}};
  for (const auto& policy : policies) {
    if (!policy.wanted || policy.id.has_value()) continue;
    notes.push_back(absl::StrCat("tokenizer.ggml.add_", policy.name,
                                 "_token: there is no such token to add"));
    policy.wanted = false;
  }
  return absl::OkStatus();
}

TokenId Tokenizer::Impl::FindToken(absl::string_view text) const {
  if (const TokenId id = all_specials.Find(text); id >= 0) return id;
  return bpe->Find(text);
}

// --- encoding ---------------------------------------------------------------

absl::Status Tokenizer::Impl::CheckText(absl::string_view text) const {
  FUCINA_RETURN_IF_ERROR(text_status);
  if (text.size() <= kLongestText) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("text of ", text.size(),
                   " bytes is too long to encode; at "
                   "most ",
                   kLongestText));
}

absl::Status Tokenizer::Impl::EncodeFragment(absl::string_view text,
                                             std::size_t begin, std::size_t end,
                                             text::ByteBpe::Scratch& scratch,
                                             std::vector<TokenId>& ids) const {
  std::size_t at = begin;
  std::size_t missing = absl::string_view::npos;
  text::SplitPieces(pre_tokenizer->rules, text.substr(begin, end - begin),
                    [&](absl::string_view piece) {
                      if (missing != absl::string_view::npos) return;
                      const std::size_t offset = bpe->Encode(
                          piece, pre_tokenizer->ignore_merges, scratch, ids);
                      if (offset != absl::string_view::npos) {
                        missing = at + offset;
                      }
                      at += piece.size();
                    });
  if (missing == absl::string_view::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "byte 0x%02X at offset %d of the text has no token in this vocabulary",
      static_cast<unsigned char>(text[missing]), missing));
}

absl::Status Tokenizer::Impl::EncodeAround(
    absl::string_view text,
    std::span<const text::SpecialSpellings::Match> matches,
    std::vector<TokenId>& ids) const {
  text::ByteBpe::Scratch scratch(text.size());
  std::size_t at = 0;
  for (const text::SpecialSpellings::Match& match : matches) {
    FUCINA_RETURN_IF_ERROR(EncodeFragment(text, at, match.begin, scratch, ids));
    ids.push_back(match.id);
    at = match.end;
  }
  return EncodeFragment(text, at, text.size(), scratch, ids);
}

absl::StatusOr<std::vector<TokenId>> Tokenizer::Encode(
    absl::string_view text, const EncodeOptions& options) const {
  FUCINA_RETURN_IF_ERROR(impl_->CheckText(text));
  const auto always = [](TokenId, std::size_t, std::size_t) { return true; };
  std::vector<text::SpecialSpellings::Match> matches;
  if (options.parse_special == ParseSpecial::kAll) {
    matches = impl_->all_specials.Search(text, always);
  } else if (options.parse_special == ParseSpecial::kUserDefined) {
    matches = impl_->user_specials.Search(text, always);
  }
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 4 + 2);
  const SpecialTokens& special = impl_->special.tokens;
  const bool bos = options.add_special && impl_->add_bos;
  if (bos) ids.push_back(*special.bos);
  FUCINA_RETURN_IF_ERROR(impl_->EncodeAround(text, matches, ids));
  if (bos && ids.size() > 1 && ids[1] == ids[0] &&
      !impl_->warned_double_bos.exchange(true)) {
    FUCINA_LOG(WARNING) << "the text already begins with the bos token, and "
                           "the model's policy adds another";
  }
  if (options.add_special && impl_->add_eos) ids.push_back(*special.eos);
  return ids;
}

absl::StatusOr<std::vector<TokenId>> Tokenizer::EncodeSegments(
    std::span<const TextSegment> segments) const {
  std::string text;
  std::vector<std::size_t> ends;  // of the segments, in `text`
  ends.reserve(segments.size());
  for (const TextSegment& segment : segments) {
    text.append(segment.text.data(), segment.text.size());
    ends.push_back(text.size());
  }
  FUCINA_RETURN_IF_ERROR(impl_->CheckText(text));
  const auto allowed = [&](TokenId id, std::size_t begin, std::size_t end) {
    if (ClassOf(id) == TokenClass::kUserDefined) return true;
    auto segment = static_cast<std::size_t>(
        std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
    for (; segment < segments.size(); ++segment) {
      if (!segments[segment].is_template && !segments[segment].text.empty()) {
        return false;
      }
      if (ends[segment] >= end) break;
    }
    return true;
  };
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 4);
  FUCINA_RETURN_IF_ERROR(impl_->EncodeAround(
      text, impl_->all_specials.Search(text, allowed), ids));
  return ids;
}

absl::StatusOr<std::vector<absl::string_view>> Tokenizer::Split(
    absl::string_view text) const {
  FUCINA_RETURN_IF_ERROR(impl_->CheckText(text));
  std::vector<absl::string_view> pieces;
  text::SplitPieces(impl_->pre_tokenizer->rules, text,
                    [&](absl::string_view piece) { pieces.push_back(piece); });
  return pieces;
}

const absl::Status& Tokenizer::text_status() const {
  return impl_->text_status;
}

// --- decoding ---------------------------------------------------------------

absl::string_view Tokenizer::TokenBytes(TokenId id) const {
  if (!impl_->vocabulary.Contains(id)) return {};
  return impl_->vocabulary.BytesOf(id);
}

absl::string_view Tokenizer::DecodeToken(TokenId id,
                                         const DecodeOptions& options) const {
  const TokenClass type = ClassOf(id);
  const bool hidden =
      type == TokenClass::kControl || type == TokenClass::kUnknown;
  return hidden && !options.show_control ? absl::string_view() : TokenBytes(id);
}

std::string Tokenizer::Decode(std::span<const TokenId> ids,
                              const DecodeOptions& options) const {
  std::string text;
  for (const TokenId id : ids) {
    const absl::string_view bytes = DecodeToken(id, options);
    text.append(bytes.data(), bytes.size());
  }
  return text;
}

// --- facts ------------------------------------------------------------------

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

int Tokenizer::vocab_size() const { return impl_->vocabulary.size(); }
int Tokenizer::real_vocab_size() const { return impl_->vocabulary.num_real; }

TokenClass Tokenizer::ClassOf(TokenId id) const {
  if (!impl_->vocabulary.Contains(id)) return TokenClass::kUnused;
  return impl_->vocabulary.classes[static_cast<std::size_t>(id)];
}

std::optional<TokenId> Tokenizer::FindSpecial(absl::string_view text) const {
  const TokenId id = impl_->all_specials.Find(text);
  return id < 0 ? std::nullopt : std::optional<TokenId>(id);
}

const SpecialTokens& Tokenizer::special() const {
  return impl_->special.tokens;
}
bool Tokenizer::add_bos() const { return impl_->add_bos; }
bool Tokenizer::add_eos() const { return impl_->add_eos; }

std::span<const TokenId> Tokenizer::stop_tokens() const {
  return impl_->special.stop;
}

bool Tokenizer::IsStop(TokenId id) const {
  return impl_->vocabulary.Contains(id) &&
         impl_->is_stop[static_cast<std::size_t>(id)];
}

absl::string_view Tokenizer::pre() const { return impl_->pre; }
std::span<const std::string> Tokenizer::notes() const { return impl_->notes; }
absl::string_view Tokenizer::unicode_version() { return text::kUnicodeVersion; }

}  // namespace fucina
