// Row kernels for AVX2 with FMA and F16C: a vector of 16 is two registers.

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/kernels/row_tables.h"
#include "core/kernels/target.h"
#include "fucina/kernels/row_kernels.h"

#define FUCINA_UNROLL _Pragma("GCC unroll 8")

namespace fucina {

FUCINA_BEGIN_TARGET("avx2,fma,f16c")
namespace {

struct Vec {
  __m256 lo, hi;
};

// 16 registers: 6 queries x 1 vector take 12 for the sums, 2 for the vector
// and 1 for the broadcast; with 2 queries there is room for 2 vectors.
constexpr int kMostQueries = 6;
constexpr int ScoreVectors(int /*num_queries*/) { return 1; }
constexpr int ValueVectors(int num_queries) { return num_queries <= 2 ? 2 : 1; }

inline void Prefetch(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1);
}
inline void PrefetchToWrite(void* p) { __builtin_prefetch(p, 1, 3); }
inline Vec Splat(float x) {
  const __m256 v = _mm256_set1_ps(x);
  return {v, v};
}
inline Vec Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline float FirstLane(Vec v) { return _mm256_cvtss_f32(v.lo); }

inline Vec Load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
inline Vec Load(const std::uint16_t* p) {
  const auto* q = reinterpret_cast<const __m128i*>(p);
  return {_mm256_cvtph_ps(_mm_loadu_si128(q)),
          _mm256_cvtph_ps(_mm_loadu_si128(q + 1))};
}
inline void Store(float* p, Vec v) {
  _mm256_storeu_ps(p, v.lo);
  _mm256_storeu_ps(p + 8, v.hi);
}

// All ones in lanes below `count`, which may be negative or large.
inline __m256i MaskBelow(int count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline Vec LoadPart(const float* p, int count) {
  if (count == 16) return Load(p);
  return {_mm256_maskload_ps(p, MaskBelow(count)),
          _mm256_maskload_ps(p + 8, MaskBelow(count - 8))};
}
inline void StorePart(float* p, int count, Vec v) {
  if (count == 16) return Store(p, v);
  _mm256_maskstore_ps(p, MaskBelow(count), v.lo);
  _mm256_maskstore_ps(p + 8, MaskBelow(count - 8), v.hi);
}
inline void StoreWhere(float* p, std::uint32_t lanes, Vec v) {
  const __m256i all = _mm256_set1_epi32(static_cast<int>(lanes));
  const __m256i low = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i high = _mm256_slli_epi32(low, 8);
  _mm256_maskstore_ps(p, _mm256_cmpeq_epi32(_mm256_and_si256(all, low), low),
                      v.lo);
  _mm256_maskstore_ps(
      p + 8, _mm256_cmpeq_epi32(_mm256_and_si256(all, high), high), v.hi);
}

inline Vec Add(Vec a, Vec b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
inline Vec Sub(Vec a, Vec b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
inline Vec Mul(Vec a, Vec b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
inline Vec Div(Vec a, Vec b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
inline Vec Fma(Vec a, Vec b, Vec c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
inline Vec Negate(Vec a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_xor_ps(a.lo, sign), _mm256_xor_ps(a.hi, sign)};
}
inline Vec NegateEven(Vec a) {
  const __m256 sign = _mm256_setr_ps(-0.0f, 0, -0.0f, 0, -0.0f, 0, -0.0f, 0);
  return {_mm256_xor_ps(a.lo, sign), _mm256_xor_ps(a.hi, sign)};
}
inline Vec Max(Vec a, Vec b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
inline Vec First(Vec v, int count, float fill) {
  const __m256 f = _mm256_set1_ps(fill);
  return {_mm256_blendv_ps(f, v.lo, _mm256_castsi256_ps(MaskBelow(count))),
          _mm256_blendv_ps(f, v.hi, _mm256_castsi256_ps(MaskBelow(count - 8)))};
}
inline Vec Below(Vec x, float bound, float then, Vec y) {
  const __m256 b = _mm256_set1_ps(bound);
  const __m256 t = _mm256_set1_ps(then);
  return {_mm256_blendv_ps(y.lo, t, _mm256_cmp_ps(x.lo, b, _CMP_LT_OQ)),
          _mm256_blendv_ps(y.hi, t, _mm256_cmp_ps(x.hi, b, _CMP_LT_OQ))};
}
inline Vec Above(Vec x, float bound, float then, Vec y) {
  const __m256 b = _mm256_set1_ps(bound);
  const __m256 t = _mm256_set1_ps(then);
  return {_mm256_blendv_ps(y.lo, t, _mm256_cmp_ps(x.lo, b, _CMP_GT_OQ)),
          _mm256_blendv_ps(y.hi, t, _mm256_cmp_ps(x.hi, b, _CMP_GT_OQ))};
}
inline __m256 TwoToThe(__m256 shifted) {
  const __m256i bits = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
  return _mm256_castsi256_ps(
      _mm256_add_epi32(bits, _mm256_set1_epi32(0x3f800000)));
}
inline Vec TimesTwoToThe(Vec y, Vec /*n*/, Vec shifted) {
  return Mul(y, {TwoToThe(shifted.lo), TwoToThe(shifted.hi)});
}
inline Vec SwapPairs(Vec v) {
  return {_mm256_permute_ps(v.lo, 0xb1), _mm256_permute_ps(v.hi, 0xb1)};
}
inline Vec TwiceEach(Vec v) {
  const __m256 a = _mm256_unpacklo_ps(v.lo, v.lo);  // 0 0 1 1 | 4 4 5 5
  const __m256 b = _mm256_unpackhi_ps(v.lo, v.lo);  // 2 2 3 3 | 6 6 7 7
  return {_mm256_permute2f128_ps(a, b, 0x20),
          _mm256_permute2f128_ps(a, b, 0x31)};
}

// Lanes of 8 of 16 vectors combined by a tree that halves their number at each
// step.
template <__m256 (*op)(__m256, __m256)>
inline __m256 AcrossLanes(const Vec* v) {
  __m256 four[4];  // 4 lanes of v[2 i], then 4 of v[2 i + 1]
  FUCINA_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m256 a = op(v[2 * i].lo, v[2 * i].hi);
    const __m256 b = op(v[2 * i + 1].lo, v[2 * i + 1].hi);
    four[i] = op(_mm256_permute2f128_ps(a, b, 0x20),
                 _mm256_permute2f128_ps(a, b, 0x31));
  }
  __m256 two[2];  // a half j: 2 lanes of v[4 i + j], then 2 of v[4 i + 2 + j]
  FUCINA_UNROLL
  for (int i = 0; i < 2; ++i) {
    const __m256d a = _mm256_castps_pd(four[2 * i]);
    const __m256d b = _mm256_castps_pd(four[2 * i + 1]);
    two[i] = op(_mm256_castpd_ps(_mm256_unpacklo_pd(a, b)),
                _mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));
  }
  const __m256 one = op(_mm256_shuffle_ps(two[0], two[1], 0x88),
                        _mm256_shuffle_ps(two[0], two[1], 0xdd));
  // Half j holds j, 2 + j, 4 + j, 6 + j.
  return _mm256_permutevar8x32_ps(one,
                                  _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
inline __m256 AddHalf(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
inline __m256 MaxHalf(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }
inline Vec LaneSums(const Vec (&v)[16]) {
  return {AcrossLanes<AddHalf>(v), AcrossLanes<AddHalf>(v + 8)};
}
inline Vec LaneMaxes(const Vec (&v)[16]) {
  return {AcrossLanes<MaxHalf>(v), AcrossLanes<MaxHalf>(v + 8)};
}

struct Squares {
  __m256d sum[4];
  // Written out: GCC compiles an implicit constructor outside the region.
  Squares() { sum[0] = sum[1] = sum[2] = sum[3] = _mm256_setzero_pd(); }
  void Accumulate(Vec v) {
    const __m128 part[4] = {
        _mm256_castps256_ps128(v.lo), _mm256_extractf128_ps(v.lo, 1),
        _mm256_castps256_ps128(v.hi), _mm256_extractf128_ps(v.hi, 1)};
    FUCINA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const __m256d x = _mm256_cvtps_pd(part[i]);
      sum[i] = _mm256_fmadd_pd(x, x, sum[i]);
    }
  }
  double Sum() const {
    const __m256d four = _mm256_add_pd(_mm256_add_pd(sum[0], sum[2]),
                                       _mm256_add_pd(sum[1], sum[3]));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four),
                                   _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
};

#include "core/kernels/transpose_256.inc"

inline int StoreHalf(Vec v, std::uint16_t* half) {
  const __m256 most = _mm256_set1_ps(65504.0f);
  const __m256 least = _mm256_set1_ps(-65504.0f);
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  int clipped = 0;
  const __m256 part[2] = {v.lo, v.hi};
  FUCINA_UNROLL
  for (int i = 0; i < 2; ++i) {
    // With the bound first, minimum and maximum let a NaN through.
    const __m256 x = _mm256_min_ps(most, _mm256_max_ps(least, part[i]));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(half) + i,
                     _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
    clipped += __builtin_popcount(_mm256_movemask_ps(
        _mm256_cmp_ps(_mm256_and_ps(part[i], magnitude), most, _CMP_GT_OQ)));
  }
  return clipped;
}

#include "core/kernels/rows.inc"

}  // namespace
FUCINA_END_TARGET

RowKernels Avx2RowKernels() { return kTable; }

}  // namespace fucina

#endif  // defined(__x86_64__)
