#include "cli/bench_mode.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/bench_report.h"
#include "cli/exit_code.h"
#include "cli/profile.h"
#include "cli/rates.h"
#include "fucina/chat/conversation.h"  // NeverSampled
#include "fucina/decode/generator.h"
#include "fucina/decode/random.h"
#include "fucina/diag/status_macros.h"

namespace fucina::cli {
namespace {

absl::Status Interrupted() {
  return WithExitCode(absl::CancelledError("interrupted"),
                      ExitCode::kInterrupted);
}

}  // namespace

std::vector<TokenId> BenchTokens(int count, int vocab_size) {
  Random random(0);
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  for (TokenId& token : tokens) {
    token = static_cast<TokenId>(random.NextBits() %
                                 static_cast<std::uint64_t>(vocab_size));
  }
  return tokens;
}

absl::Status RunBench(Decoder& decoder, const Tokenizer* tokenizer,
                      std::span<const TokenId> prompt,
                      const BenchOptions& options, std::ostream& out) {
  const DecoderInfo& info = decoder.info();
  const std::int64_t needed = std::int64_t{options.depth} +
                              static_cast<std::int64_t>(prompt.size()) +
                              options.max_tokens;
  const std::int64_t capacity =
      options.capacity > 0 ? options.capacity : needed;
  if (needed > capacity || capacity > std::numeric_limits<int>::max()) {
    return absl::OutOfRangeError(absl::StrCat(
        "--bench: ", options.depth, " tokens of depth, a prompt of ",
        prompt.size(), " and ", options.max_tokens,
        " tokens of reply do not fit a context of ",
        std::min<std::int64_t>(capacity, std::numeric_limits<int>::max()),
        "; lower them or raise --ctx"));
  }
  FUCINA_ASSIGN_OR_RETURN(const std::unique_ptr<DecodeState> state,
                          decoder.NewState(static_cast<int>(capacity)));
  Sampler sampler(options.sampling, info.vocab_size);
  std::vector<TokenId> never;
  if (tokenizer != nullptr) never = NeverSampled(*tokenizer, info.vocab_size);
  Sequence sequence(decoder, {.state = state.get(),
                              .sampler = &sampler,
                              .constraint = options.constraint,
                              .never_sampled = never});
  FUCINA_ASSIGN_OR_RETURN(Profile profile,
                          Profile::Start(decoder, options.profile));
  const Generator generator(decoder);
  const auto go_on = [](TokenId) { return true; };

  const int steps = options.max_tokens - 1;
  out << absl::StrFormat("kv cache: capacity %d tokens, %.1f MiB\n", capacity,
                         static_cast<double>(info.state_bytes_per_token) *
                             static_cast<double>(capacity) / (1 << 20));
  out << absl::StrFormat("load: %.3f s\n", options.load_seconds);
  out << absl::StrFormat(
      "warm bench: %d reps (+1 warmup), prompt %d tok, decode %d steps",
      options.repetitions, static_cast<int>(prompt.size()), steps);
  if (options.depth > 0) out << ", depth " << options.depth << " tok";
  out << "\n";

  std::vector<TokenId> tokens = BenchTokens(options.depth, info.vocab_size);
  if (options.depth > 0) {
    FUCINA_RETURN_IF_ERROR(
        generator.Generate(sequence, tokens,
                           {.max_tokens = 1,
                            .prefill_chunk = options.prefill_chunk,
                            .cancel = options.cancel},
                           go_on));
    if (sequence.finish_reason() == FinishReason::kCancelled) {
      return Interrupted();
    }
  }
  tokens.insert(tokens.end(), prompt.begin(), prompt.end());

  PhaseTimes prefill_phases;
  PhaseTimes decode_phases;
  const std::function<void(std::span<const float>)> prompt_read =
      [&](std::span<const float>) { profile.Take(prefill_phases); };
  GenerationLimits limits = {.max_tokens = std::min(options.max_tokens, 2),
                             .prefill_chunk = static_cast<int>(tokens.size()),
                             .cancel = options.cancel,
                             .on_prompt_logits = &prompt_read};
  Rates prefill;
  Rates decode;
  for (int repetition = 0; repetition <= options.repetitions; ++repetition) {
    FUCINA_RETURN_IF_ERROR(sequence.Truncate(options.depth));
    sampler.Restart();
    FUCINA_RETURN_IF_ERROR(generator.Generate(sequence, tokens, limits, go_on));
    if (sequence.finish_reason() == FinishReason::kCancelled) {
      return Interrupted();
    }
    profile.Take(decode_phases);
    if (repetition == 0) {
      prefill_phases.Clear();
      decode_phases.Clear();
      limits.max_tokens = options.max_tokens;
      continue;
    }
    const GenerationStats& stats = sequence.stats();
    prefill.Add(static_cast<int>(prompt.size()), stats.prefill_ms);
    if (steps > 0) decode.Add(steps, stats.decode_ms);
  }

  out << prefill.Line("prefill") << decode.Line("decode ");
  out << absl::StrFormat("median: prefill %.2f tok/s", prefill.median());
  if (steps > 0) out << absl::StrFormat(", decode %.2f tok/s", decode.median());
  out << "\n";
  if (options.profile) {
    out << FormatPhases("prefill profile avg ms", prefill_phases,
                        options.repetitions)
        << FormatPhases("decode profile avg ms/token", decode_phases,
                        options.repetitions * steps);
  }
  if (options.json_path.empty()) return absl::OkStatus();
  nlohmann::ordered_json figures = {
      {"kind", "bench"},        {"repetitions", options.repetitions},
      {"depth", options.depth}, {"prompt_tokens", prompt.size()},
      {"decode_steps", steps},  {"prefill", prefill.Json()}};
  if (steps > 0) figures["decode"] = decode.Json();
  return WriteBenchReport(options.json_path, *options.facts, figures);
}

}  // namespace fucina::cli
