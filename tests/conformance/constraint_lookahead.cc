#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "fucina/diag/status_macros.h"
#include "tests/conformance/constraint_checks.h"

namespace fucina::conformance {
namespace {

constexpr TokenId kSentinel = -12345;

}  // namespace

TokenId ConstraintChecks::RandomText(std::mt19937& random) const {
  while (true) {
    const auto token = static_cast<TokenId>(
        random() % static_cast<unsigned>(tokenizer_.vocab_size()));
    if (!tokenizer_.IsStop(token)) return token;
  }
}

std::vector<TokenId> ConstraintChecks::TextOf(const Walk& walk,
                                              std::size_t from) const {
  const std::size_t end = walk.tokens.size() - (walk.stopped ? 1 : 0);
  const auto begin = walk.tokens.begin();
  return {begin + static_cast<std::ptrdiff_t>(std::min(from, end)),
          begin + static_cast<std::ptrdiff_t>(end)};
}

absl::Status ConstraintChecks::CompleteLooksOnly() const {
  return ReplayAll([](Constraint& constraint, std::size_t state) {
    const bool complete = constraint.IsComplete();
    if (constraint.IsComplete() == complete) return absl::OkStatus();
    return Broken(absl::StrCat("after ", state, " tokens two answers"));
  });
}

absl::Status ConstraintChecks::ForcedLooksOnly() const {
  return ReplayAll([](Constraint& constraint, std::size_t state) {
    std::array<TokenId, 16> first = {};
    std::array<TokenId, 16> second = {};
    if (constraint.ForcedTokens(first) == constraint.ForcedTokens(second) &&
        first == second) {
      return absl::OkStatus();
    }
    return Broken(absl::StrCat("after ", state, " tokens two answers"));
  });
}

absl::Status ConstraintChecks::ForcedFitsAndIsForced() const {
  bool any = false;
  for (const Walk& walk : walks_) {
    for (std::size_t at = 0; at < walk.allowed.size(); ++at) {
      FUCINA_ASSIGN_OR_RETURN(const auto constraint, Fresh());
      FUCINA_RETURN_IF_ERROR(GoTo(*constraint, walk, at));
      for (const std::size_t room : {0U, 1U, 2U, 16U}) {
        std::vector<TokenId> buffer(24, kSentinel);
        const int count =
            constraint->ForcedTokens(std::span(buffer).first(room));
        const bool fits = count >= 0 && static_cast<std::size_t>(count) <= room;
        if (!fits || buffer[room] != kSentinel) {
          return Broken(absl::StrCat("after ", at, " tokens: ", count,
                                     " where there was room for ", room));
        }
        if (room < 16) continue;
        any = any || count > 0;
        for (int i = 0; i < count; ++i) {
          const TokenId token = buffer[static_cast<std::size_t>(i)];
          FUCINA_ASSIGN_OR_RETURN(const Allowed allowed,
                                  AllowedNow(*constraint, rows_));
          const auto choices = std::count(allowed.begin(), allowed.end(), true);
          if (token < 0 || token >= rows_ ||
              !allowed[static_cast<std::size_t>(token)] || choices != 1) {
            return Broken(absl::StrCat(
                "after ", at + static_cast<std::size_t>(i), " tokens: token ",
                token, " is said to be forced, and the mask leaves ", choices,
                " tokens"));
          }
          FUCINA_RETURN_IF_ERROR(constraint->Accept(token));
        }
      }
    }
  }
  return any ? absl::OkStatus()
             : absl::UnimplementedError("no token was ever forced");
}

absl::Status ConstraintChecks::PrefixLooksOnly() const {
  return ReplayAll([&](Constraint& constraint, std::size_t state) {
    std::mt19937 random(static_cast<std::uint32_t>(state));
    const Walk& any = walks_[random() % walks_.size()];
    std::vector<TokenId> tokens = TextOf(any, state);
    tokens.push_back(RandomText(random));
    const int valid = constraint.ValidPrefix(tokens);
    if (constraint.ValidPrefix(tokens) == valid) return absl::OkStatus();
    return Broken(absl::StrCat("after ", state, " tokens two answers"));
  });
}

absl::StatusOr<bool> ConstraintChecks::CutsDrafts() const {
  FUCINA_ASSIGN_OR_RETURN(const auto constraint, Fresh());
  FUCINA_ASSIGN_OR_RETURN(const Allowed allowed,
                          AllowedNow(*constraint, rows_));
  for (TokenId token = 0; token < tokenizer_.vocab_size(); ++token) {
    if (allowed[static_cast<std::size_t>(token)]) continue;
    if (constraint->ValidPrefix({&token, 1}) == 0) return true;
  }
  return false;
}

// A token may be valid and masked where another cut of the same text is
// forced: valid is what is accepted, and what comes behind it is forbidden.
absl::Status ConstraintChecks::CheckPrefix(
    Constraint& constraint, const Walk& walk, std::size_t at,
    std::span<const TokenId> tokens) const {
  FUCINA_RETURN_IF_ERROR(GoTo(constraint, walk, at));
  const int valid = constraint.ValidPrefix(tokens);
  const std::string where =
      absl::StrCat("after ", at, " tokens, of ", tokens.size(),
                   " further ones ", valid, " are said to be valid");
  if (valid < 0 || static_cast<std::size_t>(valid) > tokens.size()) {
    return Broken(where);
  }
  const auto count = static_cast<std::size_t>(valid);
  for (std::size_t i = 0; i < count; ++i) {
    if (constraint.Accept(tokens[i]).ok()) continue;
    return Broken(absl::StrCat(where, ", and number ", i + 1, ", token ",
                               tokens[i], ", is not accepted"));
  }
  if (count == tokens.size()) return absl::OkStatus();
  FUCINA_ASSIGN_OR_RETURN(const Allowed allowed, AllowedNow(constraint, rows_));
  if (!allowed[static_cast<std::size_t>(tokens[count])]) {
    return absl::OkStatus();
  }
  return Broken(absl::StrCat(where, ", and the next, token ", tokens[count],
                             ", is allowed"));
}

absl::Status ConstraintChecks::PrefixIsAccepted() const {
  FUCINA_ASSIGN_OR_RETURN(const bool cuts, CutsDrafts());
  if (!cuts) {
    return absl::UnimplementedError(
        "no draft is cut: its answer is the number of tokens");
  }
  FUCINA_ASSIGN_OR_RETURN(const auto constraint, Fresh());
  std::mt19937 random(9);
  for (const Walk& walk : walks_) {
    for (int i = 0; i < 12; ++i) {
      const std::size_t at = random() % walk.allowed.size();
      std::vector<TokenId> tokens = TextOf(walk, at);
      if (i % 3 == 1) tokens.push_back(RandomText(random));
      if (i % 3 == 2 && !tokens.empty()) {
        tokens[random() % tokens.size()] = RandomText(random);
      }
      FUCINA_RETURN_IF_ERROR(CheckPrefix(*constraint, walk, at, tokens));
    }
  }
  return absl::OkStatus();
}

absl::Status ConstraintChecks::GarbageIsHarmless() const {
  FUCINA_ASSIGN_OR_RETURN(const bool cuts, CutsDrafts());
  const TokenId garbage[] = {-1, rows_, tokenizer_.vocab_size(),
                             std::numeric_limits<TokenId>::min(),
                             std::numeric_limits<TokenId>::max()};
  std::mt19937 random(3);
  return ReplayAll([&](Constraint& constraint, std::size_t state) {
    for (const TokenId token : garbage) {
      const TokenId tokens[] = {token, RandomText(random), token};
      const int valid = constraint.ValidPrefix(tokens);
      if (valid == 0 || (!cuts && valid == 3)) continue;
      return Broken(absl::StrCat("after ", state, " tokens: ", valid,
                                 " tokens are valid, the first is ", token));
    }
    return absl::OkStatus();
  });
}

}  // namespace fucina::conformance
