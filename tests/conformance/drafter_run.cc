#include "tests/conformance/drafter_run.h"

#include <algorithm>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "fucina/diag/status_macros.h"

namespace fucina::conformance {
namespace {

constexpr TokenId kSentinel = -12345;
constexpr std::size_t kRoom = 8;

}  // namespace

std::vector<TokenId> RepetitiveText(int vocab_size, std::uint32_t seed,
                                    std::size_t length) {
  std::mt19937 random(seed);
  std::vector<std::vector<TokenId>> phrases(3);
  for (auto& phrase : phrases) {
    for (int i = 0; i < 7; ++i) {
      phrase.push_back(
          static_cast<TokenId>(random() % static_cast<unsigned>(vocab_size)));
    }
  }
  std::vector<TokenId> text;
  while (text.size() < length) {
    const auto& phrase = phrases[random() % phrases.size()];
    text.insert(text.end(), phrase.begin(), phrase.end());
  }
  text.resize(length);
  return text;
}

absl::Status DrafterRun::Begin() {
  if (drafter_.tap() != nullptr) {
    FUCINA_ASSIGN_OR_RETURN(
        state_, decoder_.NewState(static_cast<int>(script_.size() + kMaxRoom)));
  }
  drafter_.Rewind(0);
  return absl::OkStatus();
}

absl::Status DrafterRun::Forward(std::span<const TokenId> tokens) {
  if (state_ == nullptr) return absl::OkStatus();
  SequenceStep step{.tokens = tokens,
                    .state = state_.get(),
                    .rows = LogitRows::kNone,
                    .tap = drafter_.tap()};
  return decoder_.Forward({&step, 1});
}

// Commits, and says what the model thought of after each token before: a
// function of that token here.
void DrafterRun::Tell(std::size_t first, std::size_t count) {
  drafter_.Commit(script_.subspan(first, count));
  const auto vocab_size = static_cast<std::size_t>(decoder_.info().vocab_size);
  const auto wanted = std::min(
      static_cast<std::size_t>(std::max(0, drafter_.wants_candidates())),
      vocab_size);
  if (wanted == 0) return;
  std::vector<TokenId> candidates(wanted);
  for (std::size_t row = 0; row < count; ++row) {
    const TokenId token = script_[first + row - 1];
    for (std::size_t i = 0; i < wanted; ++i) {
      candidates[i] = static_cast<TokenId>(
          (static_cast<std::size_t>(token) * 31 + 7 + i) % vocab_size);
    }
    drafter_.OnCandidates(token, candidates);
  }
}

absl::Status DrafterRun::Read(std::size_t length, std::size_t chunk) {
  while (committed_ < length) {
    const std::size_t count = std::min(chunk, length - committed_);
    const auto tokens = script_.subspan(committed_, count);
    FUCINA_RETURN_IF_ERROR(Forward(tokens));
    drafter_.Commit(tokens);
    committed_ += count;
  }
  Tell(committed_, 1);
  ++committed_;
  return absl::OkStatus();
}

absl::StatusOr<Draft> DrafterRun::Ask(std::size_t room) {
  std::vector<TokenId> buffer(room + 8, kSentinel);
  const int count = drafter_.Propose(script_.first(committed_),
                                     std::span(buffer).first(room));
  if (count < 0 || static_cast<std::size_t>(count) > room ||
      buffer[room] != kSentinel) {
    return absl::InternalError(
        absl::StrCat("after ", committed_, " tokens: ", count,
                     " where there was room for ", room));
  }
  Draft draft;
  draft.tokens.assign(buffer.begin(), buffer.begin() + count);
  for (const TokenId token : draft.tokens) {
    if (token >= 0 && token < decoder_.info().vocab_size) continue;
    return absl::InternalError(absl::StrCat("after ", committed_,
                                            " tokens: drafts ", token,
                                            ", which is no token"));
  }
  if (count > 0) draft.draft_class = drafter_.draft_class();
  return draft;
}

absl::StatusOr<std::size_t> DrafterRun::Verify(std::span<const TokenId> draft) {
  std::vector<TokenId> tokens = {script_[committed_ - 1]};
  tokens.insert(tokens.end(), draft.begin(), draft.end());
  FUCINA_RETURN_IF_ERROR(Forward(tokens));
  const auto rest = script_.subspan(committed_);
  const auto right = static_cast<std::size_t>(
      std::mismatch(draft.begin(), draft.end(), rest.begin(), rest.end())
          .first -
      draft.begin());
  const std::size_t count = std::min(right + 1, rest.size());
  Tell(committed_, count);
  committed_ += count;
  if (state_ != nullptr) {
    FUCINA_RETURN_IF_ERROR(state_->Truncate(static_cast<int>(committed_) - 1));
  }
  return right;
}

absl::Status DrafterRun::Rewind(std::size_t length,
                                std::span<const TokenId> script) {
  script_ = script;
  drafter_.Rewind(static_cast<int>(length));
  if (state_ != nullptr) {
    FUCINA_RETURN_IF_ERROR(state_->Truncate(static_cast<int>(length)));
  }
  committed_ = length;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Draft>> DrafterRun::StepsTo(std::size_t length,
                                                       std::size_t* right) {
  std::vector<Draft> drafts;
  while (committed_ < length) {
    FUCINA_ASSIGN_OR_RETURN(Draft draft,
                            Ask(std::min(kRoom, script_.size() - committed_)));
    FUCINA_ASSIGN_OR_RETURN(const std::size_t hits, Verify(draft.tokens));
    if (right != nullptr) *right += hits;
    drafts.push_back(std::move(draft));
  }
  return drafts;
}

}  // namespace fucina::conformance
