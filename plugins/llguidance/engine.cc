#include "engine.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "fucina/diag/status_macros.h"
#include "llguidance.h"
#include "token_bytes.h"

namespace fucina::llguidance {
namespace {

// What the calls below rest on; another release of the crate must say so here
// and not at run time.
static_assert(sizeof(LlgTokenizerInitV2) == 96);
static_assert(offsetof(LlgTokenizerInitV2, tokenize_fn) == 48);
static_assert(offsetof(LlgTokenizerInitV2, tok_eos_extra_count) == 88);
static_assert(sizeof(LlgConstraintInit) == 80);
static_assert(offsetof(LlgConstraintInit, limits) == 24);
static_assert(sizeof(LlgParserLimits) == 56);
static_assert(sizeof(LlgToken) == sizeof(TokenId));

// The engine's callback: writes at most `capacity` ids, returns how many there
// are. It is called again with more room when they did not fit.
std::size_t Tokenize(const void* user, const std::uint8_t* bytes,
                     std::size_t size, std::uint32_t* out,
                     std::size_t capacity) {
  const auto* bridge = static_cast<const TokenizeBridge*>(user);
  const std::vector<TokenId> ids =
      bridge->Encode({reinterpret_cast<const char*>(bytes), size});
  std::copy_n(ids.begin(), std::min(ids.size(), capacity), out);
  return ids.size();
}

}  // namespace

void TokenizeBridge::Disconnect() {
  const std::unique_lock lock(mutex_);
  tokenizer_ = nullptr;
}

std::vector<TokenId> TokenizeBridge::Encode(absl::string_view bytes) const {
  const std::shared_lock lock(mutex_);
  if (tokenizer_ == nullptr) return {};
  auto ids = tokenizer_->Encode(
      bytes, {.add_special = false, .parse_special = ParseSpecial::kNone});
  return ids.ok() ? *std::move(ids) : std::vector<TokenId>();
}

void FreeTokenizer::operator()(LlgTokenizer* tokenizer) const {
  llg_free_tokenizer(tokenizer);
}

void FreeMatcher::operator()(LlgMatcher* matcher) const {
  llg_free_matcher(matcher);
}

EngineTokenizer::~EngineTokenizer() = default;

bool EngineTokenizer::IsStop(TokenId token) const {
  return std::binary_search(stop_tokens_.begin(), stop_tokens_.end(), token);
}

absl::StatusOr<std::shared_ptr<const EngineTokenizer>> EngineTokenizer::Make(
    const Tokenizer& tokenizer, std::span<const TokenId> stop_tokens) {
  FUCINA_RETURN_IF_ERROR(tokenizer.text_status());
  if (stop_tokens.empty()) {
    return absl::InvalidArgumentError(
        "no end token: the model file names none that could end a reply; give "
        "one with --stop ID");
  }
  std::shared_ptr<EngineTokenizer> made(new EngineTokenizer);
  made->vocab_size_ = tokenizer.vocab_size();
  made->stop_tokens_.assign(stop_tokens.begin(), stop_tokens.end());
  std::sort(made->stop_tokens_.begin(), made->stop_tokens_.end());
  for (const TokenId token : made->stop_tokens_) {
    if (token >= 0 && token < made->vocab_size_) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("end token ", token, " is outside the vocabulary of ",
                     made->vocab_size_, " tokens"));
  }
  made->bridge_ = std::make_unique<TokenizeBridge>(tokenizer);
  const TokenBytes tokens = MakeTokenBytes(tokenizer, made->stop_tokens_);
  std::vector<LlgToken> further(stop_tokens.begin() + 1, stop_tokens.end());

  LlgTokenizerInitV2 init = {};
  init.struct_size = sizeof(init);
  init.vocab_size = static_cast<std::uint32_t>(made->vocab_size_);
  init.tok_eos = static_cast<LlgToken>(stop_tokens.front());
  init.token_lens = tokens.lengths.data();
  init.token_bytes = reinterpret_cast<const std::uint8_t*>(tokens.bytes.data());
  init.tokenize_fn = &Tokenize;
  init.tokenize_user_data = made->bridge_.get();
  init.tok_eos_extra = further.empty() ? nullptr : further.data();
  init.tok_eos_extra_count = static_cast<std::uint32_t>(further.size());
  char message[1024] = "";
  made->handle_.reset(llg_new_tokenizer_v2(&init, message, sizeof(message)));
  if (made->handle_ == nullptr) {
    return absl::InternalError(
        absl::StrCat("the engine refuses the vocabulary: ", message));
  }
  return made;
}

std::string ErrorOf(LlgMatcher* matcher) {
  const char* text = llg_matcher_get_error(matcher);
  if (text == nullptr) return "";
  absl::string_view error = text;
  absl::ConsumeSuffix(&error, "<non-verbose/>");
  error = error.substr(0, error.find("\n<backtrace>"));
  error = absl::StripAsciiWhitespace(error);
  if (error == "NoExtensionBias") return kNothingFollows;
  if (absl::ConsumePrefix(&error, "panic: ")) {
    return absl::StrCat("the engine fails at it (", error, ")");
  }
  return std::string(error);
}

absl::string_view EngineVersion() { return llg_get_version(); }

}  // namespace fucina::llguidance
