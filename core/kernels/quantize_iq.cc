// The IQ and ternary formats, 256 elements each. The indices g (run of 32), r
// (run of 8 in it) and j are those of the format's description.

#include <cmath>
#include <cstring>

#include "core/kernels/block_codec.h"
#include "core/kernels/lattice.h"
#include "fucina/kernels/f16.h"

namespace fucina {
namespace {

constexpr float kTiny = 1e-15f;

// `factor` times eight grid values, negated where `signs` has a bit.
void PutSigned(float factor, const std::int8_t* grid, int signs, int count,
               float* y) {
  for (int j = 0; j < count; ++j) {
    const float sign = ((signs >> j) & 1) != 0 ? -1.0f : 1.0f;
    y[j] = factor * static_cast<float>(grid[j]) * sign;
  }
}

// Index of the IQ4 value nearest to v, the upper one on ties.
int NearestIq4(float v) {
  if (v <= static_cast<float>(kIq4Values[0])) return 0;
  if (!(v < static_cast<float>(kIq4Values[15]))) return 15;
  int u = 1;
  while (v >= static_cast<float>(kIq4Values[u])) ++u;
  const float below = v - static_cast<float>(kIq4Values[u - 1]);
  const float above = static_cast<float>(kIq4Values[u]) - v;
  return below < above ? u - 1 : u;
}

// Weighted sums of one trial of the IQ4 search.
struct Iq4Sums {
  float xt;  // w * T * x
  float tt;  // w * T * T
};
Iq4Sums TryIq4(const float* x, float inverse, std::uint8_t* codes) {
  Iq4Sums sums = {0.0f, 0.0f};
  for (int j = 0; j < kBlock32; ++j) {
    const int l = NearestIq4(inverse * x[j]);
    codes[j] = static_cast<std::uint8_t>(l);
    const float t = static_cast<float>(kIq4Values[l]);
    const float w = x[j] * x[j];
    sums.xt += w * t * x[j];
    sums.tt += w * t * t;
  }
  return sums;
}

// Scale of 32 values; `tries` neighbours each way, none if it is not positive.
// `codes` gets the codes of the first trial.
float SearchIq4(const float* x, int tries, std::uint8_t* codes) {
  const float max = MaxSigned(x, kBlock32);
  const float lowest = static_cast<float>(kIq4Values[0]);
  if (!(std::fabs(max) >= kTiny)) {
    for (int j = 0; j < kBlock32; ++j) {
      codes[j] = static_cast<std::uint8_t>(NearestIq4(0.0f));
    }
    return 0.0f;
  }
  const float start = tries > 0 ? -max / lowest : max / lowest;
  Iq4Sums sums = TryIq4(x, 1.0f / start, codes);
  float d = sums.xt / sums.tt;
  float best = d * sums.xt;
  std::uint8_t unused[kBlock32];
  for (int u = -tries; u <= tries; ++u) {
    sums = TryIq4(x, (static_cast<float>(u) + lowest) / max, unused);
    if (sums.tt > 0.0f && sums.xt * sums.xt > best * sums.tt) {
      d = sums.xt / sums.tt;
      best = d * sums.xt;
    }
  }
  return d;
}

}  // namespace

std::uint16_t Iq1mScaleBits(const BlockIQ1_M& block) {
  const std::uint16_t* s = block.scales;
  return static_cast<std::uint16_t>((s[0] >> 12) | ((s[1] >> 8) & 0x00f0) |
                                    ((s[2] >> 4) & 0x0f00) | (s[3] & 0xf000));
}

// ------------------------------------------------------------------- decoding

void Decode(const BlockIQ4_XS& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  for (int g = 0; g < 8; ++g) {
    const int low = (block.scales_l[g / 2] >> (4 * (g % 2))) & 15;
    const int scale = low | ((block.scales_h >> (2 * g)) & 3) << 4;
    const float factor = d * static_cast<float>(scale - 32);
    for (int j = 0; j < 16; ++j) {
      const int code = block.qs[16 * g + j];
      y[32 * g + j] = factor * static_cast<float>(kIq4Values[code & 15]);
      y[32 * g + 16 + j] = factor * static_cast<float>(kIq4Values[code >> 4]);
    }
  }
}

void Decode(const BlockIQ2_XXS& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  for (int g = 0; g < 8; ++g) {
    const std::uint8_t* indices = block.qs + 8 * g;
    const std::uint32_t word = LoadU32(block.qs + 8 * g + 4);
    const float factor = d * (0.5f + static_cast<float>(word >> 28)) * 0.25f;
    for (int r = 0; r < 4; ++r) {
      PutSigned(factor, kIq2XxsGrid[indices[r]].data(),
                SignByte((word >> (7 * r)) & 127), 8, y + 32 * g + 8 * r);
    }
  }
}

void Decode(const BlockIQ2_XS& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  for (int g = 0; g < 8; ++g) {
    for (int r = 0; r < 4; ++r) {
      const int q = block.qs[4 * g + r];
      const int scale = (block.scales[g] >> (4 * (r / 2))) & 15;
      const float factor = d * (0.5f + static_cast<float>(scale)) * 0.25f;
      PutSigned(factor, kIq2XsGrid[q & 511].data(), SignByte(q >> 9), 8,
                y + 32 * g + 8 * r);
    }
  }
}

void Decode(const BlockIQ2_S& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  for (int g = 0; g < 8; ++g) {
    for (int r = 0; r < 4; ++r) {
      const int index = block.qs[4 * g + r] | ((block.qh[g] >> (2 * r)) & 3)
                                                  << 8;
      const int scale = (block.scales[g] >> (4 * (r / 2))) & 15;
      const float factor = d * (0.5f + static_cast<float>(scale)) * 0.25f;
      PutSigned(factor, kIq2SGrid[index].data(), block.signs[4 * g + r], 8,
                y + 32 * g + 8 * r);
    }
  }
}

void Decode(const BlockIQ3_XXS& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  for (int g = 0; g < 8; ++g) {
    const std::uint32_t word = LoadU32(block.scales_and_signs + 4 * g);
    const float factor = d * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
    for (int r = 0; r < 4; ++r) {
      const int signs = SignByte((word >> (7 * r)) & 127);
      const std::uint8_t* q = block.qs + 8 * g + 2 * r;
      float* out = y + 32 * g + 8 * r;
      PutSigned(factor, kIq3XxsGrid[q[0]].data(), signs, 4, out);
      PutSigned(factor, kIq3XxsGrid[q[1]].data(), signs >> 4, 4, out + 4);
    }
  }
}

void Decode(const BlockIQ3_S& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  for (int g = 0; g < 8; ++g) {
    const int scale = (block.scales[g / 2] >> (4 * (g % 2))) & 15;
    const float factor = d * static_cast<float>(1 + 2 * scale);
    for (int t = 0; t < 8; ++t) {
      const int index = block.qs[8 * g + t] | ((block.qh[g] >> t) & 1) << 8;
      const int signs = block.signs[4 * g + t / 2] >> (4 * (t % 2));
      PutSigned(factor, kIq3SGrid[index].data(), signs, 4, y + 32 * g + 4 * t);
    }
  }
}

void Decode(const BlockIQ1_S& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  for (int g = 0; g < 8; ++g) {
    const int qh = block.qh[g];
    const float factor = d * static_cast<float>(2 * ((qh >> 12) & 7) + 1);
    const float delta = (qh & 0x8000) != 0 ? -0.125f : 0.125f;
    for (int r = 0; r < 4; ++r) {
      const int index = block.qs[4 * g + r] | ((qh >> (3 * r)) & 7) << 8;
      for (int j = 0; j < 8; ++j) {
        y[32 * g + 8 * r + j] =
            factor * (static_cast<float>(kIq1Grid[index][j]) + delta);
      }
    }
  }
}

void Decode(const BlockIQ1_M& block, float* y) {
  const float d = F16ToFloat(Iq1mScaleBits(block));
  for (int g = 0; g < 8; ++g) {
    for (int r = 0; r < 4; ++r) {
      const int nibble = (block.qh[2 * g + r / 2] >> (4 * (r % 2))) & 15;
      const int scale =
          (block.scales[g / 2] >> (6 * (g % 2) + 3 * (r / 2))) & 7;
      const float factor = d * static_cast<float>(2 * scale + 1);
      const float delta = (nibble & 8) != 0 ? -0.125f : 0.125f;
      const int index = block.qs[4 * g + r] | (nibble & 7) << 8;
      for (int j = 0; j < 8; ++j) {
        y[32 * g + 8 * r + j] =
            factor * (static_cast<float>(kIq1Grid[index][j]) + delta);
      }
    }
  }
}

namespace {

// Trit t (0 the most significant) of a TQ1_0 byte, as 0, 1 or 2.
int Trit(std::uint8_t byte, int t) {
  constexpr int kPowers[5] = {1, 3, 9, 27, 81};
  return (((byte * kPowers[t]) & 255) * 3) >> 8;
}

}  // namespace

void Decode(const BlockTQ1_0& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  for (int t = 0; t < 5; ++t) {
    for (int m = 0; m < 32; ++m) {
      y[32 * t + m] = static_cast<float>(Trit(block.qs[m], t) - 1) * d;
    }
    for (int m = 0; m < 16; ++m) {
      y[160 + 16 * t + m] =
          static_cast<float>(Trit(block.qs[32 + m], t) - 1) * d;
    }
  }
  for (int t = 0; t < 4; ++t) {
    for (int m = 0; m < 4; ++m) {
      y[240 + 4 * t + m] = static_cast<float>(Trit(block.qh[m], t) - 1) * d;
    }
  }
}

void Decode(const BlockTQ2_0& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  for (int g = 0; g < 8; ++g) {
    for (int l = 0; l < 32; ++l) {
      const int q = (block.qs[32 * (g / 4) + l] >> (2 * (g % 4))) & 3;
      y[32 * g + l] = static_cast<float>(q - 1) * d;
    }
  }
}

// ------------------------------------------------------------------- encoding

void Encode(const float* x, BlockIQ4_NL& block) {
  std::uint8_t codes[kBlock32];
  block.d_f16 = FloatToF16(SearchIq4(x, /*tries=*/-1, codes));
  for (int j = 0; j < 16; ++j) {
    block.qs[j] = static_cast<std::uint8_t>(codes[j] | codes[j + 16] << 4);
  }
}

void Encode(const float* x, BlockIQ4_XS& block) {
  float scales[8];
  std::uint8_t codes[kBlock32];
  for (int g = 0; g < 8; ++g) {
    scales[g] = SearchIq4(x + 32 * g, /*tries=*/7, codes);
  }
  // Not rounded to f16 for what follows.
  const float d = -MaxSigned(scales, 8) / 32.0f;
  const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
  block.d_f16 = FloatToF16(d);
  block.scales_h = 0;
  std::memset(block.scales_l, 0, sizeof(block.scales_l));
  for (int g = 0; g < 8; ++g) {
    const int l = Clamp(NearestInt(inverse * scales[g]), -32, 31);
    const float factor = d * static_cast<float>(l);
    const float to_code = factor != 0.0f ? 1.0f / factor : 0.0f;
    for (int j = 0; j < kBlock32; ++j) {
      codes[j] = static_cast<std::uint8_t>(NearestIq4(to_code * x[32 * g + j]));
    }
    for (int j = 0; j < 16; ++j) {
      block.qs[16 * g + j] =
          static_cast<std::uint8_t>(codes[j] | codes[j + 16] << 4);
    }
    const int stored = l + 32;
    block.scales_l[g / 2] |=
        static_cast<std::uint8_t>((stored & 15) << (4 * (g % 2)));
    block.scales_h |= static_cast<std::uint16_t>((stored >> 4) << (2 * g));
  }
}

namespace {

// Scale of a ternary block and the step that turns values into trits.
struct Ternary {
  float d;
  float inverse;
};
Ternary FitTernary(const float* x) {
  const float d = std::fabs(MaxSigned(x, kBlock256));
  return {d, d != 0.0f ? 1.0f / d : 0.0f};
}

int ToTrit(float x, float inverse) {
  return Clamp(ToCode(std::round(x * inverse)), -1, 1) + 1;
}

// Five trits, the first the most significant, as a fraction of 243 rounded up.
std::uint8_t PackTrits(int v) {
  return static_cast<std::uint8_t>((v * 256 + 242) / 243);
}

}  // namespace

void Encode(const float* x, BlockTQ1_0& block) {
  const Ternary fit = FitTernary(x);
  block.d_f16 = FloatToF16(fit.d);
  for (int m = 0; m < 48; ++m) {
    // 32 bytes of elements 32 t + m, then 16 of 160 + 16 t + m.
    const int first = m < 32 ? m : 160 + m - 32;
    const int stride = m < 32 ? 32 : 16;
    int v = 0;
    for (int t = 0; t < 5; ++t) {
      v = 3 * v + ToTrit(x[first + stride * t], fit.inverse);
    }
    block.qs[m] = PackTrits(v);
  }
  for (int m = 0; m < 4; ++m) {
    int v = 0;
    for (int t = 0; t < 4; ++t) {
      v = 3 * v + ToTrit(x[240 + 4 * t + m], fit.inverse);
    }
    block.qh[m] = PackTrits(3 * v);
  }
}

void Encode(const float* x, BlockTQ2_0& block) {
  const Ternary fit = FitTernary(x);
  block.d_f16 = FloatToF16(fit.d);
  std::memset(block.qs, 0, sizeof(block.qs));
  for (int i = 0; i < kBlock256; ++i) {
    block.qs[32 * (i / 128) + i % 32] |= static_cast<std::uint8_t>(
        ToTrit(x[i], fit.inverse) << (2 * (i % 128 / 32)));
  }
}

}  // namespace fucina
