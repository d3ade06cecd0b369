#ifndef FUCINA_TESTS_CONFORMANCE_CONSTRAINT_CHECKS_H_
#define FUCINA_TESTS_CONFORMANCE_CONSTRAINT_CHECKS_H_

// The properties of constraint_suite.cc, each a function: OK when it holds,
// Unimplemented when the constraint does not offer it, else what was found.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fucina/plugin/registrar.h"
#include "fucina/text/tokenizer.h"
#include "tests/conformance/constraint_walk.h"
#include "tests/conformance/option_probe.h"
#include "tests/conformance/report.h"

namespace fucina::conformance {

class ConstraintChecks {
 public:
  // Borrows what it is given.
  ConstraintChecks(const ConstraintKind& kind, const Tokenizer& tokenizer,
                   const OptionTexts& options);

  // Makes one; errors of the kind.
  absl::Status MakeIt();
  // Draws the walks that the properties below rest on, so it comes first.
  absl::Status AllowsReplies();

  // constraint_masks.cc
  absl::Status MaskOnlyForbids() const;
  absl::Status MaskIgnoresLogits() const;
  absl::Status MaskIsRepeatable() const;
  absl::Status PaddingIsForbidden() const;
  absl::Status AllowedIsAccepted() const;
  absl::Status CompleteWhereItMayEnd() const;
  absl::Status StopTokensEndReplies() const;

  // constraint_lookahead.cc
  absl::Status CompleteLooksOnly() const;
  absl::Status ForcedLooksOnly() const;
  absl::Status ForcedFitsAndIsForced() const;
  absl::Status PrefixLooksOnly() const;
  absl::Status PrefixIsAccepted() const;
  absl::Status GarbageIsHarmless() const;

  // constraint_lives.cc
  absl::Status ResetBeginsAnew() const;
  absl::Status ClonesAreIndependent() const;
  absl::Status AnyThreadWorks() const;
  absl::Status SameOptionsSameConstraint() const;
  absl::Status OptionsAreRefusedByName() const;

 private:
  absl::StatusOr<std::unique_ptr<Constraint>> Make(
      const OptionTexts& texts) const;
  // A clone at the start of a reply.
  absl::StatusOr<std::unique_ptr<Constraint>> Fresh() const;
  // Each walk on a clone of its own.
  absl::Status ReplayAll(AtState at_state) const;
  bool AllowsStop(const Allowed& allowed) const;

  // constraint_lookahead.cc
  TokenId RandomText(std::mt19937& random) const;
  // The walk's tokens from there on, without the one that stops it.
  std::vector<TokenId> TextOf(const Walk& walk, std::size_t from) const;
  absl::Status CheckPrefix(Constraint& constraint, const Walk& walk,
                           std::size_t at,
                           std::span<const TokenId> tokens) const;
  // Whether ValidPrefix is anything but the number of tokens.
  absl::StatusOr<bool> CutsDrafts() const;

  const ConstraintKind& kind_;
  const Tokenizer& tokenizer_;
  const OptionTexts& options_;
  const int rows_;  // of the output matrix: the vocabulary and padding
  std::unique_ptr<Constraint> made_;
  std::vector<Walk> walks_;
};

}  // namespace fucina::conformance

#endif  // FUCINA_TESTS_CONFORMANCE_CONSTRAINT_CHECKS_H_
