#include "cli/spec_modes.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "fucina/contract/checked_forward.h"
#include "fucina/decode/generator.h"
#include "fucina/decode/sampler.h"
#include "fucina/diag/status_macros.h"

namespace fucina::cli {
namespace {

constexpr int kDrafts[] = {1, 2, 3, 4, 6, 8, 12, 16};
constexpr int kMostDrafts = 16;

double Median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

// Drafts what `answer` says; of every `period` tokens the last is wrong, 1
// makes all of them wrong and 0 none.
class ScriptedDrafter : public Drafter {
 public:
  ScriptedDrafter(std::span<const TokenId> answer, int period, int vocab_size)
      : answer_(answer), period_(period), vocab_size_(vocab_size) {}
  int Propose(std::span<const TokenId> context,
              std::span<TokenId> draft) override {
    std::size_t count = 0;
    for (std::size_t i = context.size();
         i < answer_.size() && count < draft.size(); ++i, ++count) {
      const bool wrong =
          period_ > 0 && (static_cast<int>(i) + 1) % period_ == 0;
      draft[count] = wrong ? (answer_[i] + 1) % vocab_size_ : answer_[i];
    }
    return static_cast<int>(count);
  }
  void Commit(std::span<const TokenId>) override {}
  void Rewind(int) override {}

 private:
  std::span<const TokenId> answer_;
  int period_;
  int vocab_size_;
};

struct Written {
  std::vector<TokenId> history;
  std::vector<float> next;  // logits behind the last token
  GenerationStats stats;
};

absl::StatusOr<Written> Write(const Decoder& decoder,
                              std::span<const TokenId> prompt,
                              const VerifySpecOptions& options,
                              const SamplerConfig& sampling, Drafter* drafter) {
  FUCINA_ASSIGN_OR_RETURN(
      const std::unique_ptr<DecodeState> state,
      decoder.NewState(static_cast<int>(prompt.size()) + options.max_tokens));
  Sampler sampler(sampling, decoder.info().vocab_size);
  SequenceParts parts = {
      .state = state.get(), .sampler = &sampler, .drafter = drafter};
  parts.gate.always_on = true;
  parts.gate.max_draft = options.max_draft;
  Sequence sequence(decoder, parts);
  FUCINA_RETURN_IF_ERROR(
      Generator(decoder).Generate(sequence, prompt,
                                  {.max_tokens = options.max_tokens,
                                   .prefill_chunk = options.prefill_chunk},
                                  [](TokenId) { return true; }));
  Written written;
  written.history.assign(sequence.history().begin(), sequence.history().end());
  written.stats = sequence.stats();
  // They depend on every row of the state.
  SequenceStep step = {
      .tokens = std::span<const TokenId>(written.history).last(1),
      .state = state.get()};
  FUCINA_RETURN_IF_ERROR(CheckedForward(decoder, step));
  written.next.assign(step.logits.row_f32(0),
                      step.logits.row_f32(0) + step.logits.row_size());
  return written;
}

}  // namespace

absl::Status RunSpecBench(const Decoder& decoder,
                          std::span<const TokenId> prompt, int repetitions,
                          std::ostream& out) {
  if (!decoder.info().can_truncate) {
    return absl::UnimplementedError(
        "this family cannot take back tokens, which drafting needs");
  }
  const auto length = static_cast<int>(prompt.size());
  FUCINA_ASSIGN_OR_RETURN(const std::unique_ptr<DecodeState> state,
                          decoder.NewState(length + kMostDrafts + 1));
  SequenceStep read = {.tokens = prompt, .state = state.get()};
  FUCINA_RETURN_IF_ERROR(CheckedForward(decoder, read));
  std::vector<TokenId> tokens;
  for (int i = 0; i <= kMostDrafts; ++i) {
    tokens.push_back(prompt[static_cast<std::size_t>(i) % prompt.size()]);
  }
  const auto time = [&](int rows) -> absl::StatusOr<double> {
    const auto start = std::chrono::steady_clock::now();
    SequenceStep step = {.tokens = std::span<const TokenId>(tokens).first(
                             static_cast<std::size_t>(rows)),
                         .state = state.get(),
                         .rows = LogitRows::kAll};
    FUCINA_RETURN_IF_ERROR(CheckedForward(decoder, step));
    const std::chrono::duration<double, std::milli> ms =
        std::chrono::steady_clock::now() - start;
    FUCINA_RETURN_IF_ERROR(state->Truncate(length));
    return ms.count();
  };
  out << absl::StrFormat(
      "spec verify economics: prompt %d tok, median of %d reps\n", length,
      repetitions);
  for (const int rows : {kMostDrafts + 1, 1}) {
    FUCINA_RETURN_IF_ERROR(time(rows).status());  // a warm-up
  }
  std::string table;
  for (const int drafts : kDrafts) {
    std::vector<double> plain;
    std::vector<double> verify;
    for (int i = 0; i < repetitions; ++i) {
      for (const bool plain_now : {i % 2 == 0, i % 2 != 0}) {
        FUCINA_ASSIGN_OR_RETURN(const double ms,
                                time(plain_now ? 1 : drafts + 1));
        (plain_now ? plain : verify).push_back(ms);
      }
    }
    const double cost = Median(verify) / Median(plain);
    out << absl::StrFormat(
        "spec-cost d=%d rows=%d cost=%.2f plain_ms=%.3f verify_ms=%.3f "
        "best_plain_ms=%.3f best_verify_ms=%.3f ctx=%d\n",
        drafts, drafts + 1, cost, Median(plain), Median(verify),
        *std::min_element(plain.begin(), plain.end()),
        *std::min_element(verify.begin(), verify.end()), length);
    absl::StrAppend(&table, table.empty() ? "" : ",", drafts, ":",
                    absl::StrFormat("%.2f", std::max(cost, 1.0)));
  }
  out << "spec-cost-table: " << table << "\n";
  return absl::OkStatus();
}

absl::Status VerifySpec(const Decoder& decoder, std::span<const TokenId> prompt,
                        const VerifySpecOptions& options, DrafterMaker maker,
                        std::ostream& out) {
  const int vocab_size = decoder.info().vocab_size;
  int failures = 0;
  const std::pair<const char*, SamplerConfig> modes[] = {
      {"greedy", {.temperature = 0}},
      {"sampled",
       {.temperature = 0.9F,
        .top_k = 40,
        .top_p = 0.95F,
        .repeat_penalty = 1.1F,
        .seed = 7}}};
  for (const auto& [mode, sampling] : modes) {
    FUCINA_ASSIGN_OR_RETURN(const Written plain,
                            Write(decoder, prompt, options, sampling, nullptr));
    std::vector<std::pair<std::string, std::unique_ptr<Drafter>>> sources;
    FUCINA_ASSIGN_OR_RETURN(std::unique_ptr<Drafter> own, maker());
    if (own != nullptr) sources.emplace_back("drafter", std::move(own));
    constexpr std::pair<const char*, int> kScripts[] = {
        {"perfect", 0}, {"garbage", 1}, {"alternating", 2}};
    for (const auto& [name, period] : kScripts) {
      sources.emplace_back(name, std::make_unique<ScriptedDrafter>(
                                     plain.history, period, vocab_size));
    }
    for (const auto& [name, drafter] : sources) {
      FUCINA_ASSIGN_OR_RETURN(
          const Written with,
          Write(decoder, prompt, options, sampling, drafter.get()));
      const auto first =
          std::mismatch(plain.history.begin(), plain.history.end(),
                        with.history.begin(), with.history.end())
              .first;
      const bool same = plain.history == with.history;
      const bool equal = same && plain.next == with.next;
      failures += equal ? 0 : 1;
      out << absl::StrFormat("verify-spec: source=%s mode=%s ", name, mode)
          << (equal
                  ? absl::StrFormat("IDENTICAL (%d tokens, %d verifies, "
                                    "%d/%d accepted)",
                                    with.stats.new_tokens, with.stats.verifies,
                                    with.stats.accepted, with.stats.drafted)
              : same ? std::string("DIFFERS in the state")
                     : absl::StrCat(
                           "DIFFERS at token ",
                           first - plain.history.begin() -
                               static_cast<std::ptrdiff_t>(prompt.size())))
          << "\n";
    }
  }
  out << "verify-spec: " << (failures == 0 ? "PASS" : "FAIL") << "\n";
  if (failures == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(failures, " runs with drafts differ from plain decoding"));
}

}  // namespace fucina::cli
