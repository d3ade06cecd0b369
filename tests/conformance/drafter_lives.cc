#include <algorithm>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "fucina/diag/status_macros.h"
#include "tests/conformance/drafter_checks.h"

namespace fucina::conformance {
namespace {

constexpr std::size_t kLongestReport = 200;

// A model of a family that nobody knows. Nothing may be computed with it.
class ForeignDecoder final : public Decoder {
 public:
  explicit ForeignDecoder(const DecoderInfo& like) : info_(like) {
    info_.architecture = "no_such_architecture";
  }
  const DecoderInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<DecodeState>> NewState(int) const override {
    return absl::UnimplementedError("this model computes nothing");
  }
  absl::Status Forward(std::span<SequenceStep>) const override {
    return absl::UnimplementedError("this model computes nothing");
  }

 private:
  DecoderInfo info_;
};

}  // namespace

// Step by step in turns, on two texts.
absl::Status DrafterChecks::DraftersAreIndependent() const {
  const std::vector<TokenId> scripts[] = {Text(1), Text(2)};
  std::vector<Draft> expected[2];
  std::vector<Draft> found[2];
  Started its[2];
  for (const int i : {0, 1}) {
    FUCINA_ASSIGN_OR_RETURN(expected[i], Drafts(scripts[i], 16));
  }
  for (const int i : {0, 1}) {
    FUCINA_ASSIGN_OR_RETURN(its[i], Start(scripts[i]));
    FUCINA_RETURN_IF_ERROR(its[i].run->Read(scripts[i].size() / 3, 16));
  }
  for (std::size_t at = 0; at < scripts[0].size(); ++at) {
    for (const int i : {0, 1}) {
      DrafterRun& run = *its[i].run;
      FUCINA_ASSIGN_OR_RETURN(
          const auto some,
          run.StepsTo(std::min(run.committed() + 1, scripts[i].size())));
      found[i].insert(found[i].end(), some.begin(), some.end());
    }
  }
  FUCINA_RETURN_IF_ERROR(SameDrafts(found[0], expected[0]));
  return SameDrafts(found[1], expected[1]);
}

absl::Status DrafterChecks::AnyThreadWorks() const {
  const std::vector<TokenId> script = Text(1);
  FUCINA_ASSIGN_OR_RETURN(const auto expected, Drafts(script, 16));
  // Made here, used there.
  FUCINA_ASSIGN_OR_RETURN(const Started it, Start(script));
  absl::StatusOr<std::vector<Draft>> other = Broken("it did not run");
  std::thread thread([&] {
    const absl::Status read = it.run->Read(script.size() / 3, 16);
    other = read.ok() ? it.run->StepsTo(script.size()) : read;
  });
  const auto mine = Drafts(script, 16);
  thread.join();
  FUCINA_RETURN_IF_ERROR(mine.status());
  FUCINA_RETURN_IF_ERROR(other.status());
  FUCINA_RETURN_IF_ERROR(SameDrafts(*mine, expected));
  return SameDrafts(*other, expected);
}

absl::Status DrafterChecks::CandidatesArePossible() const {
  FUCINA_ASSIGN_OR_RETURN(const auto drafter, Another());
  const int wanted = drafter->wants_candidates();
  if (wanted >= 0 && wanted <= decoder_.info().vocab_size) {
    return absl::OkStatus();
  }
  return Broken(absl::StrCat("wants ", wanted, " of ",
                             decoder_.info().vocab_size, " tokens"));
}

absl::Status DrafterChecks::TapKeepsItsMind() const {
  const std::vector<TokenId> script = Text(1);
  FUCINA_ASSIGN_OR_RETURN(const Started it, Start(script));
  LayerTap* const tap = it.drafter->tap();
  if (tap == nullptr) {
    return absl::UnimplementedError("it reads no hidden states");
  }
  std::vector<TapRows> before;
  for (int i = 0; i < decoder_.info().num_layers; ++i) {
    before.push_back(tap->Wants(i));
  }
  FUCINA_RETURN_IF_ERROR(it.run->Read(script.size() / 3, 16));
  FUCINA_RETURN_IF_ERROR(it.run->StepsTo(script.size()).status());
  if (it.drafter->tap() != tap) return Broken("it has another tap now");
  for (int i = 0; i < decoder_.info().num_layers; ++i) {
    if (tap->Wants(i) == before[static_cast<std::size_t>(i)]) continue;
    return Broken(absl::StrCat("layer ", i,
                               ": wants other rows after a reply than before"));
  }
  return absl::OkStatus();
}

absl::Status DrafterChecks::DocumentsAreTakenOrRefused() const {
  const std::vector<TokenId> script = Text(1);
  FUCINA_ASSIGN_OR_RETURN(const Started it, Start(script));
  bool any = false;
  for (const std::vector<TokenId>& document :
       {Text(2), std::vector<TokenId>(), script}) {
    const absl::Status taken = it.drafter->AddReference(document);
    any = any || !absl::IsUnimplemented(taken);
    const bool known = taken.ok() || absl::IsUnimplemented(taken) ||
                       absl::IsInvalidArgument(taken) ||
                       absl::IsResourceExhausted(taken);
    if (known && (taken.ok() || !taken.message().empty())) continue;
    return Broken(absl::StrCat(
        "a document of ", document.size(), " tokens: expected OK, or a reason ",
        "as InvalidArgument, ResourceExhausted or Unimplemented, found ",
        taken.ToString()));
  }
  FUCINA_RETURN_IF_ERROR(it.run->Read(script.size() / 3, 16));
  FUCINA_RETURN_IF_ERROR(it.run->StepsTo(script.size()).status());
  return any ? absl::OkStatus()
             : absl::UnimplementedError("it reads no documents");
}

absl::Status DrafterChecks::ReportIsOneLine() const {
  const std::vector<TokenId> script = Text(1);
  FUCINA_ASSIGN_OR_RETURN(const Started it, Start(script));
  FUCINA_RETURN_IF_ERROR(it.run->Read(script.size() / 3, 16));
  FUCINA_RETURN_IF_ERROR(it.run->StepsTo(script.size()).status());
  const std::string report = it.drafter->Report();
  const bool plain = std::none_of(report.begin(), report.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20;
  });
  if (plain && report.size() <= kLongestReport) return absl::OkStatus();
  return Broken(absl::StrCat(report.size(), " bytes",
                             plain ? "" : ", control characters in them"));
}

absl::Status DrafterChecks::OtherFamilyIsTakenOrRefused() const {
  const ForeignDecoder foreign(decoder_.info());
  const auto drafter = Make(foreign);
  if (drafter.ok() || absl::IsUnimplemented(drafter.status())) {
    return absl::OkStatus();
  }
  return Broken(absl::StrCat("expected OK or Unimplemented, found ",
                             drafter.status().ToString()));
}

absl::Status DrafterChecks::OptionsAreRefusedByName() const {
  return BadOptionsAreNamed(
      kind_.options, options_, [&](const Options& options) {
        const auto made = kind_.make(decoder_, options);
        return made.ok() && *made == nullptr ? Broken("OK, and no drafter")
                                             : made.status();
      });
}

}  // namespace fucina::conformance
