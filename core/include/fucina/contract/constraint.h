#ifndef FUCINA_CONTRACT_CONSTRAINT_H_
#define FUCINA_CONTRACT_CONSTRAINT_H_

// Forbids tokens. Fails closed: any error ends the reply with that error, never
// with free text. One constraint serves one sequence, one thread at a time.

#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fucina/contract/decoder.h"
#include "fucina/export.h"

namespace fucina {

class FUCINA_API Constraint {
 public:
  virtual ~Constraint();
  // Sets -inf on every token that may not follow.
  // logits  [vocab_size], every row of the output matrix, padding included
  virtual absl::Status Mask(std::span<float> logits) = 0;
  // Called exactly once per committed token, in order.
  virtual absl::Status Accept(TokenId token) = 0;
  // Back to the start of an answer.
  virtual absl::Status Reset() = 0;
  // The same grammar with a state of its own: one per sequence.
  virtual absl::StatusOr<std::unique_ptr<Constraint>> Clone() const = 0;
  // Writes the tokens that must follow, if any, and returns how many.
  virtual int ForcedTokens(std::span<TokenId> /*tokens*/) { return 0; }
  // How many of `tokens`, from the front, the grammar would accept.
  virtual int ValidPrefix(std::span<const TokenId> tokens) {
    return static_cast<int>(tokens.size());
  }
  // Whether the tokens accepted so far are a whole answer, which may end here.
  // A look-ahead like the two above: it changes nothing.
  virtual bool IsComplete() { return true; }
};

}  // namespace fucina

#endif  // FUCINA_CONTRACT_CONSTRAINT_H_
