#include "fucina/decode/random.h"

#include <bit>

namespace fucina {

Random::Random(std::uint64_t seed) {
  // SplitMix64 (Steele, Lea, Flood 2014) spreads a small seed over the state.
  for (std::uint64_t& word : state_) {
    seed += 0x9E3779B97F4A7C15U;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    word = z ^ (z >> 31);
  }
}

std::uint64_t Random::NextBits() {
  std::uint64_t* s = state_;
  const std::uint64_t result = std::rotl(s[0] + s[3], 23) + s[0];
  const std::uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = std::rotl(s[3], 45);
  return result;
}

float Random::NextUniform() {
  const std::uint64_t bits = NextBits();
  int zeros = std::countl_zero(bits);
  // The mantissa takes the low 23 bits, so 41 zeros exhaust the high ones.
  if (zeros >= 41) zeros = 41 + std::countl_zero(NextBits());
  if (zeros > 126) return 0.0F;
  const auto exponent = static_cast<std::uint32_t>(126 - zeros);
  const auto mantissa = static_cast<std::uint32_t>(bits & 0x7FFFFFU);
  return std::bit_cast<float>((exponent << 23) | mantissa);
}

}  // namespace fucina
