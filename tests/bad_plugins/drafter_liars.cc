// An honest drafter and one for each promise that fucina-conformance checks,
// with an honest family to draft for.

#include "fucina/plugin/manifest.h"
#include "tests/registry/fake_drafter.h"
#include "tests/registry/fake_family.h"

namespace {

using fucina::fake::DrafterLie;

absl::StatusOr<std::unique_ptr<fucina::Decoder>> Load(
    const fucina::GgufFile& file, fucina::ThreadPool&, const fucina::Options&) {
  return fucina::fake::Load(file, fucina::fake::Lie::kNone);
}

template <DrafterLie kLie>
absl::Status Add(fucina::Registrar& registrar, absl::string_view name) {
  return registrar.Add(
      fucina::DrafterKind{.name = name,
                          .summary = "what followed the last time",
                          .options = fucina::fake::kDrafterOptions,
                          .make = &fucina::fake::MakeFakeDrafter<kLie>});
}

absl::Status Register(fucina::Registrar& registrar) {
  absl::Status status = registrar.Add(fucina::Family{
      .name = "fake", .summary = "hashes its input", .load = &Load});
#define LIAR(lie, name) status.Update(Add<DrafterLie::lie>(registrar, name))
  LIAR(kNone, "honest");
  LIAR(kReadsHidden, "reads_hidden");
  LIAR(kMakesNothing, "makes_nothing");
  LIAR(kMakesOne, "makes_one");
  LIAR(kOverruns, "overruns");
  LIAR(kOutsideVocabulary, "outside_vocabulary");
  LIAR(kClassOutside, "class_outside");
  LIAR(kForgetful, "forgetful");
  LIAR(kPiecesMatter, "pieces_matter");
  LIAR(kEmptyPiece, "empty_piece");
  LIAR(kCutIsForgotten, "cut_is_forgotten");
  LIAR(kRewindForgetsAll, "rewind_forgets_all");
  LIAR(kRewindIgnored, "rewind_ignored");
  LIAR(kLongHistory, "long_history");
  LIAR(kTapWrites, "tap_writes");
  LIAR(kShares, "shares");
  LIAR(kThreadBound, "thread_bound");
  LIAR(kWantsTooMany, "wants_too_many");
  LIAR(kTapChanges, "tap_changes");
  LIAR(kTapMoves, "tap_moves");
  LIAR(kDocumentIsInternal, "document_is_internal");
  LIAR(kReportsLines, "reports_lines");
  LIAR(kForeignIsInvalid, "foreign_is_invalid");
  LIAR(kOptionsUnnamed, "options_unnamed");
#undef LIAR
  return status;
}

}  // namespace

FUCINA_PLUGIN(drafter_liars, "1.0.0", "MIT", &Register)
