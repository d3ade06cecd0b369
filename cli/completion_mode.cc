#include "cli/completion_mode.h"

#include <cstdio>
#include <functional>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/constraint_figures.h"
#include "cli/draft_figures.h"
#include "cli/exit_code.h"
#include "cli/logits_file.h"
#include "cli/output_file.h"
#include "cli/profile.h"
#include "cli/progress.h"
#include "fucina/chat/conversation.h"  // NeverSampled
#include "fucina/decode/generator.h"
#include "fucina/diag/log.h"
#include "fucina/diag/status_macros.h"

namespace fucina::cli {
namespace {

absl::Status WriteTokens(const std::string& path,
                         std::span<const TokenId> tokens) {
  return WriteOutputFile("--tokens-out", path,
                         {reinterpret_cast<const char*>(tokens.data()),
                          tokens.size() * sizeof(TokenId)});
}

}  // namespace

absl::Status RunCompletion(Decoder& decoder, const Tokenizer* tokenizer,
                           std::span<const TokenId> prompt,
                           const CompletionOptions& options,
                           std::ostream& out) {
  // The caller made sure that it is an int.
  const int capacity = options.capacity > 0 ? options.capacity
                                            : static_cast<int>(prompt.size()) +
                                                  options.max_tokens;
  // Before anything is printed: nothing goes to the output of a refused run.
  if (prompt.size() > static_cast<std::size_t>(capacity)) {
    return absl::OutOfRangeError(absl::StrCat(
        "the prompt has ", prompt.size(), " tokens and the context holds ",
        capacity, "; shorten the prompt or raise --ctx"));
  }
  FUCINA_ASSIGN_OR_RETURN(const std::unique_ptr<DecodeState> state,
                          decoder.NewState(capacity));
  const DecoderInfo& info = decoder.info();
  Sampler sampler(options.sampling, info.vocab_size);
  std::vector<TokenId> never;
  if (tokenizer != nullptr) never = NeverSampled(*tokenizer, info.vocab_size);
  Sequence sequence(decoder, {.state = state.get(),
                              .sampler = &sampler,
                              .drafter = options.drafter,
                              .constraint = options.constraint,
                              .never_sampled = never,
                              .gate = options.gate});

  out << absl::StrFormat(
      "kv cache: capacity %d tokens, %.1f MiB\n", capacity,
      static_cast<double>(info.state_bytes_per_token) * capacity / (1 << 20));
  out << absl::StrFormat("load: %.3f s\n", options.load_seconds);
  out << "prompt tokens: " << prompt.size() << "\n";
  FUCINA_ASSIGN_OR_RETURN(Profile profile,
                          Profile::Start(decoder, options.profile));
  std::string prefill_profile;
  const std::function<void(std::span<const float>)> show_top =
      [&](std::span<const float> logits) {
        prefill_profile = profile.Line("prefill profile avg ms", 1);
        out << "prefill top tokens: " << FormatTop(logits, 5) << "\n";
      };
  const GenerationLimits limits = {.max_tokens = options.max_tokens,
                                   .stop_tokens = options.stop_tokens,
                                   .prefill_chunk = options.prefill_chunk,
                                   .cancel = options.cancel,
                                   .on_prompt_logits = &show_top};
  Progress progress("reading the prompt");
  bool end_token_seen = false;
  const absl::Status status = Generator(decoder).Generate(
      sequence, prompt, limits,
      [&](TokenId token) {
        if (tokenizer != nullptr && tokenizer->IsStop(token)) {
          end_token_seen = true;
        }
        return true;
      },
      [&](int done, int total) {
        progress.Set(done, total);
        if (done == total) progress.Finish();
      });
  progress.Finish();
  FUCINA_RETURN_IF_ERROR(status);

  const GenerationStats& stats = sequence.stats();
  const std::span<const TokenId> history = sequence.history();
  const std::span<const TokenId> generated =
      history.last(static_cast<std::size_t>(stats.new_tokens));
  out << absl::StrFormat(
      "prefill: %.3f ms, %.1f tok/s\n", stats.prefill_ms,
      static_cast<double>(prompt.size()) * 1e3 / stats.prefill_ms);
  const int steps = stats.new_tokens > 0 ? stats.new_tokens - 1 : 0;
  out << absl::StrFormat(
      "decode: %d steps, %.3f ms, %.1f tok/s\n", steps, stats.decode_ms,
      stats.decode_ms > 0 ? steps * 1e3 / stats.decode_ms : 0.0);
  if (options.drafter != nullptr) {
    out << "drafts: " << DraftFigures(stats, *options.drafter) << "\n";
  }
  if (options.constraint != nullptr) {
    out << "constraint: "
        << ConstraintFigures(stats, options.constraint->IsComplete()) << "\n";
  }
  out << prefill_profile << profile.Line("decode profile avg ms/token", steps);
  out << "generated " << generated.size() << ":";
  for (const TokenId token : generated) out << " " << token;
  out << "\n";
  if (tokenizer != nullptr) {
    const DecodeOptions all = {.show_control = true};
    out << "prompt: " << tokenizer->Decode(prompt, all) << "\n";
    out << "text:   " << tokenizer->Decode(history, all) << "\n";
    if (end_token_seen && options.stop_tokens.empty()) {
      out.flush();
      FUCINA_LOG(WARNING) << "the model wrote an end token and was made to go "
                             "on; --stop ID ends the run there";
    }
  }
  if (sequence.finish_reason() == FinishReason::kContextFull) {
    out.flush();
    FUCINA_LOG(WARNING) << "the context of " << capacity
                        << " tokens is full after " << generated.size()
                        << " of the " << options.max_tokens
                        << " tokens asked for; raise --ctx";
  }
  if (options.constraint != nullptr && !options.constraint->IsComplete()) {
    out.flush();
    FUCINA_LOG(WARNING) << kIncompleteReply;
  }
  if (!options.tokens_out.empty()) {
    FUCINA_RETURN_IF_ERROR(WriteTokens(options.tokens_out, history));
  }
  if (sequence.finish_reason() == FinishReason::kCancelled) {
    return WithExitCode(absl::CancelledError("interrupted"),
                        ExitCode::kInterrupted);
  }
  return absl::OkStatus();
}

}  // namespace fucina::cli
