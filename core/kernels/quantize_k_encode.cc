// Encoding of the K formats by the reference rules: a search for the scale (and
// minimum) of each sub-block, then a second quantisation of those by the
// block's own scale, then the codes against the rounded numbers.
//
// The searches are spelled in the reference's order of operations, because
// their outcome depends on it to the last bit.

#include <cmath>
#include <cstring>

#include "core/kernels/block_codec.h"
#include "fucina/kernels/f16.h"

namespace fucina {
namespace {

// Below this magnitude a group counts as zero.
constexpr float kTiny = 1e-15f;

// Symmetric search: the scale s and codes L in -top..top-1 that make s * L
// closest to x, errors weighted by x squared. Codes are stored plus `top`.
float SearchSymmetric(const float* x, int n, int top, std::uint8_t* codes) {
  const float max = MaxSigned(x, n);
  if (!(std::fabs(max) >= kTiny)) {
    std::memset(codes, 0, static_cast<std::size_t>(n));
    return 0.0f;
  }
  float scale = 0.0f;
  float best = 0.0f;
  for (int step = 0; step <= 18; ++step) {
    // The plain fit first, then its neighbours -0.9 .. 0.9 but for 0.
    const int u = step == 0 ? 0 : step <= 9 ? step - 10 : step - 9;
    const float t =
        u == 0
            ? static_cast<float>(-top) / max
            : -(static_cast<float>(top) + 0.1f * static_cast<float>(u)) / max;
    float sum_xl = 0.0f;
    float sum_ll = 0.0f;
    for (int i = 0; i < n; ++i) {
      const float l =
          static_cast<float>(Clamp(NearestInt(t * x[i]), -top, top - 1));
      const float w = x[i] * x[i];
      sum_xl += w * x[i] * l;
      sum_ll += w * l * l;
    }
    const bool better =
        u == 0 || (sum_ll > 0.0f && sum_xl * sum_xl > best * sum_ll);
    if (!better) continue;
    for (int i = 0; i < n; ++i) {
      codes[i] = static_cast<std::uint8_t>(
          Clamp(NearestInt(t * x[i]), -top, top - 1) + top);
    }
    scale = sum_ll != 0.0f ? sum_xl / sum_ll : 0.0f;
    best = scale * sum_xl;
  }
  return scale;
}

// Q3_K's search: one fit, then codes moved one at a time while that helps.
// Codes are stored plus four.
float SearchByDescent(const float* x, std::uint8_t* codes) {
  constexpr int kTop = 4;
  constexpr int kCount = 16;
  const float max = MaxSigned(x, kCount);
  if (!(std::fabs(max) >= kTiny)) {
    std::memset(codes, 0, kCount);
    return 0.0f;
  }
  const float t = static_cast<float>(-kTop) / max;
  int l[kCount];
  float sum_xl = 0.0f;
  float sum_ll = 0.0f;
  for (int i = 0; i < kCount; ++i) {
    l[i] = Clamp(NearestInt(t * x[i]), -kTop, kTop - 1);
    const float w = x[i] * x[i];
    sum_xl += w * x[i] * static_cast<float>(l[i]);
    sum_ll += w * static_cast<float>(l[i]) * static_cast<float>(l[i]);
  }
  for (int sweep = 0; sweep < 5; ++sweep) {
    bool changed = false;
    for (int i = 0; i < kCount; ++i) {
      const float w = x[i] * x[i];
      const float old_l = static_cast<float>(l[i]);
      float xl = sum_xl - w * x[i] * old_l;
      if (!(xl > 0.0f)) continue;
      float ll = sum_ll - w * old_l * old_l;
      const int moved = Clamp(NearestInt(x[i] * ll / xl), -kTop, kTop - 1);
      if (moved == l[i]) continue;
      const float new_l = static_cast<float>(moved);
      xl += w * x[i] * new_l;
      ll += w * new_l * new_l;
      if (ll > 0.0f && xl * xl * sum_ll > sum_xl * sum_xl * ll) {
        l[i] = moved;
        sum_xl = xl;
        sum_ll = ll;
        changed = true;
      }
    }
    if (!changed) break;
  }
  for (int i = 0; i < kCount; ++i) {
    codes[i] = static_cast<std::uint8_t>(l[i] + kTop);
  }
  return sum_ll > 0.0f ? sum_xl / sum_ll : 0.0f;
}

// How SearchAffine looks around the plain fit.
struct AffineSearch {
  int top;      // largest code
  float first;  // trial u divides the range by top + first + step * u
  float step;
  int num_steps;
  bool absolute;  // sum of weighted |error| instead of its square
};

struct AffineFit {
  float scale;
  float min;  // subtracted: x = scale * code - min
};

float AffineError(const AffineSearch& search, const float* x, const float* w,
                  int n, float scale, float lo, const std::uint8_t* codes) {
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) {
    const float e = scale * static_cast<float>(codes[i]) + lo - x[i];
    sum += w[i] * (search.absolute ? std::fabs(e) : e * e);
  }
  return sum;
}

// Scale and minimum (never positive) of n <= 32 values under weights w.
AffineFit SearchAffine(const AffineSearch& search, const float* x,
                       const float* w, int n, std::uint8_t* codes) {
  float lo = x[0];
  float hi = x[0];
  float sum_w = 0.0f;
  float sum_x = 0.0f;
  for (int i = 0; i < n; ++i) {
    lo = x[i] < lo ? x[i] : lo;
    hi = x[i] > hi ? x[i] : hi;
    sum_w += w[i];
    sum_x += w[i] * x[i];
  }
  if (lo > 0.0f) lo = 0.0f;
  if (hi == lo) {
    std::memset(codes, 0, static_cast<std::size_t>(n));
    return {0.0f, -lo};
  }
  const float top = static_cast<float>(search.top);
  const float t = top / (hi - lo);
  float scale = 1.0f / t;
  for (int i = 0; i < n; ++i) {
    codes[i] = static_cast<std::uint8_t>(
        Clamp(NearestInt(t * (x[i] - lo)), 0, search.top));
  }
  float best = AffineError(search, x, w, n, scale, lo, codes);
  std::uint8_t trial[32];
  for (int u = 0; u <= search.num_steps; ++u) {
    // `lo` is the best minimum so far; `hi` stays.
    const float trial_t =
        (search.first + search.step * static_cast<float>(u) + top) / (hi - lo);
    float sum_l = 0.0f;
    float sum_ll = 0.0f;
    float sum_xl = 0.0f;
    for (int i = 0; i < n; ++i) {
      const int code = Clamp(NearestInt(trial_t * (x[i] - lo)), 0, search.top);
      trial[i] = static_cast<std::uint8_t>(code);
      const float l = static_cast<float>(code);
      sum_l += w[i] * l;
      sum_ll += w[i] * l * l;
      sum_xl += w[i] * l * x[i];
    }
    const float determinant = sum_w * sum_ll - sum_l * sum_l;
    if (!(determinant > 0.0f)) continue;
    float trial_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
    float trial_lo = (sum_ll * sum_x - sum_l * sum_xl) / determinant;
    if (trial_lo > 0.0f) {
      trial_lo = 0.0f;
      trial_scale = sum_xl / sum_ll;
    }
    const float error =
        AffineError(search, x, w, n, trial_scale, trial_lo, trial);
    if (error < best) {
      std::memcpy(codes, trial, static_cast<std::size_t>(n));
      best = error;
      scale = trial_scale;
      lo = trial_lo;
    }
  }
  return {scale, -lo};
}

// What Q4_K and Q5_K share.
struct AffineBlock {
  std::uint16_t d_f16;
  std::uint16_t dmin_f16;
  std::uint8_t scales[12];
  std::uint8_t codes[kBlock256];
};

void EncodeAffine32(const AffineSearch& search, const float* x,
                    AffineBlock& out) {
  AffineFit fit[8];
  float max_scale = 0.0f;
  float max_min = 0.0f;
  for (int g = 0; g < 8; ++g) {
    const float* sub = x + 32 * g;
    float sum_squares = 0.0f;
    for (int l = 0; l < 32; ++l) sum_squares += sub[l] * sub[l];
    const float average = std::sqrt(sum_squares / 32.0f);
    float w[32];
    for (int l = 0; l < 32; ++l) w[l] = average + std::fabs(sub[l]);
    fit[g] = SearchAffine(search, sub, w, 32, out.codes + 32 * g);
    if (fit[g].scale > max_scale) max_scale = fit[g].scale;
    if (fit[g].min > max_min) max_min = fit[g].min;
  }
  const float scale_t = max_scale > 0.0f ? 63.0f / max_scale : 0.0f;
  const float min_t = max_min > 0.0f ? 63.0f / max_min : 0.0f;
  std::memset(out.scales, 0, sizeof(out.scales));
  for (int g = 0; g < 8; ++g) {
    const int s = Clamp(NearestInt(scale_t * fit[g].scale), 0, 63);
    const int m = Clamp(NearestInt(min_t * fit[g].min), 0, 63);
    if (g < 4) {
      out.scales[g] = static_cast<std::uint8_t>(s);
      out.scales[g + 4] = static_cast<std::uint8_t>(m);
    } else {
      out.scales[g + 4] = static_cast<std::uint8_t>((s & 15) | (m & 15) << 4);
      out.scales[g - 4] |= static_cast<std::uint8_t>((s >> 4) << 6);
      out.scales[g] |= static_cast<std::uint8_t>((m >> 4) << 6);
    }
  }
  out.d_f16 = FloatToF16(max_scale / 63.0f);
  out.dmin_f16 = FloatToF16(max_min / 63.0f);
  for (int g = 0; g < 8; ++g) {
    const ScaleMin sm = UnpackScaleMin(out.scales, g);
    const float d = F16ToFloat(out.d_f16) * static_cast<float>(sm.scale);
    if (d == 0.0f) continue;  // the codes of the search stay
    const float min = F16ToFloat(out.dmin_f16) * static_cast<float>(sm.min);
    for (int l = 0; l < 32; ++l) {
      const int i = 32 * g + l;
      out.codes[i] = static_cast<std::uint8_t>(
          Clamp(NearestInt((x[i] + min) / d), 0, search.top));
    }
  }
}

}  // namespace

void Encode(const float* x, BlockQ2_K& block) {
  constexpr AffineSearch kSearch = {3, -0.5f, 0.1f, 15, true};
  std::uint8_t codes[kBlock256];
  AffineFit fit[16];
  float max_scale = 0.0f;
  float max_min = 0.0f;
  for (int b = 0; b < 16; ++b) {
    float w[16];
    for (int j = 0; j < 16; ++j) w[j] = std::fabs(x[16 * b + j]);
    fit[b] = SearchAffine(kSearch, x + 16 * b, w, 16, codes + 16 * b);
    if (fit[b].scale > max_scale) max_scale = fit[b].scale;
    if (fit[b].min > max_min) max_min = fit[b].min;
  }
  const float scale_t = max_scale > 0.0f ? 15.0f / max_scale : 0.0f;
  const float min_t = max_min > 0.0f ? 15.0f / max_min : 0.0f;
  block.d_f16 = FloatToF16(max_scale > 0.0f ? max_scale / 15.0f : 0.0f);
  block.dmin_f16 = FloatToF16(max_min > 0.0f ? max_min / 15.0f : 0.0f);
  for (int b = 0; b < 16; ++b) {
    const int s = Clamp(NearestInt(scale_t * fit[b].scale), 0, 15);
    const int m = Clamp(NearestInt(min_t * fit[b].min), 0, 15);
    block.scales[b] = static_cast<std::uint8_t>(s | m << 4);
    const float d = F16ToFloat(block.d_f16) * static_cast<float>(s);
    if (d == 0.0f) continue;
    const float min = F16ToFloat(block.dmin_f16) * static_cast<float>(m);
    for (int j = 0; j < 16; ++j) {
      const int i = 16 * b + j;
      codes[i] =
          static_cast<std::uint8_t>(Clamp(NearestInt((x[i] + min) / d), 0, 3));
    }
  }
  for (int n = 0; n < 2; ++n) {
    for (int l = 0; l < 32; ++l) {
      const std::uint8_t* c = codes + 128 * n + l;
      block.qs[32 * n + l] = static_cast<std::uint8_t>(c[0] | c[32] << 2 |
                                                       c[64] << 4 | c[96] << 6);
    }
  }
}

void Encode(const float* x, BlockQ3_K& block) {
  std::uint8_t codes[kBlock256];
  float scales[16];
  for (int b = 0; b < 16; ++b) {
    scales[b] = SearchByDescent(x + 16 * b, codes + 16 * b);
  }
  const float max = MaxSigned(scales, 16);
  std::memset(block.scales, 0, sizeof(block.scales));
  block.d_f16 = 0;
  if (max != 0.0f) {
    const float t = -32.0f / max;
    for (int b = 0; b < 16; ++b) {
      const int s = Clamp(NearestInt(t * scales[b]), -32, 31) + 32;
      block.scales[b % 8] |=
          static_cast<std::uint8_t>((s & 15) << (4 * (b / 8)));
      block.scales[8 + b % 4] |=
          static_cast<std::uint8_t>((s >> 4) << (2 * (b / 4)));
    }
    block.d_f16 = FloatToF16(1.0f / t);
  }
  for (int b = 0; b < 16; ++b) {
    const float d = F16ToFloat(block.d_f16) *
                    static_cast<float>(UnpackQ3Scale(block.scales, b) - 32);
    if (d == 0.0f) continue;
    for (int j = 0; j < 16; ++j) {
      const int i = 16 * b + j;
      codes[i] =
          static_cast<std::uint8_t>(Clamp(NearestInt(x[i] / d), -4, 3) + 4);
    }
  }
  std::memset(block.hmask, 0, sizeof(block.hmask));
  std::memset(block.qs, 0, sizeof(block.qs));
  for (int i = 0; i < kBlock256; ++i) {
    const int l = i % 32;
    block.hmask[l] |= static_cast<std::uint8_t>((codes[i] >> 2) << (i / 32));
    block.qs[32 * (i / 128) + l] |=
        static_cast<std::uint8_t>((codes[i] & 3) << (2 * (i % 128 / 32)));
  }
}

void Encode(const float* x, BlockQ4_K& block) {
  constexpr AffineSearch kSearch = {15, -1.0f, 0.1f, 20, false};
  AffineBlock out;
  EncodeAffine32(kSearch, x, out);
  block.d_f16 = out.d_f16;
  block.dmin_f16 = out.dmin_f16;
  std::memcpy(block.scales, out.scales, sizeof(block.scales));
  for (int c = 0; c < 4; ++c) {
    for (int l = 0; l < 32; ++l) {
      block.qs[32 * c + l] = static_cast<std::uint8_t>(
          out.codes[64 * c + l] | out.codes[64 * c + 32 + l] << 4);
    }
  }
}

void Encode(const float* x, BlockQ5_K& block) {
  constexpr AffineSearch kSearch = {31, -0.5f, 0.1f, 15, false};
  AffineBlock out;
  EncodeAffine32(kSearch, x, out);
  block.d_f16 = out.d_f16;
  block.dmin_f16 = out.dmin_f16;
  std::memcpy(block.scales, out.scales, sizeof(block.scales));
  std::memset(block.qh, 0, sizeof(block.qh));
  for (int c = 0; c < 4; ++c) {
    for (int l = 0; l < 32; ++l) {
      const int even = out.codes[64 * c + l];
      const int odd = out.codes[64 * c + 32 + l];
      block.qs[32 * c + l] =
          static_cast<std::uint8_t>((even & 15) | (odd & 15) << 4);
      block.qh[l] |= static_cast<std::uint8_t>((even >> 4) << (2 * c) |
                                               (odd >> 4) << (2 * c + 1));
    }
  }
}

void Encode(const float* x, BlockQ6_K& block) {
  std::uint8_t codes[kBlock256];
  float scales[16];
  for (int b = 0; b < 16; ++b) {
    scales[b] = SearchSymmetric(x + 16 * b, 16, 32, codes + 16 * b);
  }
  const float max = MaxSigned(scales, 16);
  if (!(std::fabs(max) >= kTiny)) {
    std::memset(&block, 0, sizeof(block));
    return;
  }
  const float t = -128.0f / max;
  block.d_f16 = FloatToF16(1.0f / t);
  for (int b = 0; b < 16; ++b) {
    const int s = Clamp(NearestInt(t * scales[b]), -128, 127);
    block.scales[b] = static_cast<std::int8_t>(s);
    const float d = F16ToFloat(block.d_f16) * static_cast<float>(s);
    if (d == 0.0f) continue;
    for (int j = 0; j < 16; ++j) {
      const int i = 16 * b + j;
      codes[i] =
          static_cast<std::uint8_t>(Clamp(NearestInt(x[i] / d), -32, 31) + 32);
    }
  }
  for (int n = 0; n < 2; ++n) {
    for (int l = 0; l < 32; ++l) {
      const std::uint8_t* c = codes + 128 * n + l;
      block.ql[64 * n + l] =
          static_cast<std::uint8_t>((c[0] & 15) | (c[64] & 15) << 4);
      block.ql[64 * n + 32 + l] =
          static_cast<std::uint8_t>((c[32] & 15) | (c[96] & 15) << 4);
      block.qh[32 * n + l] =
          static_cast<std::uint8_t>(c[0] >> 4 | (c[32] >> 4) << 2 |
                                    (c[64] >> 4) << 4 | (c[96] >> 4) << 6);
    }
  }
}

void Encode(const float* x, BlockQ8_K& block) {
  const float max = MaxSigned(x, kBlock256);
  if (max == 0.0f) {
    std::memset(&block, 0, sizeof(block));
    return;
  }
  const float t = -127.0f / max;
  for (int b = 0; b < 16; ++b) {
    int sum = 0;
    for (int j = 0; j < 16; ++j) {
      const int q = Clamp(NearestInt(t * x[16 * b + j]), -127, 127);
      block.qs[16 * b + j] = static_cast<std::int8_t>(q);
      sum += q;
    }
    block.bsums[b] = static_cast<std::int16_t>(sum);
  }
  block.d = 1.0f / t;
}

}  // namespace fucina
