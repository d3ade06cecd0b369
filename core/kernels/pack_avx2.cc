// Packing with 256-bit vectors; the same bytes as pack.cc. A panel is sixteen
// rows' codes with their groups of four turned into columns: two transposes of
// 8 x 8 words, after which the bits of a line are put together as in
// panel_layout.h.
#include <immintrin.h>

#include <cstddef>
#include <cstring>

#include "core/kernels/block_codec.h"
#include "core/kernels/pack_tables.h"
#include "core/kernels/panel_layout.h"
#include "core/kernels/target.h"
#include "fucina/kernels/f16.h"
#include "fucina/tensor/blocks.h"

FUCINA_BEGIN_TARGET("avx2")

namespace fucina {
namespace {

constexpr std::uint16_t kF16Sign = 0x8000;

FUCINA_KERNEL_INLINE __m256i Load32(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

FUCINA_KERNEL_INLINE __m128i Load16(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}

FUCINA_KERNEL_INLINE std::uint16_t LoadU16(const std::uint8_t* p) {
  std::uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// A block where it lies in the file, at any address: a name for its type, its
// bytes are loaded one field at a time.
template <typename Block>
struct InFile {
  const std::uint8_t* p;
};

FUCINA_KERNEL_INLINE void Store32(std::uint8_t* p, __m256i v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
}

// Word j of row i becomes word i of row j.
FUCINA_KERNEL_INLINE void TransposeWords(const __m256i (&in)[8],
                                         __m256i (&out)[8]) {
  __m256i pairs[8];
  FUCINA_UNROLLED(4)
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = _mm256_unpacklo_epi32(in[2 * i], in[2 * i + 1]);
    pairs[2 * i + 1] = _mm256_unpackhi_epi32(in[2 * i], in[2 * i + 1]);
  }
  __m256i quads[8];  // [4 h + c]: column c of rows 4 h .. 4 h + 3, per lane
  FUCINA_UNROLLED(2)
  for (int h = 0; h < 2; ++h) {
    quads[4 * h] = _mm256_unpacklo_epi64(pairs[4 * h], pairs[4 * h + 2]);
    quads[4 * h + 1] = _mm256_unpackhi_epi64(pairs[4 * h], pairs[4 * h + 2]);
    quads[4 * h + 2] =
        _mm256_unpacklo_epi64(pairs[4 * h + 1], pairs[4 * h + 3]);
    quads[4 * h + 3] =
        _mm256_unpackhi_epi64(pairs[4 * h + 1], pairs[4 * h + 3]);
  }
  FUCINA_UNROLLED(4)
  for (int c = 0; c < 4; ++c) {
    out[c] = _mm256_permute2x128_si256(quads[c], quads[4 + c], 0x20);
    out[4 + c] = _mm256_permute2x128_si256(quads[c], quads[4 + c], 0x31);
  }
}

FUCINA_KERNEL_INLINE __m256i And(__m256i v, int byte) {
  return _mm256_and_si256(v, _mm256_set1_epi8(static_cast<char>(byte)));
}

// 32 codes of one row from 16 bytes: the low halves, then the high ones.
FUCINA_KERNEL_INLINE __m256i SplitNibbles(const std::uint8_t* qs) {
  const __m128i bytes = Load16(qs);
  return And(_mm256_set_m128i(_mm_srli_epi16(bytes, 4), bytes), 15);
}

// 16 where bit j of `qh` is set, for element j.
FUCINA_KERNEL_INLINE __m256i FifthBits(const std::uint8_t* qh) {
  const __m256i word = _mm256_set1_epi32(static_cast<int>(LoadU32(qh)));
  const __m256i bytes = _mm256_shuffle_epi8(
      word, _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202,
                               0x0303030303030303));
  const __m256i bit =
      _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
  const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
  return And(set, 16);
}

// Half `b % 2` of the bytes that blocks b and b ^ 1 of 32 share.
FUCINA_KERNEL_INLINE __m256i RunNibbles(const std::uint8_t* qs, int b) {
  return And(_mm256_srli_epi16(Load32(qs + 32 * (b / 2)), 4 * (b % 2)), 15);
}

// Codes(block, b): the 32 codes of block b of 32 in a block of the file.

FUCINA_KERNEL_INLINE __m256i Codes(InFile<BlockQ8_0> block, int) {
  return _mm256_xor_si256(Load32(block.p + offsetof(BlockQ8_0, qs)),
                          _mm256_set1_epi8(static_cast<char>(0x80)));
}
FUCINA_KERNEL_INLINE __m256i Codes(InFile<BlockQ4_0> block, int) {
  return SplitNibbles(block.p + offsetof(BlockQ4_0, qs));
}
FUCINA_KERNEL_INLINE __m256i Codes(InFile<BlockQ4_1> block, int) {
  return SplitNibbles(block.p + offsetof(BlockQ4_1, qs));
}
FUCINA_KERNEL_INLINE __m256i Codes(InFile<BlockIQ4_NL> block, int) {
  return SplitNibbles(block.p + offsetof(BlockIQ4_NL, qs));
}
FUCINA_KERNEL_INLINE __m256i Codes(InFile<BlockMXFP4> block, int) {
  return SplitNibbles(block.p + offsetof(BlockMXFP4, qs));
}
FUCINA_KERNEL_INLINE __m256i Codes(InFile<BlockQ5_0> block, int) {
  return _mm256_or_si256(SplitNibbles(block.p + offsetof(BlockQ5_0, qs)),
                         FifthBits(block.p + offsetof(BlockQ5_0, qh)));
}
FUCINA_KERNEL_INLINE __m256i Codes(InFile<BlockQ5_1> block, int) {
  return _mm256_or_si256(SplitNibbles(block.p + offsetof(BlockQ5_1, qs)),
                         FifthBits(block.p + offsetof(BlockQ5_1, qh)));
}
FUCINA_KERNEL_INLINE __m256i Codes(InFile<BlockQ2_K> block, int b) {
  return And(_mm256_srli_epi16(
                 Load32(block.p + offsetof(BlockQ2_K, qs) + 32 * (b / 4)),
                 2 * (b % 4)),
             3);
}
FUCINA_KERNEL_INLINE __m256i Codes(InFile<BlockQ3_K> block, int b) {
  const __m256i low =
      And(_mm256_srli_epi16(
              Load32(block.p + offsetof(BlockQ3_K, qs) + 32 * (b / 4)),
              2 * (b % 4)),
          3);
  const __m256i high = And(
      _mm256_srli_epi16(Load32(block.p + offsetof(BlockQ3_K, hmask)), b), 1);
  return _mm256_or_si256(low, _mm256_slli_epi16(high, 2));
}
FUCINA_KERNEL_INLINE __m256i Codes(InFile<BlockQ4_K> block, int b) {
  return RunNibbles(block.p + offsetof(BlockQ4_K, qs), b);
}
FUCINA_KERNEL_INLINE __m256i Codes(InFile<BlockQ5_K> block, int b) {
  const __m256i high =
      And(_mm256_srli_epi16(Load32(block.p + offsetof(BlockQ5_K, qh)), b), 1);
  return _mm256_or_si256(RunNibbles(block.p + offsetof(BlockQ5_K, qs), b),
                         _mm256_slli_epi16(high, 4));
}
FUCINA_KERNEL_INLINE __m256i Codes(InFile<BlockQ6_K> block, int b) {
  const __m256i low =
      And(_mm256_srli_epi16(Load32(block.p + offsetof(BlockQ6_K, ql) +
                                   64 * (b / 4) + 32 * (b % 2)),
                            b % 4 / 2 * 4),
          15);
  const __m256i high =
      And(_mm256_srli_epi16(
              Load32(block.p + offsetof(BlockQ6_K, qh) + 32 * (b / 4)),
              2 * (b % 4)),
          3);
  return _mm256_or_si256(low, _mm256_slli_epi16(high, 4));
}
FUCINA_KERNEL_INLINE __m256i Codes(InFile<BlockIQ4_XS> block, int b) {
  return SplitNibbles(block.p + offsetof(BlockIQ4_XS, qs) + 16 * b);
}

// Codes of eight rows, transposed, as half lines: 32 bytes of each.
template <int kBits>
FUCINA_KERNEL_INLINE void PutHalfLines(const __m256i (&groups)[8],
                                       std::uint8_t* panel) {
  if constexpr (kBits == 8) {
    FUCINA_UNROLLED(8)
    for (int g = 0; g < 8; ++g) Store32(panel + 64 * g, groups[g]);
    return;
  }
  // What is shifted here never leaves its byte, so shifts of words will do.
  FUCINA_UNROLLED(2)
  for (int half = 0; half < 2; ++half) {
    __m256i low[4];
    FUCINA_UNROLLED(4)
    for (int q = 0; q < 4; ++q) {
      low[q] = kBits > 4 ? And(groups[4 * half + q], 15) : groups[4 * half + q];
    }
    Store32(panel + 128 * half,
            _mm256_or_si256(low[0], _mm256_slli_epi16(low[2], 4)));
    Store32(panel + 128 * half + 64,
            _mm256_or_si256(low[1], _mm256_slli_epi16(low[3], 4)));
  }
  if constexpr (kBits == 5) {
    __m256i fifth = _mm256_setzero_si256();
    FUCINA_UNROLLED(8)
    for (int g = 0; g < 8; ++g) {
      const __m256i bit = And(_mm256_srli_epi16(groups[g], 4), 1);
      fifth = _mm256_or_si256(fifth, _mm256_slli_epi16(bit, g));
    }
    Store32(panel + 256, fifth);
  }
  if constexpr (kBits == 6) {
    FUCINA_UNROLLED(2)
    for (int half = 0; half < 2; ++half) {
      __m256i upper = _mm256_setzero_si256();
      FUCINA_UNROLLED(4)
      for (int q = 0; q < 4; ++q) {
        const __m256i bits = And(_mm256_srli_epi16(groups[4 * half + q], 4), 3);
        upper = _mm256_or_si256(upper, _mm256_slli_epi16(bits, 2 * q));
      }
      Store32(panel + 256 + 64 * half, upper);
    }
  }
}

// Byte i of row r becomes byte r of line i, for 32 rows of 16 bytes.
FUCINA_KERNEL_INLINE void TransposeBytes(const __m128i (&rows)[32],
                                         __m256i (&lines)[16]) {
  // Each step puts rows next to each other that are half as far apart; rows 16
  // and up are the upper lanes throughout.
  __m256i a[16];
  FUCINA_UNROLLED(16)
  for (int i = 0; i < 16; ++i) a[i] = _mm256_set_m128i(rows[16 + i], rows[i]);
  FUCINA_UNROLLED(4)
  for (int step = 0; step < 4; ++step) {
    __m256i b[16];
    FUCINA_UNROLLED(8)
    for (int i = 0; i < 8; ++i) {
      b[2 * i] = _mm256_unpacklo_epi8(a[i], a[i + 8]);
      b[2 * i + 1] = _mm256_unpackhi_epi8(a[i], a[i + 8]);
    }
    FUCINA_UNROLLED(16)
    for (int i = 0; i < 16; ++i) a[i] = b[i];
  }
  FUCINA_UNROLLED(16)
  for (int i = 0; i < 16; ++i) lines[i] = a[i];
}

// Scales(block): the bytes of the scales of a block of 256; of those with eight
// scales and minima, the scales and then the minima.

FUCINA_KERNEL_INLINE __m128i ScaleMinBytes(const std::uint8_t* scales) {
  const std::uint32_t a = LoadU32(scales);
  const std::uint32_t b = LoadU32(scales + 4);
  const std::uint32_t c = LoadU32(scales + 8);
  return _mm_setr_epi32(
      static_cast<int>(a & 0x3F3F3F3FU),
      static_cast<int>((c & 0x0F0F0F0FU) | ((a >> 6) & 0x03030303U) << 4),
      static_cast<int>(b & 0x3F3F3F3FU),
      static_cast<int>(((c >> 4) & 0x0F0F0F0FU) | ((b >> 6) & 0x03030303U)
                                                      << 4));
}
FUCINA_KERNEL_INLINE __m128i Scales(InFile<BlockQ4_K> block) {
  return ScaleMinBytes(block.p + offsetof(BlockQ4_K, scales));
}
FUCINA_KERNEL_INLINE __m128i Scales(InFile<BlockQ5_K> block) {
  return ScaleMinBytes(block.p + offsetof(BlockQ5_K, scales));
}
FUCINA_KERNEL_INLINE __m128i Scales(InFile<BlockQ6_K> block) {
  return Load16(block.p + offsetof(BlockQ6_K, scales));
}
FUCINA_KERNEL_INLINE __m128i Scales(InFile<BlockQ2_K> block) {
  return _mm_and_si128(Load16(block.p + offsetof(BlockQ2_K, scales)),
                       _mm_set1_epi8(15));
}
FUCINA_KERNEL_INLINE __m128i Minima(InFile<BlockQ2_K> block) {
  return _mm_and_si128(
      _mm_srli_epi16(Load16(block.p + offsetof(BlockQ2_K, scales)), 4),
      _mm_set1_epi8(15));
}
FUCINA_KERNEL_INLINE __m128i Scales(InFile<BlockQ3_K> block) {
  const std::uint32_t a = LoadU32(block.p + offsetof(BlockQ3_K, scales));
  const std::uint32_t b = LoadU32(block.p + offsetof(BlockQ3_K, scales) + 4);
  const std::uint32_t c = LoadU32(block.p + offsetof(BlockQ3_K, scales) + 8);
  const __m128i low = _mm_setr_epi32(static_cast<int>(a & 0x0F0F0F0FU),
                                     static_cast<int>(b & 0x0F0F0F0FU),
                                     static_cast<int>((a >> 4) & 0x0F0F0F0FU),
                                     static_cast<int>((b >> 4) & 0x0F0F0F0FU));
  const __m128i high =
      _mm_setr_epi32(static_cast<int>((c & 0x03030303U) << 4),
                     static_cast<int>(((c >> 2) & 0x03030303U) << 4),
                     static_cast<int>(((c >> 4) & 0x03030303U) << 4),
                     static_cast<int>(((c >> 6) & 0x03030303U) << 4));
  return _mm_sub_epi8(_mm_or_si128(low, high), _mm_set1_epi8(32));
}
FUCINA_KERNEL_INLINE __m128i Scales(InFile<BlockIQ4_XS> block) {
  const std::uint8_t* low_bits = block.p + offsetof(BlockIQ4_XS, scales_l);
  const int high_bits = LoadU16(block.p + offsetof(BlockIQ4_XS, scales_h));
  std::uint8_t bytes[16] = {};
  for (int g = 0; g < 8; ++g) {
    const int low = (low_bits[g / 2] >> (4 * (g % 2))) & 15;
    const int scale = low | ((high_bits >> (2 * g)) & 3) << 4;
    bytes[g] = static_cast<std::uint8_t>(scale - 32);
  }
  return Load16(bytes);
}

template <typename T>
FUCINA_KERNEL_INLINE void Put(std::uint8_t* base, int index, T value) {
  std::memcpy(base + index * static_cast<int>(sizeof value), &value,
              sizeof value);
}

template <PanelFormat kFormat, typename Block>
void PackBlocks(const void* const* rows, std::int64_t k, std::uint8_t* strip) {
  constexpr PanelLayout kLayout = LayoutOf(kFormat);
  constexpr int kBits = kLayout.code_bits;
  const std::int64_t num_blocks = k / (kBlockSize * kLayout.blocks);
  for (std::int64_t i = 0; i < num_blocks; ++i) {
    const auto block = [&](int row) {
      return InFile<Block>{static_cast<const std::uint8_t*>(rows[row]) +
                           i * static_cast<std::int64_t>(sizeof(Block))};
    };
    for (int b = 0; b < kLayout.blocks; ++b) {
      FUCINA_UNROLLED(4)
      for (int part = 0; part < 4; ++part) {
        __m256i codes[8];
        FUCINA_UNROLLED(8)
        for (int r = 0; r < 8; ++r) codes[r] = Codes(block(8 * part + r), b);
        __m256i groups[8];
        TransposeWords(codes, groups);
        PutHalfLines<kBits>(groups,
                            strip + (2 * b + part / 2) * kLayout.panel_bytes() +
                                32 * (part % 2));
      }
    }
    std::uint8_t* const scales = strip + kLayout.code_bytes();
    std::uint8_t* const mins = strip + kLayout.min_offset();
    std::uint8_t* const factors = strip + kLayout.factor_offset();
    if constexpr (kLayout.byte_scales()) {
      __m128i bytes[kStripRows];
      __m256i lines[16];
      constexpr bool kWide = kLayout.halves == 2;
      for (int row = 0; row < kStripRows; ++row) {
        bytes[row] = Scales(block(row));
      }
      TransposeBytes(bytes, lines);
      constexpr int kLines = kWide || kLayout.has_min ? 16 : 8;
      for (int j = 0; j < kLines; ++j) Store32(scales + 32 * j, lines[j]);
      if constexpr (kWide && kLayout.has_min) {
        for (int row = 0; row < kStripRows; ++row) {
          bytes[row] = Minima(block(row));
        }
        TransposeBytes(bytes, lines);
        for (int j = 0; j < 16; ++j) Store32(mins + 32 * j, lines[j]);
      }
      for (int row = 0; row < kStripRows; ++row) {
        Put(factors, row, LoadU16(block(row).p + offsetof(Block, d_f16)));
        if constexpr (kLayout.has_min) {
          Put(factors, kStripRows + row,
              LoadU16(block(row).p + offsetof(Block, dmin_f16)));
        }
      }
    } else {
      for (int row = 0; row < kStripRows; ++row) {
        if constexpr (kLayout.scale == PanelScale::kF32) {
          Put(scales, row, E8M0HalfToFloat(block(row).p[offsetof(Block, e)]));
        } else {
          Put(scales, row, LoadU16(block(row).p + offsetof(Block, d_f16)));
          if constexpr (kLayout.has_min) {
            Put(mins, row,
                static_cast<std::uint16_t>(
                    LoadU16(block(row).p + offsetof(Block, m_f16)) ^ kF16Sign));
          }
        }
      }
    }
    strip += kLayout.record_bytes();
  }
}

// Columns of f32 rows, `k` a multiple of 16. Rows are often a power of two
// apart and their lines then compete for one set of the first cache, so a line
// is used up at once.
void PackWords(const void* const* rows, std::int64_t k, std::uint8_t* strip) {
  for (std::int64_t line = 0; line < k; line += 16) {
    for (int part = 0; part < 4; ++part) {
      for (std::int64_t i = line; i < line + 16; i += 8) {
        __m256i words[8];
        FUCINA_UNROLLED(8)
        for (int r = 0; r < 8; ++r) {
          words[r] = Load32(
              static_cast<const std::uint8_t*>(rows[8 * part + r]) + 4 * i);
        }
        __m256i columns[8];
        TransposeWords(words, columns);
        FUCINA_UNROLLED(8)
        for (int c = 0; c < 8; ++c) {
          Store32(strip + (i + c) * 128 + 32 * part, columns[c]);
        }
      }
    }
  }
}

// Columns of rows of 16-bit numbers, `k` a multiple of 32: pairs of columns are
// transposed like words and then parted.
void PackHalves(const void* const* rows, std::int64_t k, std::uint8_t* strip) {
  const __m256i low = _mm256_set1_epi32(0xFFFF);
  for (std::int64_t line = 0; line < k; line += 32) {
    for (int panel = 0; panel < 2; ++panel) {
      for (std::int64_t i = line; i < line + 32; i += 16) {
        __m256i pairs[2][8];
        FUCINA_UNROLLED(2)
        for (int part = 0; part < 2; ++part) {
          __m256i words[8];
          FUCINA_UNROLLED(8)
          for (int r = 0; r < 8; ++r) {
            words[r] = Load32(static_cast<const std::uint8_t*>(
                                  rows[16 * panel + 8 * part + r]) +
                              2 * i);
          }
          TransposeWords(words, pairs[part]);
        }
        FUCINA_UNROLLED(8)
        for (int c = 0; c < 8; ++c) {
          const __m256i even =
              _mm256_packus_epi32(_mm256_and_si256(pairs[0][c], low),
                                  _mm256_and_si256(pairs[1][c], low));
          const __m256i odd =
              _mm256_packus_epi32(_mm256_srli_epi32(pairs[0][c], 16),
                                  _mm256_srli_epi32(pairs[1][c], 16));
          // Packing works within lanes of 128 bits.
          std::uint8_t* const out = strip + (i + 2 * c) * 64 + 32 * panel;
          Store32(out, _mm256_permute4x64_epi64(even, 0xD8));
          Store32(out + 64, _mm256_permute4x64_epi64(odd, 0xD8));
        }
      }
    }
  }
}

// The columns from `begin` on, for widths that are no multiple of a vector.
template <typename T>
void PackColumns(const void* const* rows, std::int64_t begin, std::int64_t k,
                 std::uint8_t* strip) {
  for (std::int64_t i = begin; i < k; ++i) {
    for (int row = 0; row < kStripRows; ++row) {
      T value;
      std::memcpy(&value,
                  static_cast<const std::uint8_t*>(rows[row]) +
                      i * static_cast<std::int64_t>(sizeof value),
                  sizeof value);
      std::memcpy(strip + (i * kStripRows + row) *
                              static_cast<std::int64_t>(sizeof value),
                  &value, sizeof value);
    }
  }
}

}  // namespace

void PackStripAvx2(DType dtype, const void* const* rows, std::int64_t k,
                   std::uint8_t* strip) {
  using F = PanelFormat;
  // The last strip of a matrix may lack rows.
  for (int row = 0; row < kStripRows; ++row) {
    if (rows[row] == nullptr) return PackStripScalar(dtype, rows, k, strip);
  }
  switch (dtype) {
    case DType::kF32:
      PackWords(rows, k / 16 * 16, strip);
      return PackColumns<std::uint32_t>(rows, k / 16 * 16, k, strip);
    case DType::kF16:
    case DType::kBF16:
      PackHalves(rows, k / 32 * 32, strip);
      return PackColumns<std::uint16_t>(rows, k / 32 * 32, k, strip);
    case DType::kQ8_0:
      return PackBlocks<F::kQ8, BlockQ8_0>(rows, k, strip);
    case DType::kQ4_0:
      return PackBlocks<F::kQ4, BlockQ4_0>(rows, k, strip);
    case DType::kQ4_1:
      return PackBlocks<F::kQ4Min, BlockQ4_1>(rows, k, strip);
    case DType::kQ5_0:
      return PackBlocks<F::kQ5, BlockQ5_0>(rows, k, strip);
    case DType::kQ5_1:
      return PackBlocks<F::kQ5Min, BlockQ5_1>(rows, k, strip);
    case DType::kIQ4_NL:
      return PackBlocks<F::kT4, BlockIQ4_NL>(rows, k, strip);
    case DType::kMXFP4:
      return PackBlocks<F::kT4F, BlockMXFP4>(rows, k, strip);
    case DType::kQ2_K:
      return PackBlocks<F::kK2, BlockQ2_K>(rows, k, strip);
    case DType::kQ3_K:
      return PackBlocks<F::kK3, BlockQ3_K>(rows, k, strip);
    case DType::kQ4_K:
      return PackBlocks<F::kK4, BlockQ4_K>(rows, k, strip);
    case DType::kQ5_K:
      return PackBlocks<F::kK5, BlockQ5_K>(rows, k, strip);
    case DType::kQ6_K:
      return PackBlocks<F::kK6, BlockQ6_K>(rows, k, strip);
    case DType::kIQ4_XS:
      return PackBlocks<F::kT4K, BlockIQ4_XS>(rows, k, strip);
    default:
      return PackStripScalar(dtype, rows, k, strip);
  }
}

}  // namespace fucina

FUCINA_END_TARGET
