#include "core/decode/top_candidates.h"

#include <algorithm>
#include <cstddef>

#include "fucina/diag/check.h"

namespace fucina {

void TopCandidates(std::span<const float> logits, std::span<TokenId> out) {
  FUCINA_CHECK(!out.empty() && out.size() <= logits.size());
  std::size_t held = 0;
  const auto insert = [&](std::size_t id) {
    std::size_t place = held < out.size() ? held++ : out.size() - 1;
    for (; place > 0 &&
           logits[static_cast<std::size_t>(out[place - 1])] < logits[id];
         --place) {
      out[place] = out[place - 1];
    }
    out[place] = static_cast<TokenId>(id);
  };
  std::size_t i = 0;
  for (; i < out.size(); ++i) insert(i);
  const auto worst = [&] {
    return logits[static_cast<std::size_t>(out.back())];
  };
  // Few logits are among the best, so a block is passed over in one go.
  constexpr std::size_t kBlock = 64;
  for (; i < logits.size(); i += kBlock) {
    const std::size_t end = std::min(i + kBlock, logits.size());
    const float bound = worst();
    int above = 0;
    for (std::size_t j = i; j < end; ++j) above |= logits[j] > bound ? 1 : 0;
    if (above == 0) continue;
    for (std::size_t j = i; j < end; ++j) {
      if (logits[j] > worst()) insert(j);
    }
  }
}

}  // namespace fucina
