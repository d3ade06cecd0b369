#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "fucina/diag/status_macros.h"
#include "tests/conformance/constraint_checks.h"

namespace fucina::conformance {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

// Different in every row, of both signs, with a negative zero.
std::vector<float> Logits(int rows, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> logits;
  for (int i = 0; i < rows; ++i) {
    const float value = static_cast<float>(random() % 20001) - 10000;
    logits.push_back(i % 7 == 3 ? -0.0F : value * 0.01F);
  }
  return logits;
}

}  // namespace

absl::Status ConstraintChecks::MaskOnlyForbids() const {
  return ReplayAll([&](Constraint& constraint, std::size_t state) {
    const std::vector<float> before =
        Logits(rows_, static_cast<std::uint32_t>(state));
    std::vector<float> after = before;
    FUCINA_RETURN_IF_ERROR(constraint.Mask(after));
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (after[i] == kForbidden) continue;
      if (std::memcmp(&after[i], &before[i], sizeof(float)) != 0) {
        return Broken(absl::StrCat("after ", state, " tokens: logit ", i,
                                   " was ", before[i], " and became ",
                                   after[i]));
      }
    }
    return absl::OkStatus();
  });
}

absl::Status ConstraintChecks::MaskIgnoresLogits() const {
  return ReplayAll([&](Constraint& constraint, std::size_t state) {
    FUCINA_ASSIGN_OR_RETURN(const Allowed expected,
                            AllowedNow(constraint, rows_));
    // Each logit once with either sign.
    for (const float sign : {1.0F, -1.0F}) {
      std::vector<float> logits = Logits(rows_, 100);
      for (float& logit : logits) logit *= sign;
      FUCINA_RETURN_IF_ERROR(constraint.Mask(logits));
      for (std::size_t i = 0; i < logits.size(); ++i) {
        const bool forbidden = std::isinf(logits[i]) && logits[i] < 0;
        if (forbidden != expected[i]) continue;
        return Broken(absl::StrCat("after ", state, " tokens: token ", i,
                                   " is allowed in one row of logits only"));
      }
    }
    return absl::OkStatus();
  });
}

// The replay masks once more and compares.
absl::Status ConstraintChecks::MaskIsRepeatable() const {
  return ReplayAll([&](Constraint& constraint, std::size_t) {
    return AllowedNow(constraint, rows_).status();
  });
}

absl::Status ConstraintChecks::PaddingIsForbidden() const {
  for (const Walk& walk : walks_) {
    for (const Allowed& allowed : walk.allowed) {
      const auto padding = allowed.begin() + tokenizer_.vocab_size();
      const auto found = std::find(padding, allowed.end(), true);
      if (found == allowed.end()) continue;
      return Broken(absl::StrCat("row ", found - allowed.begin(), " of ", rows_,
                                 " is no token and allowed"));
    }
  }
  return absl::OkStatus();
}

absl::Status ConstraintChecks::AllowedIsAccepted() const {
  std::mt19937 random(5);
  FUCINA_ASSIGN_OR_RETURN(const auto constraint, Fresh());
  for (const Walk& walk : walks_) {
    for (int i = 0; i < 12; ++i) {
      const std::size_t at = random() % walk.allowed.size();
      std::vector<TokenId> choices;
      for (TokenId token = 0; token < tokenizer_.vocab_size(); ++token) {
        if (walk.allowed[at][static_cast<std::size_t>(token)]) {
          choices.push_back(token);
        }
      }
      const TokenId token = choices[random() % choices.size()];
      FUCINA_RETURN_IF_ERROR(GoTo(*constraint, walk, at));
      const absl::Status accepted = constraint->Accept(token);
      if (!accepted.ok()) {
        return Broken(
            absl::StrCat("after ", at, " tokens: token ", token,
                         " is allowed and not accepted: ", accepted.message()));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ConstraintChecks::CompleteWhereItMayEnd() const {
  if (tokenizer_.stop_tokens().empty()) {
    return absl::UnimplementedError("the vocabulary has no stop token");
  }
  return ReplayAll([&](Constraint& constraint, std::size_t state) {
    FUCINA_ASSIGN_OR_RETURN(const Allowed allowed,
                            AllowedNow(constraint, rows_));
    const bool may_end = AllowsStop(allowed);
    if (constraint.IsComplete() == may_end) return absl::OkStatus();
    return Broken(absl::StrCat("after ", state, " tokens a stop token is ",
                               may_end
                                   ? "allowed and the answer is not complete"
                                   : "forbidden and the answer is complete"));
  });
}

absl::Status ConstraintChecks::StopTokensEndReplies() const {
  const bool declared = std::any_of(
      kind_.options.begin(), kind_.options.end(),
      [](const OptionSpec& s) { return s.name == kStopTokensOption; });
  if (!declared || tokenizer_.stop_tokens().empty()) {
    return absl::UnimplementedError(
        declared ? "the vocabulary has no stop token"
                 : absl::StrCat("it has no option '", kStopTokensOption, "'"));
  }
  // The last ordinary token that no walk needs.
  TokenId stop = tokenizer_.vocab_size() - 1;
  const auto unfit = [&](TokenId token) {
    return tokenizer_.ClassOf(token) != TokenClass::kNormal ||
           tokenizer_.IsStop(token) ||
           std::any_of(walks_.begin(), walks_.end(), [&](const Walk& walk) {
             return std::find(walk.tokens.begin(), walk.tokens.end(), token) !=
                    walk.tokens.end();
           });
  };
  while (stop >= 0 && unfit(stop)) --stop;
  if (stop < 0) return absl::UnimplementedError("every token is walked on");
  OptionTexts texts = options_;
  texts[std::string(kStopTokensOption)] = absl::StrCat(stop);
  FUCINA_ASSIGN_OR_RETURN(const auto constraint, Make(texts));
  for (const Walk& walk : walks_) {
    for (std::size_t at = 0; at < walk.allowed.size(); ++at) {
      FUCINA_RETURN_IF_ERROR(GoTo(*constraint, walk, at));
      FUCINA_ASSIGN_OR_RETURN(const Allowed allowed,
                              AllowedNow(*constraint, rows_));
      if (allowed[static_cast<std::size_t>(stop)] == AllowsStop(allowed)) {
        continue;
      }
      return Broken(absl::StrCat(
          "after ", at, " tokens: the given stop token ", stop, " is ",
          AllowsStop(allowed) ? "forbidden and the vocabulary's own allowed"
                              : "allowed and the vocabulary's own forbidden"));
    }
  }
  return absl::OkStatus();
}

}  // namespace fucina::conformance
