#ifndef FUCINA_TENSOR_BLOCKS_H_
#define FUCINA_TENSOR_BLOCKS_H_

// Quantised blocks exactly as they lie in GGUF files, little-endian. No
// arithmetic here: kernels/quantize.h turns blocks into floats and back.
//
// Every multi-byte field is two-byte aligned at best inside a row (blocks are
// 18, 34, 66, 110 or 210 bytes long), and a row in a mapped file may start at
// any even address. Fields wider than two bytes are therefore byte arrays, to
// be read with memcpy. MXFP4 blocks have 17 bytes and no alignment at all.
//
// An `_f16` field holds the bits of an IEEE binary16 number.
// Source: the block layouts of ggml's GGUF types.

#include <cstddef>
#include <cstdint>

namespace fucina {

// Elements per block of the small formats.
inline constexpr int kBlock32 = 32;
// Elements per block of the K, IQ (but IQ4_NL) and ternary formats.
inline constexpr int kBlock256 = 256;

// --------------------------------------------------------- 32-element formats
// Nibbles: the low half of qs[j] is element j, the high half element j + 16.

// y = (q - 8) * d
struct BlockQ4_0 {
  std::uint16_t d_f16;
  std::uint8_t qs[16];
};
static_assert(sizeof(BlockQ4_0) == 18);

// y = q * d + m
struct BlockQ4_1 {
  std::uint16_t d_f16;
  std::uint16_t m_f16;
  std::uint8_t qs[16];
};
static_assert(sizeof(BlockQ4_1) == 20);

// y = (q - 16) * d; bit j of qh is the fifth bit of element j.
struct BlockQ5_0 {
  std::uint16_t d_f16;
  std::uint8_t qh[4];
  std::uint8_t qs[16];
};
static_assert(sizeof(BlockQ5_0) == 22);

// y = q * d + m; qh as in Q5_0.
struct BlockQ5_1 {
  std::uint16_t d_f16;
  std::uint16_t m_f16;
  std::uint8_t qh[4];
  std::uint8_t qs[16];
};
static_assert(sizeof(BlockQ5_1) == 24);

// y = q * d. Foreign files may hold q = -128, our encoder never writes it.
struct BlockQ8_0 {
  std::uint16_t d_f16;
  std::int8_t qs[32];
};
static_assert(sizeof(BlockQ8_0) == 34);

// Activations only: Q8_0 with s = d * sum(q), the sum taken before rounding d.
struct BlockQ8_1 {
  std::uint16_t d_f16;
  std::uint16_t s_f16;
  std::int8_t qs[32];
};
static_assert(sizeof(BlockQ8_1) == 36);

// y = d * kIq4Values[q]
struct BlockIQ4_NL {
  std::uint16_t d_f16;
  std::uint8_t qs[16];
};
static_assert(sizeof(BlockIQ4_NL) == 18);

// y = kMxfp4Values[q] * 2^(e - 128); e is an E8M0 exponent, 255 means NaN.
struct BlockMXFP4 {
  std::uint8_t e;
  std::uint8_t qs[16];
};
static_assert(sizeof(BlockMXFP4) == 17);

// ------------------------------------------------------------------ K formats

// 16 sub-blocks of 16: scales[b] has the scale below and the minimum above.
struct BlockQ2_K {
  std::uint8_t scales[16];
  std::uint8_t qs[64];
  std::uint16_t d_f16;
  std::uint16_t dmin_f16;
};
static_assert(sizeof(BlockQ2_K) == 84);

// 16 sub-blocks of 16, six-bit scales; a clear bit of hmask subtracts four.
struct BlockQ3_K {
  std::uint8_t hmask[32];
  std::uint8_t qs[64];
  std::uint8_t scales[12];
  std::uint16_t d_f16;
};
static_assert(sizeof(BlockQ3_K) == 110);

// 8 sub-blocks of 32, six-bit scales and minima packed in 12 bytes.
struct BlockQ4_K {
  std::uint16_t d_f16;
  std::uint16_t dmin_f16;
  std::uint8_t scales[12];
  std::uint8_t qs[128];
};
static_assert(sizeof(BlockQ4_K) == 144);

// Q4_K with bit g of qh[l] as the fifth bit of element 32 g + l.
struct BlockQ5_K {
  std::uint16_t d_f16;
  std::uint16_t dmin_f16;
  std::uint8_t scales[12];
  std::uint8_t qh[32];
  std::uint8_t qs[128];
};
static_assert(sizeof(BlockQ5_K) == 176);

// 16 sub-blocks of 16 with signed eight-bit scales.
struct BlockQ6_K {
  std::uint8_t ql[128];
  std::uint8_t qh[64];
  std::int8_t scales[16];
  std::uint16_t d_f16;
};
static_assert(sizeof(BlockQ6_K) == 210);

// Activations only. bsums[b] is the sum of the 16 codes of sub-block b; d is
// often negative. Rows of it live in our own buffers, four-byte aligned.
struct BlockQ8_K {
  float d;
  std::int8_t qs[256];
  std::int16_t bsums[16];
};
static_assert(sizeof(BlockQ8_K) == 292);

// ----------------------------------------------------------------- IQ formats

// 8 sub-blocks of 32, six-bit scales; values as in IQ4_NL.
struct BlockIQ4_XS {
  std::uint16_t d_f16;
  std::uint16_t scales_h;
  std::uint8_t scales_l[4];
  std::uint8_t qs[128];
};
static_assert(sizeof(BlockIQ4_XS) == 136);

// Per 32 elements eight bytes: four grid indices, then four seven-bit sign
// codes and a four-bit scale in one little-endian word.
struct BlockIQ2_XXS {
  std::uint16_t d_f16;
  std::uint8_t qs[64];
};
static_assert(sizeof(BlockIQ2_XXS) == 66);

// Per eight elements a nine-bit grid index and a seven-bit sign code.
struct BlockIQ2_XS {
  std::uint16_t d_f16;
  std::uint16_t qs[32];
  std::uint8_t scales[8];
};
static_assert(sizeof(BlockIQ2_XS) == 74);

struct BlockIQ2_S {
  std::uint16_t d_f16;
  std::uint8_t qs[32];
  std::uint8_t signs[32];
  std::uint8_t qh[8];
  std::uint8_t scales[8];
};
static_assert(sizeof(BlockIQ2_S) == 82);

// scales_and_signs: eight little-endian words, one per 32 elements.
struct BlockIQ3_XXS {
  std::uint16_t d_f16;
  std::uint8_t qs[64];
  std::uint8_t scales_and_signs[32];
};
static_assert(sizeof(BlockIQ3_XXS) == 98);

struct BlockIQ3_S {
  std::uint16_t d_f16;
  std::uint8_t qs[64];
  std::uint8_t qh[8];
  std::uint8_t signs[32];
  std::uint8_t scales[4];
};
static_assert(sizeof(BlockIQ3_S) == 110);

struct BlockIQ1_S {
  std::uint16_t d_f16;
  std::uint8_t qs[32];
  std::uint16_t qh[8];
};
static_assert(sizeof(BlockIQ1_S) == 50);

// The block's scale is spread over the top nibbles of `scales`.
struct BlockIQ1_M {
  std::uint8_t qs[32];
  std::uint8_t qh[16];
  std::uint16_t scales[4];
};
static_assert(sizeof(BlockIQ1_M) == 56);

// -------------------------------------------------------------------- ternary

// Five trits to a byte as a fraction of 243.
struct BlockTQ1_0 {
  std::uint8_t qs[48];
  std::uint8_t qh[4];
  std::uint16_t d_f16;
};
static_assert(sizeof(BlockTQ1_0) == 54);

struct BlockTQ2_0 {
  std::uint8_t qs[64];
  std::uint16_t d_f16;
};
static_assert(sizeof(BlockTQ2_0) == 66);

// --------------------------------------------------------------- value tables

// What the four-bit codes of IQ4_NL and IQ4_XS stand for.
inline constexpr std::int8_t kIq4Values[16] = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// Twice the e2m1 values, so that they are whole numbers.
inline constexpr std::int8_t kMxfp4Values[16] = {
    0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace fucina

#endif  // FUCINA_TENSOR_BLOCKS_H_
