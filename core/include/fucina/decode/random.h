#ifndef FUCINA_DECODE_RANDOM_H_
#define FUCINA_DECODE_RANDOM_H_

// The random source of sampling: xoshiro256++ seeded through SplitMix64. One
// per stream; the same seed gives the same draws on every machine. Source:
// Blackman and Vigna, "Scrambled linear pseudorandom number generators" (arXiv
// 1805.01407). Thread-compatible.

#include <cstdint>

#include "fucina/export.h"

namespace fucina {

class FUCINA_API Random {
 public:
  explicit Random(std::uint64_t seed);

  // 64 uniform bits.
  std::uint64_t NextBits();
  // Uniform in [0, 1). The exponent comes from the leading zeros of one output
  // and the mantissa from its low bits, so small values keep full precision.
  // Draws one further output only after 41 leading zeros.
  float NextUniform();

 private:
  std::uint64_t state_[4];
};

}  // namespace fucina

#endif  // FUCINA_DECODE_RANDOM_H_
