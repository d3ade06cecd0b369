#include <thread>

#include "absl/strings/str_cat.h"
#include "fucina/diag/status_macros.h"
#include "tests/conformance/constraint_checks.h"

namespace fucina::conformance {
namespace {

absl::Status Nothing(Constraint&, std::size_t) { return absl::OkStatus(); }

}  // namespace

absl::Status ConstraintChecks::ResetBeginsAnew() const {
  FUCINA_ASSIGN_OR_RETURN(const auto constraint, Fresh());
  for (const Walk& walk : walks_) {
    // From the start, from the middle, from the end, and after an error.
    for (const std::size_t at :
         {std::size_t{0}, walk.tokens.size() / 2, walk.tokens.size()}) {
      for (const bool fails : {false, true}) {
        FUCINA_RETURN_IF_ERROR(GoTo(*constraint, walk, at));
        if (fails) constraint->Accept(-1).IgnoreError();
        FUCINA_RETURN_IF_ERROR(Restart(*constraint));
        const absl::Status same = Replay(*constraint, walk);
        if (!same.ok()) {
          return Broken(absl::StrCat("reset after ", at, " tokens",
                                     fails ? " and an error" : "", ": ",
                                     same.message()));
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ConstraintChecks::ClonesAreIndependent() const {
  for (std::size_t i = 0; i < walks_.size(); ++i) {
    const Walk& one = walks_[i];
    const Walk& other = walks_[(i + 1) % walks_.size()];
    const std::size_t middle = one.allowed.size() / 2;
    FUCINA_ASSIGN_OR_RETURN(auto first, Fresh());
    FUCINA_RETURN_IF_ERROR(ReplayPart(*first, one, 0, middle, Nothing));
    // A clone from the middle of a reply, and both go on in turns.
    FUCINA_ASSIGN_OR_RETURN(const auto second, first->Clone());
    if (second == nullptr) return Broken("OK, and no clone");
    FUCINA_RETURN_IF_ERROR(Restart(*second));
    for (std::size_t at = 0; at < other.allowed.size(); ++at) {
      FUCINA_RETURN_IF_ERROR(ReplayPart(*second, other, at, at + 1, Nothing));
      if (first == nullptr) continue;
      FUCINA_RETURN_IF_ERROR(
          ReplayPart(*first, one, middle + at, middle + at + 1, Nothing));
      if (middle + at >= one.allowed.size()) first = nullptr;
    }
  }
  return absl::OkStatus();
}

absl::Status ConstraintChecks::AnyThreadWorks() const {
  FUCINA_ASSIGN_OR_RETURN(const auto constraint, Fresh());
  FUCINA_ASSIGN_OR_RETURN(const auto mine, Fresh());
  absl::Status other = absl::InternalError("the thread did not run");
  std::thread thread([&] { other = Replay(*constraint, walks_[0]); });
  const absl::Status here = Replay(*mine, walks_[1]);
  thread.join();
  FUCINA_RETURN_IF_ERROR(other);
  return here;
}

absl::Status ConstraintChecks::SameOptionsSameConstraint() const {
  FUCINA_ASSIGN_OR_RETURN(const auto another, Make(options_));
  for (const Walk& walk : walks_) {
    FUCINA_RETURN_IF_ERROR(Restart(*another));
    FUCINA_RETURN_IF_ERROR(Replay(*another, walk));
  }
  return absl::OkStatus();
}

absl::Status ConstraintChecks::OptionsAreRefusedByName() const {
  return BadOptionsAreNamed(
      kind_.options, options_, [&](const Options& options) {
        const auto made = kind_.make(tokenizer_, options);
        return made.ok() && *made == nullptr ? Broken("OK, and no constraint")
                                             : made.status();
      });
}

}  // namespace fucina::conformance
