#ifndef FUCINA_DECODE_GENERATOR_H_
#define FUCINA_DECODE_GENERATOR_H_

// The loop that turns a decoder into a stream of tokens. One body serves plain
// and speculative decoding, with and without a constraint: plain decoding is
// speculation with an empty draft.
//
// Invariants: one random draw per committed token (none when greedy); history
// holds only committed tokens; the tokens are those of the same sequence run
// alone, without a drafter; a constraint sees each committed token once; after
// an error the state holds only committed tokens.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/contract/constraint.h"
#include "fucina/contract/decoder.h"
#include "fucina/contract/drafter.h"
#include "fucina/decode/sampler.h"
#include "fucina/decode/speculation_gate.h"
#include "fucina/decode/time_histogram.h"
#include "fucina/export.h"

namespace fucina {

enum class FinishReason {
  kStopToken,    // a stop token was committed
  kLength,       // max_tokens committed
  kContextFull,  // the state has no room for the next token
  kSink,         // the sink asked to stop
  kCancelled,    // the cancel flag was raised
};

// "stop", "length" (of a full context too), "sink", "cancelled".
FUCINA_API absl::string_view Name(FinishReason reason);

struct GenerationStats {
  int prompt_tokens = 0;  // of the whole prompt
  int reused_tokens = 0;  // of them already in the state
  int new_tokens = 0;     // committed
  int forwards = 0;       // decode forwards, prefill excluded
  int verifies = 0;       // of the forwards, those that carried a draft
  int drafted = 0;        // draft tokens verified
  int accepted = 0;       // of them committed
  // Of the forwards whose time was taken: one carried token alone, and with a
  // draft behind it.
  int plain_timed = 0;
  int verifies_timed = 0;
  double plain_ms = 0;
  double verify_ms = 0;
  int gate_refusals = 0;     // steps whose draft was not worth verifying
  int forced = 0;            // of the drafted, those that a constraint forced
  int forced_accepted = 0;   // of them committed
  TimeHistogram masks = {};  // a time per row that a constraint masked
  double prefill_ms = 0;     // the prompt's forwards only
  double decode_ms = 0;      // first draw to last draw, sampling included
};

// What one sequence needs besides the decoder. Borrowed; outlives the sequence.
struct SequenceParts {
  DecodeState* state = nullptr;      // never null
  Sampler* sampler = nullptr;        // never null
  Drafter* drafter = nullptr;        // null: no drafting
  Constraint* constraint = nullptr;  // null: every token allowed
  const AdapterSet* adapter = nullptr;
  // Tokens that are never sampled, such as the padding rows of a vocabulary.
  std::span<const TokenId> never_sampled = {};
  SpeculationGateOptions gate = {};  // of no use without a drafter
};

struct GenerationLimits {
  int max_tokens = 0;                         // >= 1
  std::span<const TokenId> stop_tokens = {};  // each ends the reply, committed
  // Prompt tokens per forward: bounds the time until a cancel is seen.
  int prefill_chunk = 512;
  const std::atomic<bool>* cancel = nullptr;  // null: cannot be cancelled
  // Sees the raw logits of the prompt's last token, before masks and penalties
  // change them, outside the timed spans. Null: nobody looks.
  const std::function<void(std::span<const float>)>* on_prompt_logits = nullptr;
};

// Hears every committed token in order; false stops after that token.
using TokenSink = absl::FunctionRef<bool(TokenId)>;

// One sequence: its history and where its state stands in it.
class FUCINA_API Sequence {
 public:
  // REQUIRES: parts.state and parts.sampler are set; the state is empty.
  Sequence(const Decoder& decoder, const SequenceParts& parts);

  // Everything committed: prompt and generated tokens.
  std::span<const TokenId> history() const { return history_; }
  const GenerationStats& stats() const { return stats_; }
  FinishReason finish_reason() const { return finish_reason_; }

  // Forgets everything from `length` on, so that it is computed again. Errors
  // of DecodeState::Truncate. REQUIRES: no generation of it runs; 0 <= length.
  absl::Status Truncate(int length);

 private:
  friend class Generator;

  // A generation is Begin, then for every forward Prepare and Commit.
  absl::Status Begin(std::span<const TokenId> prompt,
                     const GenerationLimits& limits);
  // Writes the part of the next forward into `step`: a chunk of the prompt,
  // then carry and draft. `together` sequences share the forwards. False when
  // the sequence has ended.
  bool Prepare(SequenceStep& step, int together);
  // Takes what the forward made of that step, which took `ns`; 0 when drafts of
  // several sequences were in it.
  absl::Status Commit(const SequenceStep& step, std::int64_t ns,
                      TokenSink sink);
  bool reading_prompt() const { return history_.size() < prompt_.size(); }
  // Tokens in the state between forwards: the newest one is not there yet.
  int computed() const {
    return static_cast<int>(history_.size()) - (reading_prompt() ? 0 : 1);
  }

  // Writes carry and draft into step_tokens_.
  void Propose(int together);
  int AskDrafter(std::span<TokenId> draft, int forced);
  absl::Status Mask(std::span<float> logits);
  int Usable(std::span<const TokenId> draft) const;
  void Watch(std::span<const TokenId> draft);
  void CompareWatched(TokenId committed);
  bool IsStop(TokenId token) const;
  absl::Status CommitPrompt(const SequenceStep& step, TokenSink sink);
  absl::Status CommitAndTell(const Tensor& logits, TokenSink sink);
  absl::Status CommitRows(const Tensor& logits, TokenSink sink);
  absl::StatusOr<TokenId> Choose(std::span<float> logits);
  void Finish(FinishReason reason);
  bool cancelled() const;

  const Decoder& decoder_;
  SequenceParts parts_;
  GenerationLimits limits_;
  std::span<const TokenId> prompt_;  // of the running generation
  std::vector<TokenId> history_;
  std::vector<TokenId> step_tokens_;  // carry and draft of one forward
  GenerationStats stats_;
  SpeculationGate gate_;
  bool drafter_spoke_ = false;     // the draft is the drafter's
  int forced_ = 0;                 // and begins with so many forced tokens
  std::vector<TokenId> guess_;     // of the drafter, where tokens are forced
  int draft_class_ = 0;            // of its last one
  std::vector<TokenId> watched_;   // a draft that was not verified
  std::size_t watched_right_ = 0;  // of its tokens, those that came
  int watched_class_ = 0;
  std::size_t num_candidates_ = 0;   // per row, that the drafter wants
  std::size_t candidate_rows_ = 0;   // of this step
  std::vector<TokenId> candidates_;  // [max_draft + 1, num_candidates_]
  FinishReason finish_reason_ = FinishReason::kLength;
  bool finished_ = true;
};

// One of the sequences that Generator::Generate drives together.
struct Stream {
  Sequence* sequence = nullptr;  // never null
  std::span<const TokenId> prompt = {};
  GenerationLimits limits = {};
  // Hears every committed token in order; false stops after it. Null: nobody
  // listens.
  std::function<bool(TokenId)> sink = nullptr;
  // Hears, between the chunks of the prompt, tokens done and in all.
  std::function<void(int, int)> progress = nullptr;
  absl::Status status = absl::OkStatus();  // out: how its generation went
};

class FUCINA_API Generator {
 public:
  explicit Generator(const Decoder& decoder) : decoder_(decoder) {}

  // Called between prefill chunks with tokens done and tokens in all.
  using Progress = absl::FunctionRef<void(int done, int total)>;

  // Continues one sequence so that its history becomes `prompt` followed by the
  // reply. What the state already holds of the prompt is kept (at least the
  // last prompt token is computed again, for its logits), the rest is
  // forgotten.
  //
  // InvalidArgument for an empty prompt, max_tokens < 1 or a token outside the
  // vocabulary; OutOfRange with both counts when the prompt does not fit;
  // errors of the decoder, sampler and constraint as they are. On error the
  // state and the history hold the same committed tokens, and the sequence is
  // usable.
  absl::Status Generate(Sequence& sequence, std::span<const TokenId> prompt,
                        const GenerationLimits& limits, TokenSink sink,
                        Progress progress) const;
  absl::Status Generate(Sequence& sequence, std::span<const TokenId> prompt,
                        const GenerationLimits& limits, TokenSink sink) const;

  // The same for several sequences in lockstep: prompts are read one after the
  // other, then each forward carries the next step of every sequence that has
  // not ended. Prompts, limits and lengths of replies may differ; a sequence
  // that ends leaves, and one that fails leaves with its status. Each one's
  // tokens are those of the same sequence alone. decode_ms of a sequence is the
  // time of the forwards it took part in, from the first shared one on.
  //
  // REQUIRES: no sequence, state, sampler or constraint occurs twice.
  void Generate(std::span<Stream> streams) const;

 private:
  void Prefill(Stream& stream) const;
  void Forward(std::span<SequenceStep> steps, std::span<Stream*> live) const;

  const Decoder& decoder_;
};

}  // namespace fucina

#endif  // FUCINA_DECODE_GENERATOR_H_
