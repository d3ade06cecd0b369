#ifndef FUCINA_PLUGINS_LLGUIDANCE_LLGUIDANCE_CONSTRAINT_H_
#define FUCINA_PLUGINS_LLGUIDANCE_LLGUIDANCE_CONSTRAINT_H_

// The engine's matcher as a Constraint.
//
// When the grammar is complete and nothing can follow, only the tokens that end
// a reply are allowed. An error of the engine is final until Reset: every call
// returns it, so that the reply ends with it.

#include <cstdint>
#include <memory>
#include <vector>

#include "engine.h"
#include "fucina/contract/constraint.h"

namespace fucina::llguidance {

class LlguidanceConstraint final : public Constraint {
 public:
  // matcher  at the start of a reply, never fed
  // The engine is shared by all clones: whoever goes last frees it.
  LlguidanceConstraint(std::shared_ptr<const EngineTokenizer> engine,
                       MatcherHandle matcher);

  absl::Status Mask(std::span<float> logits) override;
  absl::Status Accept(TokenId token) override;
  absl::Status Reset() override;
  absl::StatusOr<std::unique_ptr<Constraint>> Clone() const override;
  int ForcedTokens(std::span<TokenId> tokens) override;
  int ValidPrefix(std::span<const TokenId> tokens) override;
  bool IsComplete() override;

 private:
  absl::Status Fail(absl::string_view message);
  bool stopped() const;
  // A look-ahead must not change what comes; the engine's errors do. Brings
  // the matcher back to where it was.
  void Recover();

  std::shared_ptr<const EngineTokenizer> engine_;
  MatcherHandle pristine_;  // a matcher cannot be reset once it has failed
  MatcherHandle matcher_;
  std::vector<TokenId> accepted_;    // since Reset
  std::vector<std::uint32_t> mask_;  // one bit per token
  absl::Status failure_;
};

}  // namespace fucina::llguidance

#endif  // FUCINA_PLUGINS_LLGUIDANCE_LLGUIDANCE_CONSTRAINT_H_
