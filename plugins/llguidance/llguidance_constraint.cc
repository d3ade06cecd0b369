#include "llguidance_constraint.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "fucina/ops/token_mask.h"
#include "llguidance.h"

namespace fucina::llguidance {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

}  // namespace

LlguidanceConstraint::LlguidanceConstraint(
    std::shared_ptr<const EngineTokenizer> engine, MatcherHandle matcher)
    : engine_(std::move(engine)),
      pristine_(std::move(matcher)),
      matcher_(llg_clone_matcher(pristine_.get())),
      mask_(llg_matcher_get_mask_byte_size(pristine_.get()) /
            sizeof(std::uint32_t)) {}

bool LlguidanceConstraint::stopped() const {
  return llg_matcher_is_stopped(matcher_.get());
}

absl::Status LlguidanceConstraint::Fail(absl::string_view message) {
  failure_ = absl::InternalError(
      absl::StrCat("constraint failed: ", Printable(message, 2048)));
  return failure_;
}

absl::Status LlguidanceConstraint::Mask(std::span<float> logits) {
  FUCINA_RETURN_IF_ERROR(failure_);
  const auto known = static_cast<std::size_t>(engine_->vocab_size());
  if (logits.size() < known) {
    return Fail(absl::StrCat("the model has ", logits.size(),
                             " logits and the vocabulary ", known, " tokens"));
  }
  if (llg_matcher_compute_mask_into(matcher_.get(), mask_.data(),
                                    mask_.size() * sizeof(std::uint32_t)) !=
      0) {
    return Fail(ErrorOf(matcher_.get()));
  }
  ops::ApplyTokenMask(mask_, logits.first(known));
  // Rows that pad the output matrix have no token.
  std::fill(logits.begin() + static_cast<std::ptrdiff_t>(known), logits.end(),
            kForbidden);
  return absl::OkStatus();
}

absl::Status LlguidanceConstraint::Accept(TokenId token) {
  FUCINA_RETURN_IF_ERROR(failure_);
  // Nothing follows a stop, and the engine would take it amiss.
  if (stopped()) return absl::OkStatus();
  if (token < 0 || token >= engine_->vocab_size()) {
    return Fail(absl::StrCat("token ", token, " is outside the vocabulary"));
  }
  if (llg_matcher_consume_token(matcher_.get(), static_cast<LlgToken>(token)) !=
      0) {
    // A text token that was made a stop: the mask allows it as the only
    // spelling of what must come.
    if (engine_->IsStop(token)) {
      return Fail(absl::StrCat("the grammar needs the text of token ", token,
                               ", which ends a reply; choose another stop "
                               "token"));
    }
    return Fail(ErrorOf(matcher_.get()));
  }
  accepted_.push_back(token);
  return absl::OkStatus();
}

absl::Status LlguidanceConstraint::Reset() {
  matcher_.reset(llg_clone_matcher(pristine_.get()));
  accepted_.clear();
  failure_ = absl::OkStatus();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Constraint>> LlguidanceConstraint::Clone()
    const {
  return std::make_unique<LlguidanceConstraint>(
      engine_, MatcherHandle(llg_clone_matcher(pristine_.get())));
}

void LlguidanceConstraint::Recover() {
  matcher_.reset(llg_clone_matcher(pristine_.get()));
  for (const TokenId token : accepted_) {
    // Went well before; if not now, the next Mask says so.
    if (llg_matcher_consume_token(matcher_.get(),
                                  static_cast<LlgToken>(token)) != 0) {
      return;
    }
  }
}

int LlguidanceConstraint::ForcedTokens(std::span<TokenId> tokens) {
  if (tokens.empty() || !failure_.ok() || stopped()) return 0;
  // The engine's ids are ours, without their sign.
  const int count = llg_matcher_compute_ff_tokens(
      matcher_.get(), reinterpret_cast<LlgToken*>(tokens.data()),
      tokens.size());
  if (llg_matcher_is_error(matcher_.get())) {
    Recover();
    return 0;
  }
  const auto forced = tokens.first(static_cast<std::size_t>(count));
  const auto stop =
      std::find_if(forced.begin(), forced.end(),
                   [this](TokenId token) { return engine_->IsStop(token); });
  return static_cast<int>(stop - forced.begin());
}

int LlguidanceConstraint::ValidPrefix(std::span<const TokenId> tokens) {
  // An id outside the vocabulary would be the matcher's end.
  const auto known =
      std::find_if(tokens.begin(), tokens.end(), [this](TokenId token) {
        return token < 0 || token >= engine_->vocab_size() ||
               engine_->IsStop(token);
      });
  const auto count = static_cast<std::size_t>(known - tokens.begin());
  if (count == 0 || !failure_.ok() || stopped()) return 0;
  const int valid = llg_matcher_validate_tokens(
      matcher_.get(), reinterpret_cast<const LlgToken*>(tokens.data()), count);
  if (valid >= 0) return valid;
  Recover();
  return 0;
}

bool LlguidanceConstraint::IsComplete() {
  if (!failure_.ok() || llg_matcher_is_error(matcher_.get())) return false;
  return stopped() || llg_matcher_is_accepting(matcher_.get());
}

}  // namespace fucina::llguidance
