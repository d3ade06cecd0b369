// Fuzz entry of grammars: any text compiles or is refused, in time, and a reply
// under it keeps the contract: forced tokens are what the mask leaves, looking
// ahead changes nothing, and what goes wrong is an error.
//
// The first byte chooses the kind: 'j' a JSON schema, 'l' Lark, else a regular
// expression.

#include <cstddef>
#include <cstdint>
#include <string>

#include "fucina/diag/check.h"
#include "fucina/diag/log.h"
#include "tests/plugins/llguidance/toy_constraint.h"

namespace {

using fucina::TokenId;

std::vector<TokenId> Allowed(fucina::Constraint& constraint, int rows,
                             absl::Status& status) {
  std::vector<float> logits(static_cast<std::size_t>(rows), 0.5F);
  status = constraint.Mask(logits);
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == 0.5F) ids.push_back(static_cast<TokenId>(i));
  }
  return ids;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  // Never destroyed: a compilation that was given up may still run.
  static const auto* const toy = new fucina::testing::ToyVocabulary;
  fucina::SetLogLevel(fucina::LogLevel::kSilent);
  if (size == 0) return 0;
  const char* kind = data[0] == 'j'   ? "json_schema"
                     : data[0] == 'l' ? "lark"
                                      : "regex";
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto made =
      fucina::testing::MakeConstraint(*toy->tokenizer, {{kind, text}});
  if (!made.ok()) {
    FUCINA_CHECK(absl::IsInvalidArgument(made.status())) << made.status();
    return 0;
  }
  fucina::Constraint& constraint = **made;
  std::uint32_t seed = static_cast<std::uint32_t>(size);
  for (int step = 0; step < 24; ++step) {
    TokenId forced[4];
    const int num_forced = constraint.ForcedTokens(forced);
    absl::Status status;
    const std::vector<TokenId> allowed = Allowed(constraint, toy->rows, status);
    if (!status.ok()) {
      FUCINA_CHECK(absl::IsInternal(status)) << status;
      FUCINA_CHECK(!constraint.IsComplete());
      return 0;
    }
    FUCINA_CHECK(!allowed.empty());
    if (num_forced > 0) {
      FUCINA_CHECK(allowed.size() == 1 && allowed[0] == forced[0]);
    }
    seed = seed * 1664525U + 1013904223U;
    const TokenId token = allowed[(seed >> 8) % allowed.size()];
    if (token == toy->end) {
      FUCINA_CHECK(constraint.IsComplete());
      return 0;
    }
    FUCINA_CHECK_EQ(constraint.ValidPrefix({&token, 1}), 1);
    if (!constraint.Accept(token).ok()) return 0;
  }
  return 0;
}
