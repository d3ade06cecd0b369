#ifndef FUCINA_TESTS_PLUGINS_LLGUIDANCE_SCHEMA_INSTANCES_H_
#define FUCINA_TESTS_PLUGINS_LLGUIDANCE_SCHEMA_INSTANCES_H_

// Whether a document could be a reply.

#include <string>
#include <vector>

#include "fucina/contract/constraint.h"
#include "fucina/diag/check.h"
#include "fucina/text/tokenizer.h"

namespace fucina::testing {

// Feeds `text` in its canonical tokens from the start of a reply.
inline bool Accepts(Constraint& constraint, const Tokenizer& tokenizer,
                    const std::string& text) {
  FUCINA_CHECK(constraint.Reset().ok());
  const std::vector<TokenId> ids =
      tokenizer
          .Encode(text,
                  {.add_special = false, .parse_special = ParseSpecial::kNone})
          .value();
  if (constraint.ValidPrefix(ids) != static_cast<int>(ids.size())) return false;
  for (const TokenId id : ids) {
    if (!constraint.Accept(id).ok()) return false;
  }
  return constraint.IsComplete();
}

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_PLUGINS_LLGUIDANCE_SCHEMA_INSTANCES_H_
