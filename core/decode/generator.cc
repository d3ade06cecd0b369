#include "fucina/decode/generator.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "absl/strings/str_cat.h"
#include "fucina/contract/checked_forward.h"
#include "fucina/diag/check.h"
#include "fucina/diag/status_macros.h"

namespace fucina {
namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start)
      .count();
}

std::size_t CommonPrefix(std::span<const TokenId> a,
                         std::span<const TokenId> b) {
  const auto [end, unused] =
      std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(end - a.begin());
}

}  // namespace

absl::string_view Name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStopToken:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kContextFull:
      return "context";
    case FinishReason::kSink:
      return "sink";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "";
}

Sequence::Sequence(const Decoder& decoder, const SequenceParts& parts)
    : decoder_(decoder), parts_(parts) {
  FUCINA_CHECK(parts_.state != nullptr && parts_.sampler != nullptr);
  FUCINA_CHECK_EQ(parts_.state->length(), 0);
  // Growing later would allocate in the middle of a reply.
  history_.reserve(static_cast<std::size_t>(parts_.state->capacity()) + 1);
}

absl::Status Sequence::Begin(std::span<const TokenId> prompt,
                             const GenerationLimits& limits) {
  if (prompt.empty()) return absl::InvalidArgumentError("empty prompt");
  if (limits.max_tokens < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_tokens: expected at least 1, found ", limits.max_tokens));
  }
  for (const TokenId token : prompt) {
    if (token < 0 || token >= decoder_.info().vocab_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("token id ", token,
                       " out of range: the model has ids 0 "
                       "to ",
                       decoder_.info().vocab_size - 1));
    }
  }
  DecodeState& state = *parts_.state;
  if (prompt.size() > static_cast<std::size_t>(state.capacity())) {
    return absl::OutOfRangeError(absl::StrCat(
        "the prompt has ", prompt.size(), " tokens and the context holds ",
        state.capacity(), "; shorten the prompt or ask for a larger context"));
  }
  // The last prompt token is computed again: logits are not kept.
  const std::size_t kept =
      std::min({CommonPrefix(history_, prompt), prompt.size() - 1,
                static_cast<std::size_t>(state.length())});
  if (kept < static_cast<std::size_t>(state.length())) {
    FUCINA_RETURN_IF_ERROR(state.Truncate(static_cast<int>(kept)));
  }
  history_.resize(kept);
  if (parts_.constraint != nullptr) {
    FUCINA_RETURN_IF_ERROR(parts_.constraint->Reset());
  }
  limits_ = limits;
  step_tokens_.reserve(static_cast<std::size_t>(limits.max_draft) + 1);
  stats_ = {.prompt_tokens = static_cast<int>(prompt.size()),
            .reused_tokens = static_cast<int>(kept)};
  finished_ = false;
  return absl::OkStatus();
}

bool Sequence::cancelled() const {
  return limits_.cancel != nullptr &&
         limits_.cancel->load(std::memory_order_relaxed);
}

void Sequence::Finish(FinishReason reason) {
  finish_reason_ = reason;
  finished_ = true;
}

void Sequence::Propose() {
  step_tokens_.assign(1, history_.back());
  const DecodeState& state = *parts_.state;
  const int room =
      std::min({limits_.max_draft, limits_.max_tokens - stats_.new_tokens - 1,
                state.capacity() - state.length() - 1});
  if (room <= 0 || !decoder_.info().can_truncate) return;
  step_tokens_.resize(static_cast<std::size_t>(room) + 1);
  const std::span<TokenId> draft = std::span(step_tokens_).subspan(1);
  // A plugin may not count out of bounds or draft past an end of the reply.
  int count = 0;
  if (parts_.constraint != nullptr) {
    count = std::clamp(parts_.constraint->ForcedTokens(draft), 0, room);
  }
  if (count == 0 && parts_.drafter != nullptr) {
    count = std::clamp(parts_.drafter->Propose(history_, draft), 0, room);
    if (parts_.constraint != nullptr && count > 0) {
      count = std::clamp(parts_.constraint->ValidPrefix(draft.first(count)), 0,
                         count);
    }
  }
  for (int i = 0; i < count; ++i) {
    const bool valid = draft[i] >= 0 && draft[i] < decoder_.info().vocab_size;
    const bool stop =
        std::find(limits_.stop_tokens.begin(), limits_.stop_tokens.end(),
                  draft[i]) != limits_.stop_tokens.end();
    if (!valid || stop) {
      count = valid ? i + 1 : i;
      break;
    }
  }
  step_tokens_.resize(static_cast<std::size_t>(count) + 1);
}

absl::StatusOr<TokenId> Sequence::Choose(std::span<float> logits) {
  FUCINA_RETURN_IF_ERROR(
      CheckLogits(logits, static_cast<int>(history_.size())));
  if (parts_.constraint != nullptr) {
    FUCINA_RETURN_IF_ERROR(parts_.constraint->Mask(logits));
    // Fails closed: a mask that is no mask must not choose the token.
    const absl::Status masked =
        CheckLogits(logits, static_cast<int>(history_.size()));
    if (!masked.ok()) {
      return absl::InternalError(
          absl::StrCat("the constraint broke the contract: after its mask, ",
                       masked.message()));
    }
  }
  for (const TokenId token : parts_.never_sampled) {
    logits[token] = -std::numeric_limits<float>::infinity();
  }
  return parts_.sampler->Sample(logits, history_);
}

// Samples row after row while the draft holds, committing each token.
absl::Status Sequence::Commit(const Tensor& logits, TokenSink sink) {
  for (std::int64_t row = 0; row < logits.dim(0); ++row) {
    FUCINA_ASSIGN_OR_RETURN(
        const TokenId token,
        Choose({logits.mutable_row_f32(row),
                static_cast<std::size_t>(logits.row_size())}));
    if (parts_.constraint != nullptr) {
      FUCINA_RETURN_IF_ERROR(parts_.constraint->Accept(token));
    }
    history_.push_back(token);
    if (parts_.drafter != nullptr) parts_.drafter->Commit({&token, 1});
    ++stats_.new_tokens;
    const bool stop =
        std::find(limits_.stop_tokens.begin(), limits_.stop_tokens.end(),
                  token) != limits_.stop_tokens.end();
    const bool go_on = sink(token);
    const bool drafted =
        row + 1 < logits.dim(0) && token == step_tokens_[row + 1];
    if (drafted) ++stats_.accepted;
    if (stop) {
      Finish(FinishReason::kStopToken);
    } else if (!go_on) {
      Finish(FinishReason::kSink);
    } else if (stats_.new_tokens >= limits_.max_tokens) {
      Finish(FinishReason::kLength);
    }
    // The sampled token is the correction of a draft that was wrong.
    if (finished_ || !drafted) break;
  }
  return absl::OkStatus();
}

absl::Status Generator::Generate(Sequence& sequence,
                                 std::span<const TokenId> prompt,
                                 const GenerationLimits& limits,
                                 TokenSink sink) const {
  return Generate(sequence, prompt, limits, sink, [](int, int) {});
}

absl::Status Generator::Generate(Sequence& sequence,
                                 std::span<const TokenId> prompt,
                                 const GenerationLimits& limits, TokenSink sink,
                                 Progress progress) const {
  FUCINA_RETURN_IF_ERROR(sequence.Begin(prompt, limits));
  FUCINA_RETURN_IF_ERROR(Prefill(sequence, prompt, sink, progress));
  const Clock::time_point start = Clock::now();
  absl::Status status;
  while (status.ok() && !sequence.finished_) {
    if (sequence.cancelled()) {
      sequence.Finish(FinishReason::kCancelled);
    } else if (sequence.parts_.state->length() >=
               sequence.parts_.state->capacity()) {
      sequence.Finish(FinishReason::kContextFull);
    } else {
      status = Step(sequence, sink);
    }
  }
  sequence.stats_.decode_ms = MillisecondsSince(start);
  sequence.finished_ = true;
  return status;
}

absl::Status Generator::Prefill(Sequence& sequence,
                                std::span<const TokenId> prompt, TokenSink sink,
                                Progress progress) const {
  const std::size_t chunk =
      static_cast<std::size_t>(std::max(1, sequence.limits_.prefill_chunk));
  SequenceStep step = {.state = sequence.parts_.state,
                       .adapter = sequence.parts_.adapter};
  if (sequence.parts_.drafter != nullptr) {
    step.tap = sequence.parts_.drafter->tap();
  }
  while (sequence.history_.size() < prompt.size()) {
    if (sequence.cancelled()) {
      sequence.Finish(FinishReason::kCancelled);
      return absl::OkStatus();
    }
    const std::size_t done = sequence.history_.size();
    const std::size_t count = std::min(chunk, prompt.size() - done);
    const bool last = done + count == prompt.size();
    step.tokens = prompt.subspan(done, count);
    step.rows = last ? LogitRows::kLast : LogitRows::kNone;
    const Clock::time_point start = Clock::now();
    FUCINA_RETURN_IF_ERROR(CheckedForward(decoder_, step));
    sequence.stats_.prefill_ms += MillisecondsSince(start);
    sequence.history_.insert(sequence.history_.end(), step.tokens.begin(),
                             step.tokens.end());
    if (sequence.parts_.drafter != nullptr) {
      sequence.parts_.drafter->Commit(step.tokens);
    }
    progress(static_cast<int>(done + count), static_cast<int>(prompt.size()));
  }
  if (sequence.limits_.on_prompt_logits != nullptr) {
    (*sequence.limits_.on_prompt_logits)(
        {step.logits.row_f32(0),
         static_cast<std::size_t>(step.logits.row_size())});
  }
  sequence.step_tokens_.clear();
  return sequence.Commit(step.logits, sink);
}

absl::Status Generator::Step(Sequence& sequence, TokenSink sink) const {
  sequence.Propose();
  SequenceStep step = {.tokens = sequence.step_tokens_,
                       .state = sequence.parts_.state,
                       .rows = LogitRows::kAll,
                       .adapter = sequence.parts_.adapter};
  if (sequence.parts_.drafter != nullptr) {
    step.tap = sequence.parts_.drafter->tap();
  }
  FUCINA_RETURN_IF_ERROR(CheckedForward(decoder_, step));
  ++sequence.stats_.forwards;
  sequence.stats_.drafted += static_cast<int>(step.tokens.size()) - 1;
  absl::Status status = sequence.Commit(step.logits, sink);
  // Rows that did not happen are dropped, also after an error; the newest token
  // is not in the state yet.
  const int committed = static_cast<int>(sequence.history_.size()) - 1;
  if (sequence.parts_.state->length() > committed) {
    status.Update(sequence.parts_.state->Truncate(committed));
  }
  return status;
}

}  // namespace fucina
