#ifndef FUCINA_CONTRACT_DRAFTER_H_
#define FUCINA_CONTRACT_DRAFTER_H_

// Proposes tokens that the decoder then verifies in one forward pass. A drafter
// can only change speed: what is committed is always what the sampler chose.
// One drafter serves one sequence, one thread at a time.

#include <span>
#include <string>

#include "absl/status/status.h"
#include "fucina/contract/decoder.h"
#include "fucina/export.h"

namespace fucina {

// Classes of drafts are 0 … kMaxDraftClasses - 1.
inline constexpr int kMaxDraftClasses = 16;

class FUCINA_API Drafter {
 public:
  virtual ~Drafter();
  // Proposes a continuation of `context` (everything committed) into `draft`
  // and returns how many tokens it wrote, at most draft.size(). Deterministic.
  virtual int Propose(std::span<const TokenId> context,
                      std::span<TokenId> draft) = 0;
  // What kind of draft the last one is, by whatever says how reliable it is,
  // such as where it comes from: the decoder learns for each class how often
  // its drafts are right.
  virtual int draft_class() const { return 0; }
  // Of the last draft only the first `count` tokens will be verified; 0 when it
  // is not worth a try. What follows is then nobody's mistake.
  virtual void Cut(int /*count*/) {}
  // Tells which tokens were committed since the last call, in order: those of
  // the prompt as they are read, then those of each step.
  virtual void Commit(std::span<const TokenId> tokens) = 0;
  // Forget every token from `length` on: a new turn rendered its history anew,
  // and Commit goes on from there. Called before each generation, also with
  // the number of tokens that there are. What was learned from them may stay.
  virtual void Rewind(int length) = 0;
  // How many of the best next tokens it wants to hear about; 0 for none.
  virtual int wants_candidates() const { return 0; }
  // The best tokens to follow `token`, best first, by the model alone; for each
  // row of a step that was verified, after its Commit.
  virtual void OnCandidates(TokenId /*token*/,
                            std::span<const TokenId> /*candidates*/) {}
  // For drafters that read hidden states; null otherwise.
  virtual LayerTap* tap() { return nullptr; }
  // What it has to say about itself for the figures after a reply, in a few
  // words; empty for nothing.
  virtual std::string Report() const { return {}; }
  // A document whose text may come up again, in tokens of the target's
  // vocabulary. Called before the first Commit. InvalidArgument or
  // ResourceExhausted with the reason when it cannot be used; Unimplemented
  // from drafters that read none.
  virtual absl::Status AddReference(std::span<const TokenId> /*tokens*/) {
    return absl::UnimplementedError("this drafter reads no documents");
  }
};

}  // namespace fucina

#endif  // FUCINA_CONTRACT_DRAFTER_H_
