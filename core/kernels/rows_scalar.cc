// Row kernels in plain C++: the oracle of the other levels.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/kernels/row_tables.h"
#include "fucina/kernels/f16.h"
#include "fucina/kernels/row_kernels.h"

#define FUCINA_UNROLL

namespace fucina {
namespace {

struct Vec {
  float lane[16];
};

// Loops over lanes are written once; `fn` gives lane i.
template <typename Fn>
inline Vec Lanes(Fn fn) {
  Vec v;
  for (int i = 0; i < 16; ++i) v.lane[i] = fn(i);
  return v;
}

constexpr int kMostQueries = 6;
constexpr int ScoreVectors(int /*num_queries*/) { return 1; }
constexpr int ValueVectors(int /*num_queries*/) { return 1; }

inline void Prefetch(const void*) {}
inline void PrefetchToWrite(void*) {}
inline Vec Splat(float x) {
  return Lanes([=](int) { return x; });
}
inline Vec Zero() { return Splat(0.0f); }
inline float FirstLane(const Vec& v) { return v.lane[0]; }

inline Vec Load(const float* p) {
  return Lanes([=](int i) { return p[i]; });
}
inline Vec Load(const std::uint16_t* p) {
  return Lanes([=](int i) { return F16ToFloat(p[i]); });
}
inline Vec LoadPart(const float* p, int count) {
  return Lanes([=](int i) { return i < count ? p[i] : 0.0f; });
}
inline void StorePart(float* p, int count, const Vec& v) {
  for (int i = 0; i < count; ++i) p[i] = v.lane[i];
}
inline void Store(float* p, const Vec& v) { StorePart(p, 16, v); }
inline void StoreWhere(float* p, std::uint32_t lanes, const Vec& v) {
  for (int i = 0; i < 16; ++i) p[i] = (lanes >> i & 1) != 0 ? v.lane[i] : p[i];
}

inline Vec Add(const Vec& a, const Vec& b) {
  return Lanes([&](int i) { return a.lane[i] + b.lane[i]; });
}
inline Vec Sub(const Vec& a, const Vec& b) {
  return Lanes([&](int i) { return a.lane[i] - b.lane[i]; });
}
inline Vec Mul(const Vec& a, const Vec& b) {
  return Lanes([&](int i) { return a.lane[i] * b.lane[i]; });
}
inline Vec Div(const Vec& a, const Vec& b) {
  return Lanes([&](int i) { return a.lane[i] / b.lane[i]; });
}
inline Vec Fma(const Vec& a, const Vec& b, const Vec& c) {
  return Lanes(
      [&](int i) { return std::fma(a.lane[i], b.lane[i], c.lane[i]); });
}
inline Vec Negate(const Vec& a) {
  return Lanes([&](int i) { return -a.lane[i]; });
}
inline Vec NegateEven(const Vec& a) {
  return Lanes([&](int i) { return i % 2 == 0 ? -a.lane[i] : a.lane[i]; });
}
inline Vec Max(const Vec& a, const Vec& b) {
  return Lanes(
      [&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
}
inline Vec First(const Vec& v, int count, float fill) {
  return Lanes([&](int i) { return i < count ? v.lane[i] : fill; });
}
inline Vec Below(const Vec& x, float bound, float then, const Vec& y) {
  return Lanes([&](int i) { return x.lane[i] < bound ? then : y.lane[i]; });
}
inline Vec Above(const Vec& x, float bound, float then, const Vec& y) {
  return Lanes([&](int i) { return x.lane[i] > bound ? then : y.lane[i]; });
}
inline Vec TimesTwoToThe(const Vec& y, const Vec& /*n*/, const Vec& shifted) {
  return Lanes([&](int i) {
    return y.lane[i] *
           std::bit_cast<float>(
               (std::bit_cast<std::uint32_t>(shifted.lane[i]) << 23) +
               0x3f800000u);
  });
}
inline Vec SwapPairs(const Vec& v) {
  return Lanes([&](int i) { return v.lane[i ^ 1]; });
}
inline Vec TwiceEach(const Vec& v) {
  return Lanes([&](int i) { return v.lane[i / 2]; });
}

inline float LaneSum(Vec v) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) v.lane[i] = v.lane[i] + v.lane[i + half];
  }
  return v.lane[0];
}
inline float LaneMax(Vec v) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      v.lane[i] = v.lane[i] > v.lane[i + half] ? v.lane[i] : v.lane[i + half];
    }
  }
  return v.lane[0];
}
inline Vec LaneSums(const Vec (&v)[16]) {
  return Lanes([&](int i) { return LaneSum(v[i]); });
}
inline Vec LaneMaxes(const Vec (&v)[16]) {
  return Lanes([&](int i) { return LaneMax(v[i]); });
}

struct Squares {
  double lane[16] = {};
  void Accumulate(const Vec& v) {
    for (int i = 0; i < 16; ++i) {
      const double x = v.lane[i];
      lane[i] += x * x;  // the product is exact, so this equals an fma
    }
  }
  double Sum() {
    for (int half = 8; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) lane[i] = lane[i] + lane[i + half];
    }
    return lane[0];
  }
};

inline int StoreHalf(const Vec& v, std::uint16_t* half) {
  int clipped = 0;
  for (int i = 0; i < 16; ++i) {
    const float x = v.lane[i];
    // A NaN passes both comparisons and stays one.
    const float low = x < -65504.0f ? -65504.0f : x;
    half[i] = FloatToF16(low > 65504.0f ? 65504.0f : low);
    clipped += std::fabs(x) > 65504.0f ? 1 : 0;
  }
  return clipped;
}

inline void Transpose(const std::uint16_t* from, std::uint16_t* to) {
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) to[j * 16 + i] = from[i * 16 + j];
  }
}

#include "core/kernels/rows.inc"

}  // namespace

RowKernels ScalarRowKernels() { return kTable; }

}  // namespace fucina
