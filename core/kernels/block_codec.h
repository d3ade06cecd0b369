#ifndef FUCINA_CORE_KERNELS_BLOCK_CODEC_H_
#define FUCINA_CORE_KERNELS_BLOCK_CODEC_H_

// One block at a time: the pieces behind quantize.h, and what the scalar
// kernels share with it. Decoders write a whole block of floats.

#include <bit>
#include <cstdint>
#include <cstring>

#include "fucina/tensor/blocks.h"

namespace fucina {

// Nearest integer, ties to even, by adding and subtracting 1.5 * 2^23.
// Exact for |x| <= 4194303; anything else, NaN too, gives some number that
// the callers clamp.
inline int NearestInt(float x) {
  const float shifted = x + 12582912.0f;
  return static_cast<int>(std::bit_cast<std::uint32_t>(shifted) & 0x7fffffu) -
         0x400000;
}

// The float as an int, truncated; NaN and numbers outside the byte range that
// codes live in give 0, so that odd input cannot reach an undefined cast.
inline int ToCode(float x) {
  return x > -256.0f && x < 256.0f ? static_cast<int>(x) : 0;
}

// The value of largest magnitude with its sign, the first one on ties.
inline float MaxSigned(const float* x, int n) {
  float max = 0.0f;
  float magnitude = 0.0f;
  for (int i = 0; i < n; ++i) {
    const float a = x[i] < 0.0f ? -x[i] : x[i];
    if (a > magnitude) {
      magnitude = a;
      max = x[i];
    }
  }
  return max;
}

inline int Clamp(int v, int lo, int hi) {
  return v < lo ? lo : v > hi ? hi : v;
}

// Scale and minimum g (0..7) of a Q4_K or Q5_K block.
struct ScaleMin {
  int scale;
  int min;
};
inline ScaleMin UnpackScaleMin(const std::uint8_t* s, int g) {
  if (g < 4) return {s[g] & 63, s[g + 4] & 63};
  return {(s[g + 4] & 15) | (s[g - 4] >> 6) << 4, (s[g + 4] >> 4) | (s[g] >> 6)
                                                                        << 4};
}

// Scale b (0..15) of a Q3_K block, 0..63; the value is this minus 32.
inline int UnpackQ3Scale(const std::uint8_t* s, int b) {
  const int low = b < 8 ? s[b] & 15 : s[b - 8] >> 4;
  const int high = (s[8 + b % 4] >> (2 * (b / 4))) & 3;
  return low | high << 4;
}

inline std::uint32_t LoadU32(const std::uint8_t* p) {
  std::uint32_t v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}

// quantize.cc
void Decode(const BlockQ4_0& block, float* y);
void Decode(const BlockQ4_1& block, float* y);
void Decode(const BlockQ5_0& block, float* y);
void Decode(const BlockQ5_1& block, float* y);
void Decode(const BlockQ8_0& block, float* y);
void Decode(const BlockQ8_1& block, float* y);
void Decode(const BlockIQ4_NL& block, float* y);
void Decode(const BlockMXFP4& block, float* y);
void Encode(const float* x, BlockQ4_0& block);
void Encode(const float* x, BlockQ4_1& block);
void Encode(const float* x, BlockQ5_0& block);
void Encode(const float* x, BlockQ5_1& block);
void Encode(const float* x, BlockQ8_0& block);
void Encode(const float* x, BlockQ8_1& block);
void Encode(const float* x, BlockMXFP4& block);

// quantize_k.cc
void Decode(const BlockQ2_K& block, float* y);
void Decode(const BlockQ3_K& block, float* y);
void Decode(const BlockQ4_K& block, float* y);
void Decode(const BlockQ5_K& block, float* y);
void Decode(const BlockQ6_K& block, float* y);
void Decode(const BlockQ8_K& block, float* y);

// quantize_k_encode.cc
void Encode(const float* x, BlockQ2_K& block);
void Encode(const float* x, BlockQ3_K& block);
void Encode(const float* x, BlockQ4_K& block);
void Encode(const float* x, BlockQ5_K& block);
void Encode(const float* x, BlockQ6_K& block);
void Encode(const float* x, BlockQ8_K& block);

// quantize_iq.cc
void Decode(const BlockIQ4_XS& block, float* y);
void Decode(const BlockIQ2_XXS& block, float* y);
void Decode(const BlockIQ2_XS& block, float* y);
void Decode(const BlockIQ2_S& block, float* y);
void Decode(const BlockIQ3_XXS& block, float* y);
void Decode(const BlockIQ3_S& block, float* y);
void Decode(const BlockIQ1_S& block, float* y);
void Decode(const BlockIQ1_M& block, float* y);
void Decode(const BlockTQ1_0& block, float* y);
void Decode(const BlockTQ2_0& block, float* y);
void Encode(const float* x, BlockIQ4_NL& block);
void Encode(const float* x, BlockIQ4_XS& block);
void Encode(const float* x, BlockTQ1_0& block);
void Encode(const float* x, BlockTQ2_0& block);

// The bits of an IQ1_M block's scale, gathered from its four words.
std::uint16_t Iq1mScaleBits(const BlockIQ1_M& block);

}  // namespace fucina

#endif  // FUCINA_CORE_KERNELS_BLOCK_CODEC_H_
