#ifndef FUCINA_PLUGINS_SPEC_RECYCLING_TABLE_H_
#define FUCINA_PLUGINS_SPEC_RECYCLING_TABLE_H_

// For every token the tokens that are likely to follow it, best first, learned
// from what the model thought of while it decoded.
// Source: Luo et al., "Turning Trash into Treasure", arXiv:2408.08696.

#include <span>
#include <vector>

#include "fucina/contract/decoder.h"

namespace fucina::spec {

class RecyclingTable {
 public:
  static constexpr int kSuccessors = 8;

  // May throw std::bad_alloc: made while the drafter is made.
  explicit RecyclingTable(int vocab_size);

  // These follow `token`, best first.
  void Replace(TokenId token, std::span<const TokenId> successors);
  // `next` has followed `token`: it moves to the front.
  void Promote(TokenId token, TokenId next);
  // The best successor of `token`, of that one, and so on.
  int Chain(TokenId token, std::span<TokenId> draft) const;
  void Clear();

  // The successors of a token; -1 marks an empty place.
  std::span<const TokenId> Row(TokenId token) const;

 private:
  bool Valid(TokenId token) const { return token >= 0 && token < vocab_size_; }

  int vocab_size_;
  std::vector<TokenId> rows_;  // [vocab_size, kSuccessors]
};

}  // namespace fucina::spec

#endif  // FUCINA_PLUGINS_SPEC_RECYCLING_TABLE_H_
