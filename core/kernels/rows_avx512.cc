// Row kernels for AVX-512 (F, BW, DQ, VL).

#if defined(__x86_64__)

// GCC 12 takes the deliberately undefined operands of its own intrinsics for
// mistakes (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

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

FUCINA_BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")
namespace {

using Vec = __m512;

// 32 registers: 6 queries x 4 vectors take 24 for the sums, 4 for the vectors
// and 1 for the broadcast: 24 multiply-adds for 10 loads. 8 queries x 2 vectors
// take less, but read and convert everything once where 6 and then 2 would do
// so twice. One or two queries take 8 vectors of values, so that the sums are
// chains enough to hide the latency.
constexpr int kMostQueries = 8;
constexpr int ScoreVectors(int num_queries) { return num_queries <= 6 ? 4 : 2; }
constexpr int ValueVectors(int num_queries) {
  return num_queries <= 2 ? 8 : num_queries <= 6 ? 4 : 2;
}

inline void Prefetch(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1);
}
inline void PrefetchToWrite(void* p) { __builtin_prefetch(p, 1, 3); }
inline Vec Splat(float x) { return _mm512_set1_ps(x); }
inline Vec Zero() { return _mm512_setzero_ps(); }
inline float FirstLane(Vec v) { return _mm512_cvtss_f32(v); }

inline Vec Load(const float* p) { return _mm512_loadu_ps(p); }
inline Vec Load(const std::uint16_t* p) {
  return _mm512_maskz_cvtph_ps(
      0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline void Store(float* p, Vec v) { _mm512_storeu_ps(p, v); }

// One bit per lane below `count`, which may be negative or large.
inline __mmask16 MaskBelow(int count) {
  return count <= 0    ? __mmask16{0}
         : count >= 16 ? __mmask16{0xffff}
                       : static_cast<__mmask16>((1u << count) - 1u);
}
inline Vec LoadPart(const float* p, int count) {
  return _mm512_maskz_loadu_ps(MaskBelow(count), p);
}
inline void StorePart(float* p, int count, Vec v) {
  _mm512_mask_storeu_ps(p, MaskBelow(count), v);
}
inline void StoreWhere(float* p, std::uint32_t lanes, Vec v) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>(lanes), v);
}

inline Vec Add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
inline Vec Sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
inline Vec Mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
inline Vec Div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
inline Vec Fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
inline Vec Negate(Vec a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
inline Vec NegateEven(Vec a) {
  return _mm512_mask_xor_ps(a, 0x5555, a, _mm512_set1_ps(-0.0f));
}
inline Vec Max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
inline Vec First(Vec v, int count, float fill) {
  return _mm512_mask_mov_ps(_mm512_set1_ps(fill), MaskBelow(count), v);
}
inline Vec Below(Vec x, float bound, float then, Vec y) {
  return _mm512_mask_mov_ps(
      y, _mm512_cmp_ps_mask(x, _mm512_set1_ps(bound), _CMP_LT_OQ),
      _mm512_set1_ps(then));
}
inline Vec Above(Vec x, float bound, float then, Vec y) {
  return _mm512_mask_mov_ps(
      y, _mm512_cmp_ps_mask(x, _mm512_set1_ps(bound), _CMP_GT_OQ),
      _mm512_set1_ps(then));
}
inline Vec TimesTwoToThe(Vec y, Vec n, Vec /*shifted*/) {
  return _mm512_scalef_ps(y, n);
}
inline Vec SwapPairs(Vec v) { return _mm512_permute_ps(v, 0xb1); }
inline Vec TwiceEach(Vec v) {
  const __m512i index =
      _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  return _mm512_permutexvar_ps(index, v);
}

// Lanes of 16 vectors combined by a tree that halves their number at each step.
template <Vec (*op)(Vec, Vec)>
inline Vec AcrossLanes(const Vec (&v)[16]) {
  // Lanes 0-7 of an eight: 8 lanes of v[2 i], then 8 of v[2 i + 1].
  Vec eight[8];
  FUCINA_UNROLL
  for (int i = 0; i < 8; ++i) {
    const Vec a = v[2 * i];
    const Vec b = v[2 * i + 1];
    eight[i] =
        op(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  }
  Vec four[4];  // 4 lanes each of v[4 i] to v[4 i + 3]
  FUCINA_UNROLL
  for (int i = 0; i < 4; ++i) {
    const Vec a = eight[2 * i];
    const Vec b = eight[2 * i + 1];
    four[i] =
        op(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  }
  Vec two[2];  // a quarter j: 2 lanes of v[8 i + j], then 2 of v[8 i + 4 + j]
  FUCINA_UNROLL
  for (int i = 0; i < 2; ++i) {
    const __m512d a = _mm512_castps_pd(four[2 * i]);
    const __m512d b = _mm512_castps_pd(four[2 * i + 1]);
    two[i] = op(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  }
  const Vec one = op(_mm512_shuffle_ps(two[0], two[1], 0x88),
                     _mm512_shuffle_ps(two[0], two[1], 0xdd));
  // Quarter j holds j, 4 + j, 8 + j, 12 + j.
  return _mm512_permutexvar_ps(
      _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
      one);
}
inline Vec LaneSums(const Vec (&v)[16]) { return AcrossLanes<Add>(v); }
inline Vec LaneMaxes(const Vec (&v)[16]) { return AcrossLanes<Max>(v); }

struct Squares {
  __m512d low, high;
  // Written out: GCC compiles an implicit constructor outside the region.
  Squares() { low = high = _mm512_setzero_pd(); }
  void Accumulate(Vec v) {
    const __m512d a = _mm512_cvtps_pd(_mm512_castps512_ps256(v));
    const __m512d b = _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
    low = _mm512_fmadd_pd(a, a, low);
    high = _mm512_fmadd_pd(b, b, high);
  }
  double Sum() const {
    const __m512d eight = _mm512_add_pd(low, high);
    const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight),
                                       _mm512_extractf64x4_pd(eight, 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four),
                                   _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
};

#include "core/kernels/transpose_256.inc"

inline int StoreHalf(Vec v, std::uint16_t* half) {
  const __m512 most = _mm512_set1_ps(65504.0f);
  // With the bound first, minimum and maximum let a NaN through.
  const __m512 x =
      _mm512_min_ps(most, _mm512_max_ps(_mm512_set1_ps(-65504.0f), v));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(half),
                      _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  return __builtin_popcount(
      _mm512_cmp_ps_mask(_mm512_abs_ps(v), most, _CMP_GT_OQ));
}

#include "core/kernels/rows.inc"

}  // namespace
FUCINA_END_TARGET

RowKernels Avx512RowKernels() { return kTable; }

}  // namespace fucina

#endif  // defined(__x86_64__)
