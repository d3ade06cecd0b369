#include "cli/forward_mode.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "cli/exit_code.h"
#include "cli/profile.h"
#include "fucina/contract/checked_forward.h"
#include "fucina/decode/sampler.h"
#include "fucina/diag/status_macros.h"

namespace fucina::cli {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// From three passes on the first, cold one is told apart.
void PrintTimes(std::vector<double> seconds, std::size_t num_tokens,
                std::ostream& out) {
  double total = 0;
  for (const double s : seconds) total += s;
  const double average = total / static_cast<double>(seconds.size());
  const auto tokens = static_cast<double>(num_tokens);
  if (seconds.size() == 1) {
    out << absl::StrFormat("forward: %.3f s\n", total);
  } else {
    out << absl::StrFormat(
        "forward: %.3f s total, %.3f ms avg over %d (%.1f tok/s)\n", total,
        average * 1e3, static_cast<int>(seconds.size()), tokens / average);
  }
  if (seconds.size() < 3) return;
  seconds.erase(seconds.begin());
  std::sort(seconds.begin(), seconds.end());
  const std::size_t middle = seconds.size() / 2;
  const double median = seconds.size() % 2 == 1
                            ? seconds[middle]
                            : (seconds[middle - 1] + seconds[middle]) / 2;
  out << absl::StrFormat(
      "forward warm: median %.3f ms, min %.3f ms over %d (%.1f tok/s)\n",
      median * 1e3, seconds.front() * 1e3, static_cast<int>(seconds.size()),
      tokens / median);
}

}  // namespace

absl::Status RunForward(Decoder& decoder, std::span<const TokenId> tokens,
                        const ForwardOptions& options, std::ostream& out) {
  std::vector<float> reference;
  if (!options.compare_logits.empty()) {
    auto read = ReadLogits(options.compare_logits, decoder.info().vocab_size);
    if (!read.ok()) return WithExitCode(read.status(), ExitCode::kUsage);
    reference = *std::move(read);
  }
  FUCINA_ASSIGN_OR_RETURN(Profile profile,
                          Profile::Start(decoder, options.profile));
  out << "tokens: " << tokens.size() << "\n";
  out << absl::StrFormat("load: %.3f s\n", options.load_seconds);

  FUCINA_ASSIGN_OR_RETURN(const std::unique_ptr<DecodeState> state,
                          decoder.NewState(static_cast<int>(tokens.size())));
  SequenceStep step = {.tokens = tokens, .state = state.get()};
  std::vector<double> seconds;
  for (int i = 0; i < options.repeat; ++i) {
    FUCINA_RETURN_IF_ERROR(state->Truncate(0));
    const Clock::time_point start = Clock::now();
    FUCINA_RETURN_IF_ERROR(CheckedForward(decoder, step));
    seconds.push_back(Seconds(Clock::now() - start));
  }
  const std::span<const float> logits(
      step.logits.row_f32(0), static_cast<std::size_t>(step.logits.row_size()));
  PrintTimes(std::move(seconds), tokens.size(), out);
  out << "top tokens: " << FormatTop(logits, 5) << "\n"
      << profile.Line("profile avg ms", options.repeat);

  if (!options.logits_out.empty()) {
    FUCINA_RETURN_IF_ERROR(WriteLogits(options.logits_out, logits));
    out << "logits: " << options.logits_out << "\n";
  }
  if (!reference.empty()) {
    const LogitComparison comparison = Compare(logits, reference);
    out << Format(comparison, logits, reference);
    return WithExitCode(Judge(comparison, options.limits), ExitCode::kFile);
  }
  return CheckLogits(logits, static_cast<int>(tokens.size()));
}

}  // namespace fucina::cli
