#include "core/text/special_tokens.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fucina/diag/status_macros.h"

namespace fucina::text {
namespace {

// Texts that end a turn in some family, whatever the keys say.
constexpr absl::string_view kTurnEnds[] = {
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<|return|>",
    "<|call|>",
    "<EOT>",
    "[EOT]",
    "[EOS]",
    "<eos>",
    "<turn|>",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
};

// GLM has no end marker: a turn ends where the next role begins.
constexpr absl::string_view kGlmTurnEnds[] = {"<|user|>", "<|observation|>"};

class Reader {
 public:
  Reader(const GgufFile& file, const Vocabulary& vocabulary, FindToken find,
         std::vector<std::string>& notes)
      : file_(file), vocabulary_(vocabulary), find_(find), notes_(notes) {}

  // The id under tokenizer.ggml.<name>_token_id.
  absl::Status Read(absl::string_view name, std::optional<TokenId>& id) {
    const std::string key = absl::StrCat("tokenizer.ggml.", name, "_token_id");
    FUCINA_ASSIGN_OR_RETURN(
        const std::optional<std::int64_t> value,
        file_.GetInt(key, std::numeric_limits<std::int64_t>::min(),
                     std::numeric_limits<std::int64_t>::max()));
    if (value.has_value()) id = Checked(key, *value);
    return absl::OkStatus();
  }

  // The end token: one id, or an array of them.
  absl::Status ReadEos(std::optional<TokenId>& first,
                       std::vector<TokenId>& all) {
    constexpr absl::string_view kKey = "tokenizer.ggml.eos_token_id";
    const GgufValue* value = file_.Find(kKey);
    if (value == nullptr || value->type != GgufType::kArray) {
      FUCINA_RETURN_IF_ERROR(Read("eos", first));
      if (first.has_value()) all.push_back(*first);
      return absl::OkStatus();
    }
    FUCINA_ASSIGN_OR_RETURN(auto ids, file_.GetInts(kKey));
    for (const std::int64_t id :
         std::move(ids).value_or(std::vector<std::int64_t>())) {
      if (const auto checked = Checked(kKey, id)) all.push_back(*checked);
    }
    if (!all.empty()) first = all.front();
    return absl::OkStatus();
  }

  // `id`, unless a key already gave it, becomes the first of `spellings` that
  // the vocabulary has.
  void FindIfAbsent(std::optional<TokenId>& id,
                    std::initializer_list<absl::string_view> spellings) const {
    for (const absl::string_view spelling : spellings) {
      if (id.has_value()) return;
      if (const TokenId found = find_(spelling); found >= 0) id = found;
    }
  }

 private:
  std::optional<TokenId> Checked(absl::string_view key, std::int64_t id) {
    if (vocabulary_.Contains(id)) return static_cast<TokenId>(id);
    notes_.push_back(absl::StrCat(key, ": ", id,
                                  " is ignored; the vocabulary ends at ",
                                  vocabulary_.size() - 1));
    return std::nullopt;
  }

  const GgufFile& file_;
  const Vocabulary& vocabulary_;
  FindToken find_;
  std::vector<std::string>& notes_;
};

}  // namespace

absl::StatusOr<SpecialTokenSet> ReadSpecialTokens(
    const GgufFile& file, const Vocabulary& vocabulary, FindToken find,
    std::vector<std::string>& notes) {
  SpecialTokenSet set;
  SpecialTokens& tokens = set.tokens;
  Reader reader(file, vocabulary, find, notes);
  FUCINA_RETURN_IF_ERROR(reader.ReadEos(tokens.eos, set.stop));
  const struct {
    absl::string_view name;
    std::optional<TokenId>& id;
  } keys[] = {
      {"bos", tokens.bos},
      {"eot", tokens.eot},
      {"eom", tokens.eom},
      {"unknown", tokens.unknown},
      {"seperator", tokens.separator},  // spelled so by the format
      {"padding", tokens.padding},
      {"mask", tokens.mask},
      {"fim_pre", tokens.fim_prefix},
      {"fim_suf", tokens.fim_suffix},
      {"fim_mid", tokens.fim_middle},
      {"fim_pad", tokens.fim_pad},
      {"fim_rep", tokens.fim_repo},
      {"fim_sep", tokens.fim_separator},
  };
  for (const auto& key : keys) {
    FUCINA_RETURN_IF_ERROR(reader.Read(key.name, key.id));
  }
  reader.FindIfAbsent(tokens.fim_prefix, {"<|fim_prefix|>", "<fim_prefix>"});
  reader.FindIfAbsent(tokens.fim_suffix, {"<|fim_suffix|>", "<fim_suffix>"});
  reader.FindIfAbsent(tokens.fim_middle, {"<|fim_middle|>", "<fim_middle>"});
  reader.FindIfAbsent(tokens.fim_pad, {"<|fim_pad|>", "<fim_pad>"});
  reader.FindIfAbsent(tokens.fim_repo, {"<|repo_name|>", "<|fim_repo|>"});
  reader.FindIfAbsent(tokens.fim_separator, {"<|file_sep|>"});

  for (const auto& id : {tokens.eot, tokens.eom, tokens.fim_pad,
                         tokens.fim_repo, tokens.fim_separator}) {
    if (id.has_value()) set.stop.push_back(*id);
  }
  for (const absl::string_view text : kTurnEnds) {
    if (const TokenId id = find(text); id >= 0) set.stop.push_back(id);
  }
  const auto add_if_control = [&](absl::string_view text) {
    const TokenId id = find(text);
    if (id >= 0 && vocabulary.classes[static_cast<std::size_t>(id)] ==
                       TokenClass::kControl) {
      set.stop.push_back(id);
    }
  };
  add_if_control("</s>");
  if (find("[gMASK]") >= 0) {
    for (const absl::string_view text : kGlmTurnEnds) add_if_control(text);
  }
  std::sort(set.stop.begin(), set.stop.end());
  set.stop.erase(std::unique(set.stop.begin(), set.stop.end()), set.stop.end());
  return set;
}

}  // namespace fucina::text
