#include "tests/conformance/constraint_walk.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fucina/diag/status_macros.h"

namespace fucina::conformance {
namespace {

absl::Status Same(const Allowed& found, const Allowed& expected,
                  std::size_t state) {
  if (found == expected) return absl::OkStatus();
  const auto [at, unused] =
      std::mismatch(found.begin(), found.end(), expected.begin());
  return absl::InternalError(absl::StrCat(
      "after ", state, " tokens: token ", at - found.begin(),
      *at ? " is allowed and was not" : " is forbidden and was not"));
}

// Unimplemented would say that it is not offered.
absl::Status Named(absl::string_view call, const absl::Status& status) {
  return status.ok()
             ? status
             : absl::InternalError(absl::StrCat(call, ": ", status.ToString()));
}

}  // namespace

absl::Status Restart(Constraint& constraint) {
  return Named("Reset", constraint.Reset());
}

absl::StatusOr<Allowed> AllowedNow(Constraint& constraint, int rows) {
  std::vector<float> logits(static_cast<std::size_t>(rows), 0.5F);
  FUCINA_RETURN_IF_ERROR(Named("Mask", constraint.Mask(logits)));
  Allowed allowed(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    allowed[i] = !(std::isinf(logits[i]) && logits[i] < 0);
  }
  return allowed;
}

absl::StatusOr<Walk> RandomWalk(Constraint& constraint,
                                const Tokenizer& tokenizer, int rows,
                                std::uint32_t seed, std::size_t max_tokens) {
  std::mt19937 random(seed);
  Walk walk;
  FUCINA_RETURN_IF_ERROR(Restart(constraint));
  while (true) {
    FUCINA_ASSIGN_OR_RETURN(Allowed allowed, AllowedNow(constraint, rows));
    std::vector<TokenId> choices;
    std::vector<TokenId> stops;
    for (TokenId token = 0; token < tokenizer.vocab_size(); ++token) {
      if (!allowed[static_cast<std::size_t>(token)]) continue;
      (tokenizer.IsStop(token) ? stops : choices).push_back(token);
    }
    walk.allowed.push_back(std::move(allowed));
    if (choices.empty() && stops.empty()) {
      return absl::InternalError(absl::StrCat(
          "after ", walk.tokens.size(), " tokens every one is forbidden"));
    }
    if (walk.tokens.size() == max_tokens) return walk;
    // Where a reply may end, one in four does.
    walk.stopped = choices.empty() || (!stops.empty() && random() % 4 == 0);
    const std::vector<TokenId>& from = walk.stopped ? stops : choices;
    const TokenId token = from[random() % from.size()];
    const absl::Status accepted = constraint.Accept(token);
    if (!accepted.ok()) {
      return absl::InternalError(
          absl::StrCat("after ", walk.tokens.size(), " tokens: token ", token,
                       " is allowed and not accepted: ", accepted.message()));
    }
    walk.tokens.push_back(token);
    if (walk.stopped) return walk;
  }
}

absl::Status ReplayPart(Constraint& constraint, const Walk& walk,
                        std::size_t from, std::size_t to, AtState at_state) {
  for (std::size_t i = from; i < std::min(to, walk.allowed.size()); ++i) {
    FUCINA_RETURN_IF_ERROR(at_state(constraint, i));
    FUCINA_ASSIGN_OR_RETURN(
        const Allowed allowed,
        AllowedNow(constraint, static_cast<int>(walk.allowed[i].size())));
    FUCINA_RETURN_IF_ERROR(Same(allowed, walk.allowed[i], i));
    if (i == walk.tokens.size()) break;
    FUCINA_RETURN_IF_ERROR(Named("Accept", constraint.Accept(walk.tokens[i])));
  }
  return absl::OkStatus();
}

absl::Status Replay(Constraint& constraint, const Walk& walk,
                    AtState at_state) {
  return ReplayPart(constraint, walk, 0, walk.allowed.size(), at_state);
}

absl::Status Replay(Constraint& constraint, const Walk& walk) {
  return Replay(constraint, walk,
                [](Constraint&, std::size_t) { return absl::OkStatus(); });
}

absl::Status GoTo(Constraint& constraint, const Walk& walk, std::size_t count) {
  FUCINA_RETURN_IF_ERROR(Restart(constraint));
  for (std::size_t i = 0; i < count; ++i) {
    FUCINA_RETURN_IF_ERROR(Named("Accept", constraint.Accept(walk.tokens[i])));
  }
  return absl::OkStatus();
}

}  // namespace fucina::conformance
