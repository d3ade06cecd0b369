#ifndef FUCINA_TESTS_PLUGINS_LLGUIDANCE_TOY_CONSTRAINT_H_
#define FUCINA_TESTS_PLUGINS_LLGUIDANCE_TOY_CONSTRAINT_H_

// A vocabulary of the 256 bytes, a few merges and one token of every other
// class, and constraints over it. The id of a byte is the byte.

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "plugins/llguidance/llguidance_kind.h"
#include "tests/core/text/vocab_file.h"

namespace fucina::testing {

struct ToyVocabulary {
  ToyVocabulary() {
    VocabFile file = VocabFile::WithBytes();
    ca = file.AddMerge("c", "a");
    cab = file.AddMerge("ca", "b");
    end = file.Add("<|end|>", 3);
    turn = file.Add("<|turn|>", 3);
    control = file.Add("<|im_start|>", 3);
    unknown = file.Add("<unk>", 2);
    user = file.Add("<think>", 4);
    twin = file.Add(InAlphabet("b"));  // the bytes of another token
    unused = file.Add("[PAD0]", 5);
    file.Add("[PAD1]", 5);
    file.extra.AddU32("tokenizer.ggml.eos_token_id",
                      static_cast<std::uint32_t>(end));
    tokenizer = MustLoad(file);
    rows = tokenizer->vocab_size() + 22;  // padded, as real matrices are
  }

  TokenId ca, cab, end, turn, control, unknown, user, twin, unused;
  std::unique_ptr<Tokenizer> tokenizer;
  int rows = 0;
};

inline absl::StatusOr<std::unique_ptr<Constraint>> MakeConstraint(
    const Tokenizer& tokenizer,
    const std::map<std::string, std::string>& options) {
  const ConstraintKind& kind = llguidance::LlguidanceKind();
  return kind.make(tokenizer, Options::Make(kind.options, options).value());
}

// The ids that the mask leaves.
inline std::set<TokenId> Allowed(Constraint& constraint, int rows) {
  std::vector<float> logits(static_cast<std::size_t>(rows), 0.5F);
  const absl::Status status = constraint.Mask(logits);
  EXPECT_TRUE(status.ok()) << status;
  std::set<TokenId> ids;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == 0.5F) {
      ids.insert(static_cast<TokenId>(i));
    } else {
      EXPECT_TRUE(std::isinf(logits[i]) && logits[i] < 0) << i;
    }
  }
  return ids;
}

// Feeds the bytes one by one; each must be allowed. Returns whether all were.
inline bool Feed(Constraint& constraint, int rows, absl::string_view bytes) {
  for (const char byte : bytes) {
    const auto id = static_cast<TokenId>(static_cast<unsigned char>(byte));
    if (Allowed(constraint, rows).count(id) == 0) return false;
    if (!constraint.Accept(id).ok()) return false;
  }
  return true;
}

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_PLUGINS_LLGUIDANCE_TOY_CONSTRAINT_H_
