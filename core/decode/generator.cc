#include "fucina/decode/generator.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/decode/top_candidates.h"
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

std::int64_t NanosecondsSince(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() -
                                                              start)
      .count();
}

bool AllDiffer(std::vector<const void*>& objects) {
  std::sort(objects.begin(), objects.end(), std::less<>());
  return std::adjacent_find(objects.begin(), objects.end()) == objects.end();
}

TokenSink SinkOf(const std::function<bool(TokenId)>& sink) {
  static constexpr auto kNobody = [](TokenId) { return true; };
  return sink ? TokenSink(sink) : TokenSink(kNobody);
}

}  // namespace

absl::string_view Name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStopToken:
      return "stop";
    case FinishReason::kLength:
    case FinishReason::kContextFull:
      return "length";
    case FinishReason::kSink:
      return "sink";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "";
}

Sequence::Sequence(const Decoder& decoder, const SequenceParts& parts)
    : decoder_(decoder), parts_(parts), gate_(parts.gate) {
  FUCINA_CHECK(parts_.state != nullptr && parts_.sampler != nullptr);
  FUCINA_CHECK_EQ(parts_.state->length(), 0);
  // Growing later would allocate in the middle of a reply.
  history_.reserve(static_cast<std::size_t>(parts_.state->capacity()) + 1);
}

absl::Status Sequence::Truncate(int length) {
  FUCINA_CHECK(finished_ && length >= 0) << length;
  FUCINA_RETURN_IF_ERROR(parts_.state->Truncate(length));
  if (static_cast<std::size_t>(length) < history_.size()) {
    history_.resize(static_cast<std::size_t>(length));
  }
  return absl::OkStatus();
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
  if (parts_.drafter != nullptr) {
    parts_.drafter->Rewind(static_cast<int>(kept));
  }
  if (parts_.constraint != nullptr) {
    FUCINA_RETURN_IF_ERROR(parts_.constraint->Reset());
  }
  prompt_ = prompt;
  limits_ = limits;
  step_tokens_.reserve(static_cast<std::size_t>(parts_.gate.max_draft) + 1);
  watched_.reserve(static_cast<std::size_t>(parts_.gate.max_draft));
  watched_.clear();
  watched_right_ = 0;
  guess_.reserve(static_cast<std::size_t>(parts_.gate.max_draft));
  num_candidates_ = 0;
  if (parts_.drafter != nullptr) {
    num_candidates_ = static_cast<std::size_t>(std::clamp(
        parts_.drafter->wants_candidates(), 0, decoder_.info().vocab_size));
  }
  candidates_.resize(num_candidates_ *
                     (static_cast<std::size_t>(parts_.gate.max_draft) + 1));
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

bool Sequence::Prepare(SequenceStep& step, int together) {
  if (finished_) return false;
  if (cancelled()) {
    Finish(FinishReason::kCancelled);
    return false;
  }
  const DecodeState& state = *parts_.state;
  step = {.state = parts_.state, .adapter = parts_.adapter};
  if (parts_.drafter != nullptr) step.tap = parts_.drafter->tap();
  if (reading_prompt()) {
    const std::size_t chunk =
        static_cast<std::size_t>(std::max(1, limits_.prefill_chunk));
    const std::size_t left = prompt_.size() - history_.size();
    step.tokens = prompt_.subspan(history_.size(), std::min(chunk, left));
    step.rows = left <= chunk ? LogitRows::kLast : LogitRows::kNone;
    return true;
  }
  if (state.length() >= state.capacity()) {
    Finish(FinishReason::kContextFull);
    return false;
  }
  Propose(together);
  step.tokens = step_tokens_;
  step.rows = LogitRows::kAll;
  return true;
}

absl::Status Sequence::Commit(const SequenceStep& step, std::int64_t ns,
                              TokenSink sink) {
  if (reading_prompt()) return CommitPrompt(step, sink);
  ++stats_.forwards;
  const int drafted = static_cast<int>(step.tokens.size()) - 1;
  const int accepted_before = stats_.accepted;
  stats_.drafted += drafted;
  if (drafted > 0) ++stats_.verifies;
  const std::size_t start = history_.size();
  absl::Status status = CommitAndTell(step.logits, sink);
  if (drafted == 0) gate_.RecordPlain(ns);
  if (ns > 0) {
    ++(drafted > 0 ? stats_.verifies_timed : stats_.plain_timed);
    (drafted > 0 ? stats_.verify_ms : stats_.plain_ms) +=
        static_cast<double>(ns) * 1e-6;
  }
  stats_.forced_accepted +=
      std::min(forced_, stats_.accepted - accepted_before);
  if (drafter_spoke_) {
    // What was forced is nobody's merit, and its rows took their time.
    const int tried = drafted - forced_;
    const int accepted =
        std::max(0, stats_.accepted - accepted_before - forced_);
    const int rows = static_cast<int>(history_.size() - start) - forced_;
    gate_.RecordVerify(draft_class_, tried, accepted,
                       std::clamp(rows, accepted, tried),
                       forced_ == 0 ? ns : 0);
  }
  // Rows that did not happen are dropped, also after an error; the newest token
  // is not in the state yet.
  const int committed = static_cast<int>(history_.size()) - 1;
  if (parts_.state->length() > committed) {
    status.Update(parts_.state->Truncate(committed));
  }
  return status;
}

absl::Status Sequence::CommitPrompt(const SequenceStep& step, TokenSink sink) {
  history_.insert(history_.end(), step.tokens.begin(), step.tokens.end());
  if (parts_.drafter != nullptr) parts_.drafter->Commit(step.tokens);
  if (reading_prompt()) return absl::OkStatus();
  if (limits_.on_prompt_logits != nullptr) {
    (*limits_.on_prompt_logits)(
        {step.logits.row_f32(0),
         static_cast<std::size_t>(step.logits.row_size())});
  }
  step_tokens_.clear();
  return CommitAndTell(step.logits, sink);
}

// What a step committed is told to the drafter in one call, whatever ended it,
// then what the model thought of after each of the tokens before.
absl::Status Sequence::CommitAndTell(const Tensor& logits, TokenSink sink) {
  const std::size_t start = history_.size();
  candidate_rows_ = 0;
  const absl::Status status = CommitRows(logits, sink);
  if (parts_.drafter == nullptr) return status;
  parts_.drafter->Commit(std::span(history_).subspan(start));
  const std::span<const TokenId> candidates(candidates_);
  const std::size_t width = num_candidates_;
  for (std::size_t row = 0; row < candidate_rows_; ++row) {
    parts_.drafter->OnCandidates(history_[start - 1 + row],
                                 candidates.subspan(row * width, width));
  }
  return status;
}

// The first `forced` tokens of `draft` are forced already. Of the two the
// longer is taken: a draft that the constraint allows begins with them.
int Sequence::AskDrafter(std::span<TokenId> draft, int forced) {
  const Clock::time_point start = Clock::now();
  std::span<TokenId> guess = draft;
  if (forced > 0) {
    guess_.resize(draft.size());
    guess = guess_;
  }
  // A plugin may not count out of bounds.
  int count = std::clamp(parts_.drafter->Propose(history_, guess), 0,
                         static_cast<int>(guess.size()));
  const int offered = count;
  if (parts_.constraint != nullptr && count > 0) {
    count = std::clamp(parts_.constraint->ValidPrefix(
                           guess.first(static_cast<std::size_t>(count))),
                       0, count);
  }
  count = Usable(guess.first(static_cast<std::size_t>(count)));
  gate_.RecordAsked(NanosecondsSince(start));
  if (offered == 0) return forced;
  draft_class_ = parts_.drafter->draft_class();
  if (forced > 0) {
    // Other tokens with the same text are not what the mask will leave.
    const bool longer =
        count > forced &&
        std::equal(guess.begin(), guess.begin() + forced, draft.begin());
    const int chosen = longer ? gate_.Choose(draft_class_, count - forced) : 0;
    const int used = chosen > 0 ? forced + chosen : 0;
    if (used < offered) parts_.drafter->Cut(used);
    std::copy_n(guess.begin(), used, draft.begin());
    return forced + chosen;
  }
  const int chosen = gate_.Choose(draft_class_, count);
  if (chosen < offered) parts_.drafter->Cut(chosen);
  if (chosen == 0) {
    if (count > 0) ++stats_.gate_refusals;
    Watch(draft.first(static_cast<std::size_t>(count)));
  }
  return chosen;
}

// How many tokens of a draft can be verified: those of the vocabulary, and none
// past an end of the reply.
int Sequence::Usable(std::span<const TokenId> draft) const {
  for (std::size_t i = 0; i < draft.size(); ++i) {
    if (draft[i] < 0 || draft[i] >= decoder_.info().vocab_size) {
      return static_cast<int>(i);
    }
    if (IsStop(draft[i])) return static_cast<int>(i) + 1;
  }
  return static_cast<int>(draft.size());
}

// A draft that is not verified is compared with what is committed, until its
// fate is known; those that come meanwhile are not.
void Sequence::Watch(std::span<const TokenId> draft) {
  if (watched_right_ < watched_.size()) return;
  watched_.assign(draft.begin(), draft.end());
  watched_right_ = 0;
  watched_class_ = draft_class_;
}

void Sequence::CompareWatched(TokenId committed) {
  if (watched_right_ == watched_.size()) return;
  const bool right = watched_[watched_right_] == committed;
  if (right) ++watched_right_;
  if (right && watched_right_ < watched_.size()) return;
  const auto count = static_cast<int>(watched_right_);
  gate_.RecordUnverified(watched_class_, count, right ? count : count + 1);
  watched_.clear();
  watched_right_ = 0;
}

void Sequence::Propose(int together) {
  drafter_spoke_ = false;
  forced_ = 0;
  step_tokens_.assign(1, history_.back());
  const DecodeState& state = *parts_.state;
  const int room = std::min({parts_.gate.max_draft,
                             limits_.max_tokens - stats_.new_tokens - 1,
                             state.capacity() - state.length() - 1});
  if (room <= 0 || !decoder_.info().can_truncate) return;
  step_tokens_.resize(static_cast<std::size_t>(room) + 1);
  const std::span<TokenId> draft = std::span(step_tokens_).subspan(1);
  int count = 0;
  if (parts_.constraint != nullptr) {
    count = std::clamp(parts_.constraint->ForcedTokens(draft), 0, room);
    count = Usable(draft.first(static_cast<std::size_t>(count)));
    forced_ = count;
    stats_.forced += count;
  }
  if (count < room && parts_.drafter != nullptr) {
    gate_.set_together(together);
    // The first step is plain: costs are counted in its time.
    const bool measures = stats_.forwards == 0 && !gate_.cost().knows_plain();
    const bool allowed = gate_.Allows();
    if (!allowed) ++stats_.gate_refusals;
    if (allowed && (!measures || gate_.always_on())) {
      count = AskDrafter(draft, forced_);
      drafter_spoke_ = count > forced_;
    }
  }
  step_tokens_.resize(static_cast<std::size_t>(count) + 1);
}

bool Sequence::IsStop(TokenId token) const {
  return std::find(limits_.stop_tokens.begin(), limits_.stop_tokens.end(),
                   token) != limits_.stop_tokens.end();
}

absl::Status Sequence::Mask(std::span<float> logits) {
  const Clock::time_point start = Clock::now();
  FUCINA_RETURN_IF_ERROR(parts_.constraint->Mask(logits));
  stats_.masks.Record(NanosecondsSince(start));
  return absl::OkStatus();
}

absl::StatusOr<TokenId> Sequence::Choose(std::span<float> logits) {
  FUCINA_RETURN_IF_ERROR(
      CheckLogits(logits, static_cast<int>(history_.size())));
  if (parts_.constraint != nullptr) {
    FUCINA_RETURN_IF_ERROR(Mask(logits));
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
  absl::StatusOr<TokenId> token = parts_.sampler->Sample(logits, history_);
  if (!token.ok() && parts_.constraint != nullptr) {
    return absl::InternalError(
        absl::StrCat("constraint failed: no token that it allows may be "
                     "sampled (",
                     token.status().message(), ")"));
  }
  return token;
}

// Samples row after row while the draft holds, committing each token.
absl::Status Sequence::CommitRows(const Tensor& logits, TokenSink sink) {
  for (std::int64_t row = 0; row < logits.dim(0); ++row) {
    const std::span<float> values = {
        logits.mutable_row_f32(row),
        static_cast<std::size_t>(logits.row_size())};
    if (num_candidates_ > 0) {
      // Before masks and penalties change the row.
      TopCandidates(values, std::span(candidates_)
                                .subspan(candidate_rows_ * num_candidates_,
                                         num_candidates_));
      ++candidate_rows_;
    }
    FUCINA_ASSIGN_OR_RETURN(const TokenId token, Choose(values));
    if (parts_.constraint != nullptr) {
      FUCINA_RETURN_IF_ERROR(parts_.constraint->Accept(token));
    }
    history_.push_back(token);
    ++stats_.new_tokens;
    CompareWatched(token);
    const bool stop = IsStop(token);
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
  Stream stream = {.sequence = &sequence,
                   .prompt = prompt,
                   .limits = limits,
                   .sink = sink,
                   .progress = progress};
  Generate({&stream, 1});
  return stream.status;
}

void Generator::Generate(std::span<Stream> streams) const {
  std::vector<const void*> states;
  std::vector<const void*> constraints;
  for (const Stream& stream : streams) {
    const SequenceParts& parts = stream.sequence->parts_;
    states.push_back(parts.state);
    if (parts.constraint != nullptr) constraints.push_back(parts.constraint);
  }
  FUCINA_CHECK(AllDiffer(states)) << "one state in two streams";
  FUCINA_CHECK(AllDiffer(constraints)) << "one constraint in two streams";
  std::vector<Stream*> live;
  live.reserve(streams.size());
  for (Stream& stream : streams) live.push_back(&stream);

  for (Stream& stream : streams) {
    stream.status = stream.sequence->Begin(stream.prompt, stream.limits);
    if (stream.status.ok()) Prefill(stream);
  }
  std::vector<SequenceStep> steps;
  steps.reserve(streams.size());
  while (true) {
    const Clock::time_point start = Clock::now();
    const int together = std::max(1, static_cast<int>(live.size()));
    live.clear();
    steps.clear();
    for (Stream& stream : streams) {
      SequenceStep step;
      if (!stream.status.ok() || !stream.sequence->Prepare(step, together))
        continue;
      live.push_back(&stream);
      steps.push_back(step);
    }
    if (live.empty()) break;
    const Clock::time_point forward_start = Clock::now();
    Forward(steps, live);
    // The time of rows that several sequences share tells nothing about one.
    const bool shared =
        live.size() > 1 &&
        std::any_of(steps.begin(), steps.end(), [](const SequenceStep& step) {
          return step.tokens.size() > 1;
        });
    const std::int64_t ns = shared ? 0 : NanosecondsSince(forward_start);
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (!live[i]->status.ok()) continue;
      live[i]->status =
          live[i]->sequence->Commit(steps[i], ns, SinkOf(live[i]->sink));
    }
    const double ms = MillisecondsSince(start);
    for (Stream* stream : live) stream->sequence->stats_.decode_ms += ms;
  }
  for (Stream& stream : streams) {
    stream.sequence->finished_ = true;
    stream.sequence->prompt_ = {};
  }
}

void Generator::Prefill(Stream& stream) const {
  Sequence& sequence = *stream.sequence;
  const int total = static_cast<int>(stream.prompt.size());
  SequenceStep step;
  while (stream.status.ok() && sequence.reading_prompt() &&
         sequence.Prepare(step, 1)) {
    const Clock::time_point start = Clock::now();
    stream.status = CheckedForward(decoder_, step);
    if (!stream.status.ok()) return;
    sequence.stats_.prefill_ms += MillisecondsSince(start);
    const int done = std::min(total, sequence.parts_.state->length());
    if (stream.progress) stream.progress(done, total);
    stream.status = sequence.Commit(step, 0, SinkOf(stream.sink));
  }
}

// An error of the shared forward leaves every state as it was, so each step is
// tried alone: only those that are the reason fail.
void Generator::Forward(std::span<SequenceStep> steps,
                        std::span<Stream*> live) const {
  const absl::Status status = decoder_.Forward(steps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (status.ok()) {
      live[i]->status =
          CheckForwarded(decoder_, live[i]->sequence->computed(), steps[i]);
    } else if (steps.size() == 1) {
      live[i]->status = status;
    } else {
      live[i]->status = CheckedForward(decoder_, steps[i]);
    }
  }
}

}  // namespace fucina
