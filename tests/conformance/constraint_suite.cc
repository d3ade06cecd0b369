#include "tests/conformance/constraint_suite.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fucina/diag/status_macros.h"
#include "tests/conformance/constraint_checks.h"

namespace fucina::conformance {
namespace {

constexpr std::uint32_t kNumWalks = 4;
constexpr std::size_t kMaxTokens = 40;
constexpr int kPadding = 37;

}  // namespace

ConstraintChecks::ConstraintChecks(const ConstraintKind& kind,
                                   const Tokenizer& tokenizer,
                                   const OptionTexts& options)
    : kind_(kind),
      tokenizer_(tokenizer),
      options_(options),
      rows_(tokenizer.vocab_size() + kPadding) {}

absl::StatusOr<std::unique_ptr<Constraint>> ConstraintChecks::Make(
    const OptionTexts& texts) const {
  FUCINA_ASSIGN_OR_RETURN(const Options options,
                          Options::Make(kind_.options, texts));
  FUCINA_ASSIGN_OR_RETURN(auto made, kind_.make(tokenizer_, options));
  if (made == nullptr) return Broken("OK, and no constraint");
  return made;
}

absl::StatusOr<std::unique_ptr<Constraint>> ConstraintChecks::Fresh() const {
  auto clone = made_->Clone();
  if (!clone.ok() || *clone == nullptr) {
    return Broken(absl::StrCat(
        "cannot be cloned: ",
        clone.ok() ? "OK, and no clone" : clone.status().message()));
  }
  FUCINA_RETURN_IF_ERROR(Restart(**clone));
  return clone;
}

absl::Status ConstraintChecks::ReplayAll(AtState at_state) const {
  for (const Walk& walk : walks_) {
    FUCINA_ASSIGN_OR_RETURN(const auto fresh, Fresh());
    FUCINA_RETURN_IF_ERROR(Replay(*fresh, walk, at_state));
  }
  return absl::OkStatus();
}

bool ConstraintChecks::AllowsStop(const Allowed& allowed) const {
  const auto stops = tokenizer_.stop_tokens();
  return std::any_of(stops.begin(), stops.end(), [&](TokenId token) {
    return allowed[static_cast<std::size_t>(token)];
  });
}

absl::Status ConstraintChecks::MakeIt() {
  FUCINA_ASSIGN_OR_RETURN(made_, Make(options_));
  return absl::OkStatus();
}

absl::Status ConstraintChecks::AllowsReplies() {
  for (std::uint32_t seed = 1; seed <= kNumWalks; ++seed) {
    FUCINA_ASSIGN_OR_RETURN(const auto fresh, Fresh());
    FUCINA_ASSIGN_OR_RETURN(
        Walk walk, RandomWalk(*fresh, tokenizer_, rows_, seed, kMaxTokens));
    walks_.push_back(std::move(walk));
  }
  return absl::OkStatus();
}

absl::Status CheckConstraint(const ConstraintKind& kind,
                             const Tokenizer& tokenizer,
                             const OptionTexts& options, Report& report) {
  ConstraintChecks checks(kind, tokenizer, options);
  FUCINA_RETURN_IF_ERROR(checks.MakeIt());
  report.Subject(absl::StrCat("constraint '", kind.name, "'"));
  const absl::Status ready = checks.AllowsReplies();
  report.Property("allows replies, token by token", ready);
  if (!ready.ok()) return absl::OkStatus();
  const struct {
    absl::string_view property;
    absl::Status (ConstraintChecks::*check)() const;
  } properties[] = {
      {"a mask forbids tokens and changes nothing else",
       &ConstraintChecks::MaskOnlyForbids},
      {"what is forbidden does not depend on the logits",
       &ConstraintChecks::MaskIgnoresLogits},
      {"the same state has the same mask", &ConstraintChecks::MaskIsRepeatable},
      {"rows that are no tokens are forbidden",
       &ConstraintChecks::PaddingIsForbidden},
      {"what is allowed is accepted", &ConstraintChecks::AllowedIsAccepted},
      {"is complete where a stop token may follow and nowhere else",
       &ConstraintChecks::CompleteWhereItMayEnd},
      {"asking whether it is complete changes nothing",
       &ConstraintChecks::CompleteLooksOnly},
      {"asking for forced tokens changes nothing",
       &ConstraintChecks::ForcedLooksOnly},
      {"forced tokens fit and are all that is allowed",
       &ConstraintChecks::ForcedFitsAndIsForced},
      {"asking for the valid prefix changes nothing",
       &ConstraintChecks::PrefixLooksOnly},
      {"the valid prefix is what is accepted",
       &ConstraintChecks::PrefixIsAccepted},
      {"ids outside the vocabulary are not valid and do no harm",
       &ConstraintChecks::GarbageIsHarmless},
      {"a reset begins anew, also after an error",
       &ConstraintChecks::ResetBeginsAnew},
      {"clones do not influence each other",
       &ConstraintChecks::ClonesAreIndependent},
      {"two threads on two clones equal one thread",
       &ConstraintChecks::AnyThreadWorks},
      {"the same options make the same constraint",
       &ConstraintChecks::SameOptionsSameConstraint},
      {"stop tokens that are given end replies",
       &ConstraintChecks::StopTokensEndReplies},
      {"bad options are refused by name",
       &ConstraintChecks::OptionsAreRefusedByName},
  };
  for (const auto& [property, check] : properties) {
    report.Property(property, (checks.*check)());
  }
  return absl::OkStatus();
}

}  // namespace fucina::conformance
