#ifndef FUCINA_MODELS_RECIPE_BF16_PRODUCTS_H_
#define FUCINA_MODELS_RECIPE_BF16_PRODUCTS_H_

// Matrix products of bf16 values with f32 sums (AVX-512 BF16), and the packing
// that they read. Part of train_dense.cc.

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

typedef uint32_t
    u32;  // two bf16 that are neighbours along the summed dimension
typedef uint16_t bf;

static inline bf to_bf(float x) {
  u32 u;
  memcpy(&u, &x, 4);
  return bf((u + 0x7FFF + ((u >> 16) & 1)) >> 16);
}
static inline u32 pair(float lo, float hi) {
  return to_bf(lo) | u32(to_bf(hi)) << 16;
}

// C[MR x 32] (+)= A[MR x 2*k2] * B panel [k2][32]; A(i, k) at a[i*row + k*step]
template <int MR>
static inline void tile(const u32* a, long row, long step, const u32* b, int k2,
                        float* c, long ldc, bool add) {
  __m512 s[MR][2];
#pragma GCC unroll 16
  for (int i = 0; i < MR; i++) s[i][0] = s[i][1] = _mm512_setzero_ps();
  for (int k = 0; k < k2; k++) {
    __m512bh b0 = (__m512bh)_mm512_loadu_si512(b + k * 32),
             b1 = (__m512bh)_mm512_loadu_si512(b + k * 32 + 16);
    const u32* p = a + k * step;
#pragma GCC unroll 16
    for (int i = 0; i < MR; i++) {
      __m512bh v = (__m512bh)_mm512_set1_epi32(int(p[i * row]));
      s[i][0] = _mm512_dpbf16_ps(s[i][0], v, b0);
      s[i][1] = _mm512_dpbf16_ps(s[i][1], v, b1);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < MR; i++)
    for (int j = 0; j < 2; j++) {
      float* o = c + i * ldc + j * 16;
      _mm512_storeu_ps(
          o, add ? _mm512_add_ps(_mm512_loadu_ps(o), s[i][j]) : s[i][j]);
    }
}
static void tile_n(int m, const u32* a, long row, long step, const u32* b,
                   int k2, float* c, long ldc, bool add) {
  switch (m) {
#define T(n) \
  case n:    \
    return tile<n>(a, row, step, b, k2, c, ldc, add)
    T(1);
    T(2);
    T(3);
    T(4);
    T(5);
    T(6);
    T(7);
    T(8);
    T(9);
    T(10);
    T(11);
    T(12);
    T(13);
    T(14);
#undef T
  }
}
// B: panels [n/32][k2][32]
static void gemm(int m, int n, int k2, const u32* a, long row, long step,
                 const u32* b, float* c, long ldc, bool add) {
  for (int k0 = 0; k0 < k2; k0 += 384) {
    int kb = std::min(384, k2 - k0);
    for (int j = 0; j < n; j += 32)
      for (int i = 0; i < m; i += 14)
        tile_n(std::min(14, m - i), a + i * row + k0 * step, row, step,
               b + (long(j / 32) * k2 + k0) * 32, kb, c + i * ldc + j, ldc,
               add || k0);
  }
}
// panels for  y = x W^T  (sum over W's columns) and for  dx = dy W  (sum over
// W's rows); W is [n][k]
static void pack_fwd(const float* w, int n, int k, u32* out) {
  for (int j = 0; j < n; j++)
    for (int p = 0; p < k / 2; p++)
      out[(long(j / 32) * (k / 2) + p) * 32 + j % 32] =
          pair(w[long(j) * k + 2 * p], w[long(j) * k + 2 * p + 1]);
}
static void pack_bwd(const float* w, int n, int k, u32* out) {
  for (int p = 0; p < n / 2; p++)
    for (int j = 0; j < k; j++)
      out[(long(j / 32) * (n / 2) + p) * 32 + j % 32] =
          pair(w[long(2 * p) * k + j], w[long(2 * p + 1) * k + j]);
}
// rows of bf16 -> panels with the rows summed over (two rows interleaved)
static void pack_rows(const bf* x, int m, int k, u32* out) {
  for (int p = 0; p < m / 2; p++)
    for (int j = 0; j < k; j++)
      out[(long(j / 32) * (m / 2) + p) * 32 + j % 32] =
          x[long(2 * p) * k + j] | u32(x[long(2 * p + 1) * k + j]) << 16;
}
static void to_rows(const float* x, long n, bf* out) {
  for (long i = 0; i < n; i++) out[i] = to_bf(x[i]);
}
static void interleave(const bf* x, int m, int n, u32* out) {
  for (int p = 0; p < m / 2; p++)
    for (int j = 0; j < n; j++)
      out[long(p) * n + j] =
          x[long(2 * p) * n + j] | u32(x[long(2 * p + 1) * n + j]) << 16;
}

#endif  // FUCINA_MODELS_RECIPE_BF16_PRODUCTS_H_
