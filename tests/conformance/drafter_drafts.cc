#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fucina/decode/generator.h"
#include "fucina/diag/status_macros.h"
#include "tests/conformance/drafter_checks.h"

namespace fucina::conformance {
namespace {

// Of a drafter that needs no hidden states to be computed.
constexpr std::size_t kLongHistory = 100000;
constexpr std::size_t kLongContext = 2048;

}  // namespace

absl::Status SameDrafts(const std::vector<Draft>& found,
                        const std::vector<Draft>& expected) {
  const auto text = [](const std::vector<Draft>& drafts, std::size_t i) {
    if (i >= drafts.size()) return std::string("none");
    return absl::StrCat("[", absl::StrJoin(drafts[i].tokens, " "),
                        "] of class ", drafts[i].draft_class);
  };
  for (std::size_t i = 0; i < std::max(found.size(), expected.size()); ++i) {
    if (i < found.size() && i < expected.size() && found[i] == expected[i]) {
      continue;
    }
    return Broken(absl::StrCat("draft ", i, ": expected ", text(expected, i),
                               ", found ", text(found, i)));
  }
  return absl::OkStatus();
}

absl::Status DrafterChecks::DraftsFit() const {
  constexpr std::array<std::size_t, 5> kRooms = {0, 1, 2, 8, kMaxRoom};
  for (const std::uint32_t seed : {1U, 2U, 3U}) {
    const std::vector<TokenId> script = Text(seed);
    FUCINA_ASSIGN_OR_RETURN(const Started it, Start(script));
    FUCINA_RETURN_IF_ERROR(it.run->Read(script.size() / 3, 16));
    for (std::size_t i = 0; it.run->committed() < script.size(); ++i) {
      FUCINA_ASSIGN_OR_RETURN(Draft draft,
                              it.run->Ask(kRooms[i % kRooms.size()]));
      // Now and then only a part of it is verified.
      if (i % 3 == 2 && !draft.tokens.empty()) {
        draft.tokens.resize(draft.tokens.size() / 2);
        it.drafter->Cut(static_cast<int>(draft.tokens.size()));
      }
      FUCINA_RETURN_IF_ERROR(it.run->Verify(draft.tokens).status());
    }
  }
  return absl::OkStatus();
}

absl::Status DrafterChecks::ClassesAreKnown() const {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Draft> drafts, Drafts(Text(1), 16));
  for (const Draft& draft : drafts) {
    if (draft.draft_class >= 0 && draft.draft_class < kMaxDraftClasses) {
      continue;
    }
    return Broken(absl::StrCat("expected 0 to ", kMaxDraftClasses - 1,
                               ", found ", draft.draft_class));
  }
  return absl::OkStatus();
}

absl::Status DrafterChecks::SameHistorySameDrafts() const {
  for (const std::uint32_t seed : {1U, 2U}) {
    const std::vector<TokenId> script = Text(seed);
    FUCINA_ASSIGN_OR_RETURN(const auto expected, Drafts(script, 16));
    FUCINA_ASSIGN_OR_RETURN(const auto found, Drafts(script, 16));
    FUCINA_RETURN_IF_ERROR(SameDrafts(found, expected));
  }
  return absl::OkStatus();
}

absl::Status DrafterChecks::PiecesDoNotMatter() const {
  const std::vector<TokenId> script = Text(1);
  FUCINA_ASSIGN_OR_RETURN(const auto expected, Drafts(script, script.size()));
  for (const std::size_t chunk : {1U, 2U, 7U}) {
    FUCINA_ASSIGN_OR_RETURN(const auto found, Drafts(script, chunk));
    const absl::Status same = SameDrafts(found, expected);
    if (!same.ok()) {
      return Broken(absl::StrCat("pieces of ", chunk, ": ", same.message()));
    }
  }
  // A step that failed commits nothing.
  FUCINA_ASSIGN_OR_RETURN(const Started it, Start(script));
  it.drafter->Commit({});
  FUCINA_RETURN_IF_ERROR(it.run->Read(script.size() / 3, 7));
  it.drafter->Commit({});
  FUCINA_ASSIGN_OR_RETURN(const auto found, it.run->StepsTo(script.size()));
  return SameDrafts(found, expected);
}

// One is asked at each step and cut each time, the other is asked at the end.
absl::Status DrafterChecks::CutLeavesNoTrace() const {
  const std::vector<TokenId> script = Text(1);
  const std::size_t start = script.size() / 3;
  for (const std::size_t steps : {std::size_t{4}, start / 2, start}) {
    std::vector<Draft> last;
    for (const bool asked : {false, true}) {
      FUCINA_ASSIGN_OR_RETURN(const Started it, Start(script));
      FUCINA_RETURN_IF_ERROR(it.run->Read(start, 16));
      for (std::size_t i = 0; i < steps; ++i) {
        if (asked) {
          FUCINA_ASSIGN_OR_RETURN(const Draft draft, it.run->Ask(8));
          if (!draft.tokens.empty()) it.drafter->Cut(0);
        }
        FUCINA_RETURN_IF_ERROR(it.run->Verify({}).status());
      }
      FUCINA_ASSIGN_OR_RETURN(Draft draft, it.run->Ask(8));
      last.push_back(std::move(draft));
    }
    const absl::Status same = SameDrafts({last[1]}, {last[0]});
    if (!same.ok()) {
      return Broken(
          absl::StrCat("after ", steps, " cut drafts: ", same.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status DrafterChecks::RewindInPlaceIsNothing() const {
  const std::vector<TokenId> script = Text(1);
  std::vector<Draft> drafts[2];
  for (const bool rewinds : {false, true}) {
    FUCINA_ASSIGN_OR_RETURN(const Started it, Start(script));
    FUCINA_RETURN_IF_ERROR(it.run->Read(script.size() / 3, 16));
    for (const std::size_t part : {3U, 4U, 5U, 6U}) {
      FUCINA_ASSIGN_OR_RETURN(auto some,
                              it.run->StepsTo(script.size() * part / 6));
      std::move(some.begin(), some.end(),
                std::back_inserter(drafts[rewinds ? 1 : 0]));
      if (!rewinds || part == 6) continue;
      FUCINA_RETURN_IF_ERROR(it.run->Rewind(it.run->committed(), script));
    }
  }
  return SameDrafts(drafts[1], drafts[0]);
}

// What was learned from tokens that are gone may stay, so drafts may differ
// from those of a new drafter; they may not be fewer or worse.
absl::Status DrafterChecks::RewindGoesOn() const {
  const std::vector<TokenId> first = Text(1);
  const std::size_t size = first.size();
  for (const std::size_t kept : {size / 3, std::size_t{0}}) {
    std::vector<TokenId> second = Text(2);
    std::copy_n(first.begin(), kept, second.begin());
    std::size_t drafted[2] = {0, 0};
    std::size_t right[2] = {0, 0};
    for (const int rewinds : {0, 1}) {
      FUCINA_ASSIGN_OR_RETURN(const Started it,
                              Start(rewinds == 1 ? first : second));
      if (rewinds == 1) {
        FUCINA_RETURN_IF_ERROR(it.run->Read(size / 3, 16));
        FUCINA_RETURN_IF_ERROR(it.run->StepsTo(size / 2).status());
        FUCINA_RETURN_IF_ERROR(it.run->Rewind(kept, second));
      }
      FUCINA_RETURN_IF_ERROR(it.run->Read(size / 2, 16));
      FUCINA_ASSIGN_OR_RETURN(const auto drafts,
                              it.run->StepsTo(size, &right[rewinds]));
      for (const Draft& draft : drafts) {
        drafted[rewinds] += draft.tokens.size();
      }
    }
    if (drafted[0] == 0) {
      return absl::UnimplementedError("a new drafter drafts nothing either");
    }
    if (drafted[1] * 10 < drafted[0] * 9 || right[1] * 10 < right[0] * 9) {
      return Broken(absl::StrCat("rewound to ", kept, " tokens: drafts ",
                                 drafted[1], " tokens, ", right[1],
                                 " of them right; a new one ", drafted[0],
                                 " and ", right[0]));
    }
  }
  return absl::OkStatus();
}

absl::Status DrafterChecks::LongHistoryIsHarmless() const {
  FUCINA_ASSIGN_OR_RETURN(const auto drafter, Another());
  const bool reads_hidden = drafter->tap() != nullptr;
  const auto context = static_cast<std::size_t>(decoder_.info().context_length);
  const std::size_t length =
      reads_hidden ? std::min(context, kLongContext) - kMaxRoom : kLongHistory;
  const std::vector<TokenId> script =
      RepetitiveText(decoder_.info().vocab_size, 1, length);
  DrafterRun run(decoder_, *drafter, script);
  FUCINA_RETURN_IF_ERROR(run.Begin());
  FUCINA_RETURN_IF_ERROR(run.Read(length - 9, 4096));
  FUCINA_RETURN_IF_ERROR(run.StepsTo(length - 2).status());
  FUCINA_RETURN_IF_ERROR(run.Rewind(length / 2, script));
  FUCINA_RETURN_IF_ERROR(run.Read(length - 9, 4096));
  return run.StepsTo(length).status();
}

absl::StatusOr<std::vector<TokenId>> DrafterChecks::Reply(
    Drafter* drafter, double temperature) const {
  const std::vector<TokenId> text = Text(1);
  const auto prompt = std::span(text).first(text.size() / 2);
  FUCINA_ASSIGN_OR_RETURN(const auto state,
                          decoder_.NewState(static_cast<int>(text.size())));
  Sampler sampler({.temperature = temperature, .seed = 5},
                  decoder_.info().vocab_size);
  SpeculationGateOptions gate;
  gate.always_on = true;
  Sequence sequence(decoder_, {.state = state.get(),
                               .sampler = &sampler,
                               .drafter = drafter,
                               .gate = gate});
  const int tokens = static_cast<int>(text.size() - prompt.size());
  FUCINA_RETURN_IF_ERROR(Generator(decoder_).Generate(
      sequence, prompt, {.max_tokens = tokens}, [](TokenId) { return true; }));
  return std::vector<TokenId>(sequence.history().begin(),
                              sequence.history().end());
}

absl::Status DrafterChecks::RepliesStayTheSame() const {
  if (!decoder_.info().can_truncate) {
    return absl::UnimplementedError("the model takes back no tokens");
  }
  for (const double temperature : {0.0, 0.8}) {
    FUCINA_ASSIGN_OR_RETURN(const auto expected, Reply(nullptr, temperature));
    FUCINA_ASSIGN_OR_RETURN(const auto drafter, Another());
    FUCINA_ASSIGN_OR_RETURN(const auto found,
                            Reply(drafter.get(), temperature));
    const auto at = std::mismatch(found.begin(), found.end(), expected.begin(),
                                  expected.end())
                        .first;
    if (at == found.end() && found.size() == expected.size()) continue;
    return Broken(absl::StrCat("at temperature ", temperature,
                               " they part after ", at - found.begin(),
                               " tokens"));
  }
  return absl::OkStatus();
}

}  // namespace fucina::conformance
