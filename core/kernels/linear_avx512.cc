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
// clang-format on

void QuantizeRow(const float* x, std::int64_t k, int rows, int row,
                 std::uint8_t* tile) {
  const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
  const __m512i ones = _mm512_set1_epi8(1);
  for (std::int64_t i = 0; i < k;
       i += kBlockSize, tile += rows * kActivationBlockBytes) {
    const __m512 x0 = _mm512_loadu_ps(x + i);
    const __m512 x1 = _mm512_loadu_ps(x + i + 16);
    const std::uint32_t amax_bits = _mm512_reduce_max_epu32(
        _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(x0), magnitude),
                         _mm512_and_si512(_mm512_castps_si512(x1), magnitude)));
    __m128i q0 = _mm_setzero_si128();
    __m128i q1 = _mm_setzero_si128();
    std::uint32_t dx_bits = amax_bits >= kInfBits ? kNanBits : 0;
    if (amax_bits >= kTinyBits && amax_bits < kInfBits) {
      float amax;
      std::memcpy(&amax, &amax_bits, 4);
      const float dx = amax / 127.0F;
      const __m512 inverse = _mm512_set1_ps(127.0F / amax);
      std::memcpy(&dx_bits, &dx, 4);
      q0 = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(x0, inverse)));
      q1 = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(x1, inverse)));
    }
    std::uint8_t* codes = tile + row * kBlockSize;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), q0);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + 16), q1);
    const __m128i sums0 =
        _mm_dpbusd_epi32(_mm_setzero_si128(), _mm512_castsi512_si128(ones), q0);
    const __m128i sums1 =
        _mm_dpbusd_epi32(_mm_setzero_si128(), _mm512_castsi512_si128(ones), q1);
    const __m128i pairs = _mm_hadd_epi32(sums0, sums1);
    const __m128i halves = _mm_hadd_epi32(pairs, pairs);
    const std::int32_t low = _mm_cvtsi128_si32(halves);
    const std::int32_t high = _mm_extract_epi32(halves, 1);
    float dx;
    std::memcpy(&dx, &dx_bits, 4);
    const float scaled_sum = dx * static_cast<float>(low + high);
    const std::int32_t words[3] = {-(low + high), -low, -high};
    std::uint8_t* out = tile + rows * kBlockSize + row * 4;
    std::memcpy(out + kWordScale * rows * 4, &dx_bits, 4);
    std::memcpy(out + kWordNegSum * rows * 4, &words[0], 4);
    std::memcpy(out + kWordNegSumLow * rows * 4, &words[1], 4);
    std::memcpy(out + kWordNegSumHigh * rows * 4, &words[2], 4);
    std::memcpy(out + kWordScaledSum * rows * 4, &scaled_sum, 4);
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
