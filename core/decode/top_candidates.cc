#include "core/decode/top_candidates.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <limits>

#include "core/decode/largest.h"
#include "fucina/diag/check.h"

namespace fucina {
namespace {

constexpr std::size_t kBlocks = 256;

}  // namespace

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
  const std::size_t block = (logits.size() + kBlocks - 1) / kBlocks;
  const std::size_t count = (logits.size() + block - 1) / block;
  const auto of_block = [&](std::size_t b) {
    const std::size_t begin = b * block;
    return logits.subspan(begin, std::min(block, logits.size() - begin));
  };
  std::array<float, kBlocks> largest;
  for (std::size_t b = 0; b < count; ++b) largest[b] = Largest(of_block(b));
  // Nothing below the smallest of the best blocks' largest is wanted.
  float bound = -std::numeric_limits<float>::infinity();
  if (count > out.size()) {
    std::array<float, kBlocks> sorted = largest;
    const auto place = sorted.begin() + static_cast<std::ptrdiff_t>(out.size());
    std::nth_element(sorted.begin(), place - 1,
                     sorted.begin() + static_cast<std::ptrdiff_t>(count),
                     std::greater<>());
    bound = *(place - 1);
  }
  for (std::size_t b = 0; b < count; ++b) {
    if (largest[b] < bound) continue;
    const std::span<const float> values = of_block(b);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] < bound) continue;
      if (held == out.size() &&
          !(values[i] > logits[static_cast<std::size_t>(out.back())])) {
        continue;
      }
      insert(b * block + i);
    }
  }
}

}  // namespace fucina
