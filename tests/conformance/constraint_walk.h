#ifndef FUCINA_TESTS_CONFORMANCE_CONSTRAINT_WALK_H_
#define FUCINA_TESTS_CONFORMANCE_CONSTRAINT_WALK_H_

// Replies that a constraint allows, drawn at random, and what it allowed on the
// way.

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fucina/contract/constraint.h"
#include "fucina/text/tokenizer.h"

namespace fucina::conformance {

using Allowed = std::vector<bool>;  // [rows of the output matrix]

// What the mask leaves, now.
absl::StatusOr<Allowed> AllowedNow(Constraint& constraint, int rows);

struct Walk {
  std::vector<TokenId> tokens;
  // Before each token; one more, for the end, unless it ended with a stop
  // token: what is allowed then nobody asks.
  std::vector<Allowed> allowed;
  bool stopped = false;
};

// From the start of a reply: each token is drawn from those that the mask
// leaves and is accepted, until a stop token or `max_tokens`. Internal when
// nothing is left, or when what is left is not accepted.
absl::StatusOr<Walk> RandomWalk(Constraint& constraint,
                                const Tokenizer& tokenizer, int rows,
                                std::uint32_t seed, std::size_t max_tokens);

// Called in every state of a walk with the number of tokens accepted.
using AtState = absl::FunctionRef<absl::Status(Constraint&, std::size_t)>;

// Walks again from where the constraint is, tokens [from, to) of the walk, and
// calls `at_state` before each mask. Internal when a mask is another one, and
// errors of `at_state`.
absl::Status Replay(Constraint& constraint, const Walk& walk, AtState at_state);
absl::Status Replay(Constraint& constraint, const Walk& walk);
// Part of it: the states [from, to) with the tokens that follow them.
absl::Status ReplayPart(Constraint& constraint, const Walk& walk,
                        std::size_t from, std::size_t to, AtState at_state);

// Reset. Its errors, like all of the constraint's here, are Internal.
absl::Status Restart(Constraint& constraint);

// Restart, then the walk's first `count` tokens.
absl::Status GoTo(Constraint& constraint, const Walk& walk, std::size_t count);

}  // namespace fucina::conformance

#endif  // FUCINA_TESTS_CONFORMANCE_CONSTRAINT_WALK_H_
