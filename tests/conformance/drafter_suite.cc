#include "tests/conformance/drafter_suite.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "fucina/diag/status_macros.h"
#include "tests/conformance/drafter_checks.h"

namespace fucina::conformance {
namespace {

constexpr std::size_t kTextLength = 120;

}  // namespace

DrafterChecks::DrafterChecks(const DrafterKind& kind, const Decoder& decoder,
                             const OptionTexts& options)
    : kind_(kind), decoder_(decoder), options_(options) {}

absl::StatusOr<std::unique_ptr<Drafter>> DrafterChecks::Make(
    const Decoder& target) const {
  FUCINA_ASSIGN_OR_RETURN(const Options options,
                          Options::Make(kind_.options, options_));
  FUCINA_ASSIGN_OR_RETURN(auto made, kind_.make(target, options));
  if (made == nullptr) return Broken("OK, and no drafter");
  return made;
}

absl::StatusOr<std::unique_ptr<Drafter>> DrafterChecks::Another() const {
  auto made = Make(decoder_);
  if (made.ok()) return made;
  return Broken(
      absl::StrCat("cannot be made again: ", made.status().ToString()));
}

absl::Status DrafterChecks::MakeIt() {
  const int needed = static_cast<int>(kTextLength + kMaxRoom);
  if (decoder_.info().context_length < needed) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the test model must hold ", needed, " tokens of context"));
  }
  return Make(decoder_).status();
}

std::vector<TokenId> DrafterChecks::Text(std::uint32_t seed) const {
  return RepetitiveText(decoder_.info().vocab_size, seed, kTextLength);
}

absl::StatusOr<DrafterChecks::Started> DrafterChecks::Start(
    const std::vector<TokenId>& script) const {
  Started started;
  FUCINA_ASSIGN_OR_RETURN(started.drafter, Another());
  started.run =
      std::make_unique<DrafterRun>(decoder_, *started.drafter, script);
  FUCINA_RETURN_IF_ERROR(started.run->Begin());
  return started;
}

absl::StatusOr<std::vector<Draft>> DrafterChecks::Drafts(
    const std::vector<TokenId>& script, std::size_t chunk) const {
  FUCINA_ASSIGN_OR_RETURN(const Started it, Start(script));
  FUCINA_RETURN_IF_ERROR(it.run->Read(script.size() / 3, chunk));
  return it.run->StepsTo(script.size());
}

absl::Status CheckDrafter(const DrafterKind& kind, const Decoder& decoder,
                          const OptionTexts& options, Report& report) {
  DrafterChecks checks(kind, decoder, options);
  FUCINA_RETURN_IF_ERROR(checks.MakeIt());
  report.Subject(absl::StrCat("drafter '", kind.name, "'"));
  const absl::Status fit = checks.DraftsFit();
  report.Property("drafts fit and are tokens of the vocabulary", fit);
  // The generator could not protect itself either.
  if (!fit.ok()) return absl::OkStatus();
  const struct {
    absl::string_view property;
    absl::Status (DrafterChecks::*check)() const;
  } properties[] = {
      {"classes of drafts are known ones", &DrafterChecks::ClassesAreKnown},
      {"the same history has the same drafts",
       &DrafterChecks::SameHistorySameDrafts},
      {"how a prompt is cut into pieces changes no draft",
       &DrafterChecks::PiecesDoNotMatter},
      {"a draft that was cut to nothing leaves no trace",
       &DrafterChecks::CutLeavesNoTrace},
      {"a rewind to where it is changes nothing",
       &DrafterChecks::RewindInPlaceIsNothing},
      {"after a rewind it drafts as a new one does",
       &DrafterChecks::RewindGoesOn},
      {"a long history does no harm", &DrafterChecks::LongHistoryIsHarmless},
      {"replies are those without it", &DrafterChecks::RepliesStayTheSame},
      {"two drafters in turns do not influence each other",
       &DrafterChecks::DraftersAreIndependent},
      {"two threads on two drafters equal one thread",
       &DrafterChecks::AnyThreadWorks},
      {"wants a possible number of candidates",
       &DrafterChecks::CandidatesArePossible},
      {"its tap wants the same rows throughout",
       &DrafterChecks::TapKeepsItsMind},
      {"takes a document or says why not",
       &DrafterChecks::DocumentsAreTakenOrRefused},
      {"reports in one line", &DrafterChecks::ReportIsOneLine},
      {"takes a model of another family or is Unimplemented",
       &DrafterChecks::OtherFamilyIsTakenOrRefused},
      {"bad options are refused by name",
       &DrafterChecks::OptionsAreRefusedByName},
  };
  for (const auto& [property, check] : properties) {
    report.Property(property, (checks.*check)());
  }
  return absl::OkStatus();
}

}  // namespace fucina::conformance
