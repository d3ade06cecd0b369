// Products with 512-bit integer dot products: tiles of 32 rows of weights by 6
// rows of activations keep 12 integer and 12 float sums in registers.
#include <immintrin.h>

#include <cstring>

#include "core/kernels/panel_layout.h"
#include "core/kernels/tables.h"
#include "core/kernels/target.h"

#define FUCINA_KERNEL_VNNI 1

FUCINA_BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,f16c")
namespace fucina {
namespace {

// clang-format off
#include "core/kernels/vec_avx512.inc"
#include "core/kernels/linear_tiles.inc"
#include "core/kernels/linear_table.inc"
#include "core/kernels/linear_rows.inc"
// clang-format on

// One row's share of a block in a tile of `rows` rows.
FUCINA_KERNEL_INLINE void StoreWords(std::uint8_t* tile, int rows, int row,
                                     float dx, std::int32_t low,
                                     std::int32_t high) {
  const float scaled_sum = dx * static_cast<float>(low + high);
  const std::int32_t words[3] = {-(low + high), -low, -high};
  std::uint8_t* out = tile + rows * kBlockSize + row * 4;
  std::memcpy(out + kWordScale * rows * 4, &dx, 4);
  std::memcpy(out + kWordNegSum * rows * 4, &words[0], 4);
  std::memcpy(out + kWordNegSumLow * rows * 4, &words[1], 4);
  std::memcpy(out + kWordNegSumHigh * rows * 4, &words[2], 4);
  std::memcpy(out + kWordScaledSum * rows * 4, &scaled_sum, 4);
}

FUCINA_KERNEL_INLINE __m512i MaxOfTwo(const float* x) {
  const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
  return _mm512_max_epu32(
      _mm512_and_si512(_mm512_loadu_si512(x), magnitude),
      _mm512_and_si512(_mm512_loadu_si512(x + 16), magnitude));
}

FUCINA_KERNEL_INLINE __m256i Codes(const float* x, float inverse) {
  const __m512 factor = _mm512_set1_ps(inverse);
  const __m128i low = _mm512_cvtepi32_epi8(
      _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), factor)));
  const __m128i high = _mm512_cvtepi32_epi8(
      _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + 16), factor)));
  return _mm256_set_m128i(high, low);
}

void QuantizeBlock(const float* x, int rows, int row, std::uint8_t* tile) {
  const std::uint32_t amax_bits = _mm512_reduce_max_epu32(MaxOfTwo(x));
  float dx = 0;
  float inverse = 0;
  if (amax_bits >= kInfBits) {
    std::memcpy(&dx, &kNanBits, 4);
  } else if (amax_bits >= kTinyBits) {
    float amax;
    std::memcpy(&amax, &amax_bits, 4);
    dx = amax / 127.0F;
    inverse = 127.0F / amax;
  }
  // With a factor of zero every code is zero, that of an infinity or a NaN too:
  // its conversion has only the sign bit.
  const __m256i q = Codes(x, inverse);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(tile + row * kBlockSize), q);
  const __m256i sums =
      _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), q);
  const __m256i pairs = _mm256_hadd_epi32(sums, sums);
  const __m256i halves = _mm256_hadd_epi32(pairs, pairs);
  StoreWords(tile, rows, row, dx, _mm256_extract_epi32(halves, 0),
             _mm256_extract_epi32(halves, 4));
}

// Lane i is the maximum of v[i]. Each step merges two registers and halves the
// lanes that belong to one source.
FUCINA_KERNEL_INLINE __m512i MaxOfEach(const __m512i (&v)[16]) {
  __m512i pair[8];
  FUCINA_UNROLLED(8)
  for (int i = 0; i < 8; ++i) {
    pair[i] = _mm512_max_epu32(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]),
                               _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
  }
  __m512i four[4];
  FUCINA_UNROLLED(4)
  for (int i = 0; i < 4; ++i) {
    four[i] =
        _mm512_max_epu32(_mm512_unpacklo_epi64(pair[2 * i], pair[2 * i + 1]),
                         _mm512_unpackhi_epi64(pair[2 * i], pair[2 * i + 1]));
  }
  __m512i eight[2];
  FUCINA_UNROLLED(2)
  for (int i = 0; i < 2; ++i) {
    eight[i] = _mm512_max_epu32(
        _mm512_shuffle_i32x4(four[2 * i], four[2 * i + 1], 0x44),
        _mm512_shuffle_i32x4(four[2 * i], four[2 * i + 1], 0xEE));
  }
  return _mm512_max_epu32(_mm512_shuffle_i32x4(eight[0], eight[1], 0x88),
                          _mm512_shuffle_i32x4(eight[0], eight[1], 0xDD));
}

// Sums of 4 neighbouring lanes: lane 4 * g + i of the result is the sum of
// group g of v[i].
FUCINA_KERNEL_INLINE __m512i SumOfFours(const __m512i (&v)[4]) {
  const __m512i a = _mm512_add_epi32(_mm512_unpacklo_epi32(v[0], v[1]),
                                     _mm512_unpackhi_epi32(v[0], v[1]));
  const __m512i b = _mm512_add_epi32(_mm512_unpacklo_epi32(v[2], v[3]),
                                     _mm512_unpackhi_epi32(v[2], v[3]));
  return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b),
                          _mm512_unpackhi_epi64(a, b));
}

// 16 blocks at once: one division for all, and reductions that share their
// steps.
void QuantizeBlocks16(const float* x, int rows, int row, std::uint8_t* tile) {
  __m512i most[16];
  FUCINA_UNROLLED(16)
  for (int b = 0; b < 16; ++b) most[b] = MaxOfTwo(x + b * kBlockSize);
  const __m512i bits = MaxOfEach(most);
  const __m512 amax = _mm512_castsi512_ps(bits);
  const __mmask16 finite = _mm512_cmp_epu32_mask(
      bits, _mm512_set1_epi32(static_cast<int>(kInfBits)), _MM_CMPINT_LT);
  const __mmask16 counts = _mm512_mask_cmp_epu32_mask(
      finite, bits, _mm512_set1_epi32(static_cast<int>(kTinyBits)),
      _MM_CMPINT_NLT);
  const __m512 limit = _mm512_set1_ps(127.0F);
  alignas(64) float dx[16];
  alignas(64) float inverse[16];
  _mm512_store_ps(
      dx, _mm512_mask_mov_ps(_mm512_castsi512_ps(
                                 _mm512_set1_epi32(static_cast<int>(kNanBits))),
                             finite, _mm512_maskz_div_ps(counts, amax, limit)));
  _mm512_store_ps(inverse, _mm512_maskz_div_ps(counts, limit, amax));

  const std::int64_t step = std::int64_t{rows} * kActivationBlockBytes;
  const __m256i ones = _mm256_set1_epi8(1);
  const __m256i zero = _mm256_setzero_si256();
  // Of blocks 8 * i to 8 * i + 7: lane groups are the low halves of the even
  // blocks, their high halves, and the same of the odd ones.
  alignas(64) std::int32_t sums[2][4][4];
  FUCINA_UNROLLED(2)
  for (int i = 0; i < 2; ++i) {
    __m512i two[4];
    FUCINA_UNROLLED(4)
    for (int j = 0; j < 4; ++j) {
      const int b = 8 * i + 2 * j;
      const __m256i q0 = Codes(x + b * kBlockSize, inverse[b]);
      const __m256i q1 = Codes(x + (b + 1) * kBlockSize, inverse[b + 1]);
      std::uint8_t* const out = tile + b * step + row * kBlockSize;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), q0);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + step), q1);
      two[j] = _mm512_inserti64x4(
          _mm512_castsi256_si512(_mm256_dpbusd_epi32(zero, ones, q0)),
          _mm256_dpbusd_epi32(zero, ones, q1), 1);
    }
    _mm512_store_si512(sums[i], SumOfFours(two));
  }
  for (int b = 0; b < 16; ++b) {
    const auto& groups = sums[b / 8];
    StoreWords(tile + b * step, rows, row, dx[b], groups[b % 2 * 2][b % 8 / 2],
               groups[b % 2 * 2 + 1][b % 8 / 2]);
  }
}

void QuantizeRow(const float* x, std::int64_t k, int rows, int row,
                 std::uint8_t* tile) {
  const std::int64_t step = std::int64_t{rows} * kActivationBlockBytes;
  std::int64_t i = 0;
  for (; i + 16 * kBlockSize <= k; i += 16 * kBlockSize, tile += 16 * step) {
    QuantizeBlocks16(x + i, rows, row, tile);
  }
  for (; i < k; i += kBlockSize, tile += step) {
    QuantizeBlock(x + i, rows, row, tile);
  }
}

}  // namespace
}  // namespace fucina
FUCINA_END_TARGET

namespace fucina {

LinearKernels Avx512LinearKernels() {
  LinearKernels kernels;
  kernels.int_tile_rows = 6;
  kernels.float_tile_rows = 12;
  kernels.direct_rows = 4;
  FillFormats<0, 6, 4, 12>(kernels);
  kernels.quantize_row = &QuantizeRow;
  kernels.add_dot_rows = &AddDotRows;
  kernels.add_scaled = &AddScaled;
  return kernels;
}

}  // namespace fucina
