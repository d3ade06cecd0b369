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
// and 1 for the broadcast: 24 multiply-adds for 10 loads. One or two queries
// take 8 vectors, so that the sums are chains enough to hide the latency.
constexpr int kScoreVectors = 4;
constexpr int ValueVectors(int num_queries) { return num_queries <= 2 ? 8 : 4; }

inline void Prefetch(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
}
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
inline Vec TwoToThe(Vec shifted) {
  const __m512i bits = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
  return _mm512_castsi512_ps(
      _mm512_add_epi32(bits, _mm512_set1_epi32(0x3f800000)));
}
inline Vec SwapPairs(Vec v) { return _mm512_permute_ps(v, 0xb1); }
inline Vec TwiceEach(Vec v) {
  const __m512i index =
      _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  return _mm512_permutexvar_ps(index, v);
}

inline float LaneSum(Vec v) {
  const __m256 eight =
      _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight),
                                 _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float LaneMax(Vec v) {
  const __m256 eight =
      _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight),
                                 _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

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
