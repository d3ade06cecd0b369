#include "cli/streams_mode.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/bench_report.h"
#include "cli/exit_code.h"
#include "cli/rates.h"
#include "fucina/chat/conversation.h"  // NeverSampled
#include "fucina/decode/generator.h"
#include "fucina/diag/status_macros.h"

namespace fucina::cli {
namespace {

// What one arm of one repetition did.
struct ArmResult {
  std::vector<std::vector<TokenId>> tokens;  // by stream, generated
  std::vector<GenerationStats> stats;
  std::vector<FinishReason> reasons;
  std::vector<bool> complete;  // its constraint is satisfied, if it has one
};

class Streams {
 public:
  static absl::StatusOr<std::unique_ptr<Streams>> Create(
      const Decoder& decoder, const Tokenizer* tokenizer,
      std::span<const std::vector<TokenId>> prompts,
      const StreamsOptions& options);

  absl::StatusOr<ArmResult> Run(bool together, int max_tokens);

  int capacity() const { return capacity_; }

 private:
  explicit Streams(const Decoder& decoder) : decoder_(decoder) {}

  const Decoder& decoder_;
  int capacity_ = 0;
  GenerationLimits limits_;
  std::vector<TokenId> never_;
  std::vector<std::unique_ptr<DecodeState>> states_;
  std::vector<std::unique_ptr<Sampler>> samplers_;
  std::vector<std::unique_ptr<Drafter>> drafters_;
  std::vector<std::unique_ptr<Constraint>> constraints_;  // or nulls
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<Stream> streams_;
};

absl::StatusOr<std::unique_ptr<Streams>> Streams::Create(
    const Decoder& decoder, const Tokenizer* tokenizer,
    std::span<const std::vector<TokenId>> prompts,
    const StreamsOptions& options) {
  std::unique_ptr<Streams> made(new Streams(decoder));
  Streams& self = *made;
  std::size_t longest = 0;
  for (const std::vector<TokenId>& prompt : prompts) {
    longest = std::max(longest, prompt.size());
  }
  self.capacity_ = options.capacity > 0
                       ? options.capacity
                       : static_cast<int>(longest) + options.max_tokens;
  if (longest > static_cast<std::size_t>(self.capacity_)) {
    return absl::OutOfRangeError(absl::StrCat(
        "the prompt has ", longest, " tokens and the context holds ",
        self.capacity_, "; shorten the prompt or raise --ctx"));
  }
  const int vocab_size = decoder.info().vocab_size;
  if (tokenizer != nullptr) self.never_ = NeverSampled(*tokenizer, vocab_size);
  self.limits_ = {.max_tokens = options.max_tokens,
                  .stop_tokens = options.stop_tokens,
                  .prefill_chunk = options.prefill_chunk,
                  .cancel = options.cancel};
  for (int i = 0; i < options.num_streams; ++i) {
    FUCINA_ASSIGN_OR_RETURN(std::unique_ptr<DecodeState> state,
                            decoder.NewState(self.capacity_));
    SamplerConfig sampling = options.sampling;
    sampling.seed += static_cast<std::uint64_t>(i);  // wraps
    self.states_.push_back(std::move(state));
    self.samplers_.push_back(std::make_unique<Sampler>(sampling, vocab_size));
    self.drafters_.emplace_back();
    if (options.make_drafter) {
      FUCINA_ASSIGN_OR_RETURN(self.drafters_.back(), options.make_drafter());
    }
    self.constraints_.emplace_back();
    if (options.constraint != nullptr) {
      FUCINA_ASSIGN_OR_RETURN(self.constraints_.back(),
                              options.constraint->Clone());
    }
    self.sequences_.push_back(std::make_unique<Sequence>(
        decoder, SequenceParts{.state = self.states_.back().get(),
                               .sampler = self.samplers_.back().get(),
                               .drafter = self.drafters_.back().get(),
                               .constraint = self.constraints_.back().get(),
                               .never_sampled = self.never_,
                               .gate = options.gate}));
    self.streams_.push_back(
        {.sequence = self.sequences_.back().get(),
         .prompt = prompts[static_cast<std::size_t>(i) % prompts.size()]});
  }
  return made;
}

absl::StatusOr<ArmResult> Streams::Run(bool together, int max_tokens) {
  limits_.max_tokens = max_tokens;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    FUCINA_RETURN_IF_ERROR(sequences_[i]->Truncate(0));
    samplers_[i]->Restart();
    streams_[i].limits = limits_;
  }
  const Generator generator(decoder_);
  if (together) {
    generator.Generate(streams_);
  } else {
    for (Stream& stream : streams_) generator.Generate({&stream, 1});
  }
  ArmResult result;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const Stream& stream = streams_[i];
    FUCINA_RETURN_IF_ERROR(stream.status);
    const Sequence& sequence = *stream.sequence;
    if (sequence.finish_reason() == FinishReason::kCancelled) {
      return WithExitCode(absl::CancelledError("interrupted"),
                          ExitCode::kInterrupted);
    }
    const auto generated = sequence.history().last(
        static_cast<std::size_t>(sequence.stats().new_tokens));
    result.tokens.emplace_back(generated.begin(), generated.end());
    result.stats.push_back(sequence.stats());
    result.reasons.push_back(sequence.finish_reason());
    result.complete.push_back(constraints_[i] == nullptr ||
                              constraints_[i]->IsComplete());
  }
  return result;
}

// Over all streams. Those in lockstep share their time.
struct Totals {
  int prompt_tokens = 0;
  int steps = 0;
  double prefill_ms = 0;
  double longest_ms = 0;
  double summed_ms = 0;
};

Totals TotalsOf(const ArmResult& result) {
  Totals totals;
  for (const GenerationStats& stats : result.stats) {
    totals.prompt_tokens += stats.prompt_tokens;
    totals.steps += stats.new_tokens - 1;
    totals.prefill_ms += stats.prefill_ms;
    totals.longest_ms = std::max(totals.longest_ms, stats.decode_ms);
    totals.summed_ms += stats.decode_ms;
  }
  return totals;
}

// "" or where the two differ first.
std::string Difference(const ArmResult& batch, const ArmResult& alone) {
  for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
    const auto [a, b] =
        std::mismatch(batch.tokens[i].begin(), batch.tokens[i].end(),
                      alone.tokens[i].begin(), alone.tokens[i].end());
    if (a == batch.tokens[i].end() && b == alone.tokens[i].end()) continue;
    return absl::StrCat("stream ", i, ", token ", a - batch.tokens[i].begin());
  }
  return "";
}

void PrintTokens(const ArmResult& result, const Tokenizer* tokenizer,
                 std::ostream& out) {
  for (std::size_t i = 0; i < result.tokens.size(); ++i) {
    const GenerationStats& stats = result.stats[i];
    const int steps = stats.new_tokens - 1;
    out << absl::StrFormat(
        "stream %d: prompt %d, %.1f tok/s, ended by %s%s, generated %d:",
        static_cast<int>(i), stats.prompt_tokens,
        stats.decode_ms > 0 ? steps * 1e3 / stats.decode_ms : 0.0,
        std::string(Name(result.reasons[i])),
        result.complete[i] ? "" : " (constraint not satisfied)",
        stats.new_tokens);
    for (const TokenId token : result.tokens[i]) out << " " << token;
    out << "\n";
    if (tokenizer == nullptr) continue;
    out << "text " << i << ": "
        << tokenizer->Decode(result.tokens[i], {.show_control = true}) << "\n";
  }
}

std::string PromptLengths(std::span<const std::vector<TokenId>> prompts) {
  const auto shorter = [](const auto& a, const auto& b) {
    return a.size() < b.size();
  };
  const auto [min, max] =
      std::minmax_element(prompts.begin(), prompts.end(), shorter);
  return min->size() == max->size()
             ? absl::StrCat(min->size())
             : absl::StrCat(min->size(), "..", max->size());
}

}  // namespace

absl::Status RunStreams(Decoder& decoder, const Tokenizer* tokenizer,
                        std::span<const std::vector<TokenId>> prompts,
                        const StreamsOptions& options, std::ostream& out) {
  FUCINA_ASSIGN_OR_RETURN(
      const std::unique_ptr<Streams> streams,
      Streams::Create(decoder, tokenizer, prompts, options));
  const int n = options.num_streams;
  out << absl::StrFormat(
      "kv cache: x%d streams, capacity %d tokens each, %.1f MiB in all\n", n,
      streams->capacity(),
      static_cast<double>(decoder.info().state_bytes_per_token) * n *
          streams->capacity() / (1 << 20));
  out << absl::StrFormat("load: %.3f s\n", options.load_seconds);
  out << absl::StrFormat(
      "streams bench: N=%d, %d reps (+1 warmup), prompt %s tok, decode %d "
      "steps/stream, aggregate tok/s\n",
      n, options.repetitions, PromptLengths(prompts), options.max_tokens - 1);

  Rates prefill;
  Rates batch_decode;
  Rates alone_decode;
  ArmResult shown;
  std::string difference;
  for (int repetition = 0; repetition <= options.repetitions; ++repetition) {
    const int max_tokens =
        repetition == 0 ? std::min(options.max_tokens, 2) : options.max_tokens;
    ArmResult batch;
    ArmResult alone;
    // Whichever comes first finds colder caches.
    const bool batch_first = repetition % 2 == 0;
    for (const bool together : {batch_first, !batch_first}) {
      FUCINA_ASSIGN_OR_RETURN((together ? batch : alone),
                              streams->Run(together, max_tokens));
    }
    if (difference.empty()) difference = Difference(batch, alone);
    if (repetition == 0) continue;
    const Totals together = TotalsOf(batch);
    prefill.Add(together.prompt_tokens, together.prefill_ms);
    batch_decode.Add(together.steps, together.longest_ms);
    alone_decode.Add(together.steps, TotalsOf(alone).summed_ms);
    if (repetition == 1) shown = std::move(batch);
  }

  out << prefill.Line("prefill-agg ") << batch_decode.Line("decode-batch")
      << alone_decode.Line("decode-seq  ");
  const double speedup =
      alone_decode.mean() > 0 ? batch_decode.mean() / alone_decode.mean() : 0;
  out << absl::StrFormat("batch speedup: %.2fx (mean decode, N=%d)\n", speedup,
                         n);
  int tokens = 0;
  for (const auto& generated : shown.tokens) {
    tokens += static_cast<int>(generated.size());
  }
  if (difference.empty()) {
    out << absl::StrFormat(
        "outputs: batch == sequential, token-for-token (%d streams, %d "
        "tokens)\n",
        n, tokens);
  } else {
    out << "outputs: DIVERGED at " << difference
        << " (rows of a batch must not depend on each other)\n";
  }
  PrintTokens(shown, tokenizer, out);
  if (!options.json_path.empty()) {
    FUCINA_RETURN_IF_ERROR(
        WriteBenchReport(options.json_path, *options.facts,
                         {{"kind", "streams"},
                          {"streams", n},
                          {"repetitions", options.repetitions},
                          {"decode_steps", options.max_tokens - 1},
                          {"equal", difference.empty()},
                          {"prefill", prefill.Json()},
                          {"decode_batch", batch_decode.Json()},
                          {"decode_sequential", alone_decode.Json()}}));
  }
  if (difference.empty()) return absl::OkStatus();
  return WithExitCode(
      absl::FailedPreconditionError(absl::StrCat(
          "streams together wrote other tokens than alone, first at ",
          difference)),
      ExitCode::kFile);
}

}  // namespace fucina::cli
