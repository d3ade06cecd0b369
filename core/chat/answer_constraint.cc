#include "fucina/chat/answer_constraint.h"

#include <algorithm>
#include <array>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "fucina/diag/status_macros.h"

namespace fucina {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();
constexpr int kMostLineEnds = 2;
// The line ends "\n" and "\n\n"; an opening mark goes one token at a time.
constexpr std::size_t kMostExtras = 2;

bool Contains(std::span<const TokenId> ids, TokenId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// Whether `text` ends with a beginning of `mark`.
bool EndsInside(absl::string_view text, absl::string_view mark) {
  std::size_t size = std::min(text.size(), mark.size() - 1);
  while (size > 0 && !absl::EndsWith(text, mark.substr(0, size))) --size;
  return size > 0;
}

bool IsBlank(absl::string_view text) {
  return absl::StripAsciiWhitespace(text).empty();
}

}  // namespace

AnswerConstraint::AnswerConstraint(Constraint& answer,
                                   const Tokenizer& tokenizer,
                                   absl::string_view think_open,
                                   absl::string_view think_close)
    : answer_(answer),
      tokenizer_(tokenizer),
      open_(think_open),
      close_(think_close) {
  if (open_.empty() || close_.empty()) return;
  auto open = tokenizer_.Encode(open_);
  if (open.ok()) open_tokens_ = *std::move(open);
  for (const absl::string_view text : {"\n", "\n\n"}) {
    const auto ids = tokenizer_.Encode(text);
    if (ids.ok() && ids->size() == 1) line_ends_.push_back(ids->front());
  }
  for (TokenId id = 0; id < tokenizer_.vocab_size(); ++id) {
    const absl::string_view bytes = Text(id);
    const std::size_t at = bytes.find(close_.back());
    if (at == absl::string_view::npos || at + 1 >= bytes.size()) continue;
    may_overshoot_.push_back(id);
    if (bytes.find(close_) != absl::string_view::npos) {
      overshooting_.push_back(id);
    }
  }
}

AnswerConstraint::~AnswerConstraint() = default;

absl::string_view AnswerConstraint::Text(TokenId token) const {
  return tokenizer_.DecodeToken(token);
}

std::span<const TokenId> AnswerConstraint::Extras() const {
  if (state_ == State::kUndecided && opened_ < open_tokens_.size()) {
    return std::span(open_tokens_).subspan(opened_, 1);
  }
  if (state_ == State::kBetween && line_ends_left_ > 0) return line_ends_;
  return {};
}

bool AnswerConstraint::IsExtra(TokenId token) const {
  return Contains(Extras(), token);
}

bool AnswerConstraint::Closes(std::string& tail, TokenId token) const {
  const absl::string_view text = Text(token);
  tail.append(text.data(), text.size());
  // A mark that the reader is not shown closes by its id.
  const bool closed = absl::StrContains(tail, close_) ||
                      (text.empty() && tokenizer_.TokenBytes(token) == close_);
  if (tail.size() > close_.size()) tail.erase(0, tail.size() - close_.size());
  return closed;
}

absl::Status AnswerConstraint::Reset() {
  const bool thinks = !open_.empty() && !close_.empty();
  state_ = !thinks || expected_ == PromptThinking::kClosed ? State::kAnswer
           : expected_ == PromptThinking::kOpen            ? State::kThinking
                                                           : State::kUndecided;
  text_.clear();
  opened_ = 0;
  answering_ = true;
  line_ends_left_ = kMostLineEnds;
  return answer_.Reset();
}

// A token that closes the block and goes on would begin the answer unseen.
void AnswerConstraint::ForbidOvershoot(std::span<float> logits) const {
  // Few tokens hold a whole mark; the others matter inside of one only.
  for (const TokenId token :
       EndsInside(text_, close_) ? may_overshoot_ : overshooting_) {
    std::string text = text_;
    const absl::string_view bytes = Text(token);
    text.append(bytes.data(), bytes.size());
    const std::size_t at = text.find(close_);
    if (at == std::string::npos || IsBlank(text.substr(at + close_.size())) ||
        static_cast<std::size_t>(token) >= logits.size()) {
      continue;
    }
    logits[token] = kForbidden;
  }
}

absl::Status AnswerConstraint::Mask(std::span<float> logits) {
  if (state_ == State::kThinking) {
    ForbidOvershoot(logits);
    return absl::OkStatus();
  }
  const std::span<const TokenId> extras = Extras();
  std::array<float, kMostExtras> kept;
  for (std::size_t i = 0; i < extras.size(); ++i) kept[i] = logits[extras[i]];
  if (answering_) {
    FUCINA_RETURN_IF_ERROR(answer_.Mask(logits));
  } else {
    std::fill(logits.begin(), logits.end(), kForbidden);
  }
  for (std::size_t i = 0; i < extras.size(); ++i) logits[extras[i]] = kept[i];
  return absl::OkStatus();
}

absl::Status AnswerConstraint::AcceptUndecided(TokenId token) {
  const absl::string_view text = Text(token);
  text_.append(text.data(), text.size());
  const bool extra = IsExtra(token);
  if (extra) ++opened_;
  const absl::string_view written = absl::StripLeadingAsciiWhitespace(text_);
  if ((extra && opened_ == open_tokens_.size()) ||
      absl::StartsWith(written, open_)) {
    state_ = State::kThinking;
    text_.clear();
    answering_ = true;
    return answer_.Reset();
  }
  // The opening mark wins where both may go on.
  if (answering_ && extra && answer_.ValidPrefix({&token, 1}) == 0) {
    answering_ = false;
  }
  if (answering_) FUCINA_RETURN_IF_ERROR(answer_.Accept(token));
  if (!extra && !absl::StartsWith(open_, written)) state_ = State::kAnswer;
  // Another cut of the mark's text is on no path of ours any more.
  if (!extra) opened_ = open_tokens_.size();
  return absl::OkStatus();
}

absl::Status AnswerConstraint::Accept(TokenId token) {
  switch (state_) {
    case State::kUndecided:
      return AcceptUndecided(token);
    case State::kThinking:
      if (Closes(text_, token)) state_ = State::kBetween;
      return absl::OkStatus();
    case State::kBetween:
      // A line end that the grammar wants is the answer's.
      if (IsExtra(token) && answer_.ValidPrefix({&token, 1}) == 0) {
        --line_ends_left_;
        return absl::OkStatus();
      }
      state_ = State::kAnswer;
      break;
    case State::kAnswer:
      break;
  }
  return answer_.Accept(token);
}

absl::StatusOr<std::unique_ptr<Constraint>> AnswerConstraint::Clone() const {
  return absl::UnimplementedError("the constraint of a conversation's answers");
}

int AnswerConstraint::ForcedTokens(std::span<TokenId> tokens) {
  return state_ == State::kAnswer ? answer_.ForcedTokens(tokens) : 0;
}

int AnswerConstraint::ValidPrefix(std::span<const TokenId> tokens) {
  std::size_t free = 0;
  if (state_ == State::kUndecided) {
    if (!tokens.empty() && IsExtra(tokens.front())) return 1;
    return answering_ ? answer_.ValidPrefix(tokens) : 0;
  }
  if (state_ == State::kThinking) {
    std::string tail = text_;
    bool closed = false;
    while (free < tokens.size() && !closed)
      closed = Closes(tail, tokens[free++]);
    if (!closed) return static_cast<int>(free);
  }
  if (state_ != State::kAnswer) {
    int left = line_ends_left_;
    while (free < tokens.size() && left > 0 &&
           Contains(line_ends_, tokens[free]) &&
           answer_.ValidPrefix(tokens.subspan(free, 1)) == 0) {
      ++free;
      --left;
    }
  }
  return static_cast<int>(free) + answer_.ValidPrefix(tokens.subspan(free));
}

bool AnswerConstraint::IsComplete() {
  return state_ != State::kThinking && answering_ && answer_.IsComplete();
}

}  // namespace fucina
