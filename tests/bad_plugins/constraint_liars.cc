// An honest constraint and one for each promise that fucina-conformance checks.

#include "fucina/diag/status_macros.h"
#include "fucina/plugin/manifest.h"
#include "tests/registry/fake_constraint.h"

namespace {

using fucina::fake::ConstraintLie;

template <ConstraintLie kLie>
absl::Status Add(fucina::Registrar& registrar, absl::string_view name) {
  return registrar.Add(
      fucina::ConstraintKind{.name = name,
                             .summary = "an id of some digits",
                             .options = fucina::fake::kConstraintOptions,
                             .make = &fucina::fake::MakeFakeConstraint<kLie>});
}

absl::Status Register(fucina::Registrar& registrar) {
  absl::Status status = Add<ConstraintLie::kNone>(registrar, "honest");
#define LIAR(lie, name) status.Update(Add<ConstraintLie::lie>(registrar, name))
  LIAR(kLooksNotAhead, "looks_not_ahead");
  LIAR(kMakesNothing, "makes_nothing");
  LIAR(kLeavesNothing, "leaves_nothing");
  LIAR(kRescales, "rescales");
  LIAR(kLooksAtLogits, "looks_at_logits");
  LIAR(kMaskMoves, "mask_moves");
  LIAR(kPaddingAllowed, "padding_allowed");
  LIAR(kRefusesAllowed, "refuses_allowed");
  LIAR(kCompleteAtOnce, "complete_at_once");
  LIAR(kNeverComplete, "never_complete");
  LIAR(kCompleteMoves, "complete_moves");
  LIAR(kForcedMoves, "forced_moves");
  LIAR(kForcedGuesses, "forced_guesses");
  LIAR(kForcedOverruns, "forced_overruns");
  LIAR(kPrefixMoves, "prefix_moves");
  LIAR(kPrefixTooLong, "prefix_too_long");
  LIAR(kPrefixTooShort, "prefix_too_short");
  LIAR(kGarbageIsValid, "garbage_is_valid");
  LIAR(kGarbagePoisons, "garbage_poisons");
  LIAR(kResetKeeps, "reset_keeps");
  LIAR(kErrorSticks, "error_sticks");
  LIAR(kCannotClone, "cannot_clone");
  LIAR(kClonesShare, "clones_share");
  LIAR(kThreadBound, "thread_bound");
  LIAR(kMakesAnother, "makes_another");
  LIAR(kStopTokensIgnored, "stop_tokens_ignored");
  LIAR(kOptionsUnnamed, "options_unnamed");
#undef LIAR
  return status;
}

}  // namespace

FUCINA_PLUGIN(constraint_liars, "1.0.0", "MIT", &Register)
