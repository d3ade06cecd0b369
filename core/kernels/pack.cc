// Blocks of a file into strips: the layouts of panel_layout.h.
#include <cstring>

#include "core/kernels/block_codec.h"
#include "core/kernels/pack_blocks.h"
#include "core/kernels/pack_tables.h"
#include "core/kernels/panel_layout.h"
#include "fucina/kernels/f16.h"
#include "fucina/kernels/linear_kernels.h"
#include "fucina/kernels/pack_kernels.h"

namespace fucina {
namespace {

// Low nibbles are elements 0..15, high ones 16..31.
void SplitNibbles(const std::uint8_t* qs, std::uint8_t* codes) {
  for (int j = 0; j < 16; ++j) {
    codes[j] = qs[j] & 15;
    codes[16 + j] = qs[j] >> 4;
  }
}

// Bit j of `qh` is the fifth bit of element j.
void AddFifthBits(const std::uint8_t* qh, std::uint8_t* codes) {
  const std::uint32_t bits = LoadU32(qh);
  for (int j = 0; j < 32; ++j) {
    codes[j] = static_cast<std::uint8_t>(codes[j] | ((bits >> j) & 1) << 4);
  }
}

constexpr std::uint16_t kF16Sign = 0x8000;

std::uint32_t LoadWord(const std::uint8_t* codes, int group) {
  return LoadU32(codes + 4 * group);
}

void StoreWord(std::uint8_t* p, std::uint32_t word) {
  std::memcpy(p, &word, 4);
}

// 32 codes of panel row `r`.
template <int kBits>
void PutCodes(const std::uint8_t* codes, int r, std::uint8_t* panel) {
  panel += 4 * r;
  if constexpr (kBits == 8) {
    for (int g = 0; g < 8; ++g) StoreWord(panel + 64 * g, LoadWord(codes, g));
    return;
  }
  std::uint32_t fifth = 0;
  for (int half = 0; half < 2; ++half) {
    std::uint32_t upper = 0;
    std::uint32_t words[4];
    for (int q = 0; q < 4; ++q) {
      words[q] = LoadWord(codes, 4 * half + q);
      if constexpr (kBits == 5) {
        fifth |= ((words[q] >> 4) & 0x01010101U) << (4 * half + q);
      }
      if constexpr (kBits == 6) {
        upper |= ((words[q] >> 4) & 0x03030303U) << (2 * q);
      }
      words[q] &= 0x0F0F0F0FU;
    }
    StoreWord(panel + 64 * (2 * half), words[0] | words[2] << 4);
    StoreWord(panel + 64 * (2 * half + 1), words[1] | words[3] << 4);
    if constexpr (kBits == 6) StoreWord(panel + 256 + 64 * half, upper);
  }
  if constexpr (kBits == 5) StoreWord(panel + 256, fifth);
}

template <typename T>
void Put(std::uint8_t* base, int index, T value) {
  std::memcpy(base + index * static_cast<int>(sizeof value), &value,
              sizeof value);
}

// The part of `block` that starts at its block of 32 number `first`, as row
// `row` of a record.
template <PanelFormat kFormat>
void PutRecord(const BlockCodes& block, int first, int row,
               std::uint8_t* record) {
  constexpr PanelLayout kLayout = LayoutOf(kFormat);
  for (int b = 0; b < kLayout.blocks; ++b) {
    PutCodes<kLayout.code_bits>(
        block.codes + 32 * (first + b), row % 16,
        record + (2 * b + row / 16) * kLayout.panel_bytes());
  }
  std::uint8_t* scales = record + kLayout.code_bytes();
  std::uint8_t* mins = record + kLayout.min_offset();
  std::uint8_t* factors = record + kLayout.factor_offset();
  if constexpr (kLayout.scale == PanelScale::kF16) {
    Put(scales, row, block.scale_f16);
    if constexpr (kLayout.has_min) Put(mins, row, block.min_f16);
  } else if constexpr (kLayout.scale == PanelScale::kF32) {
    for (int h = 0; h < kLayout.halves; ++h) {
      Put(scales, h * kStripRows + row,
          block.scale_f32[kLayout.halves * first + h]);
    }
  } else {
    for (int i = 0; i < kLayout.blocks * kLayout.halves; ++i) {
      Put(scales, i * kStripRows + row, block.scales[i]);
      if constexpr (kLayout.has_min) {
        Put(mins, i * kStripRows + row, block.mins[i]);
      }
    }
    Put(factors, row, block.factor_f16);
    if constexpr (kLayout.has_min) {
      Put(factors, kStripRows + row, block.min_factor_f16);
    }
  }
}

// Rows of blocks of type Block and `kValues` values each.
template <PanelFormat kFormat, typename Block, int kValues>
void PackBlocks(const void* const* rows, std::int64_t k, std::uint8_t* strip) {
  constexpr PanelLayout kLayout = LayoutOf(kFormat);
  constexpr int kRecordValues = kBlockSize * kLayout.blocks;
  constexpr int kRecords = kValues / kRecordValues;  // per block of the file
  for (std::int64_t i = 0; i < k / kValues; ++i) {
    for (int row = 0; row < kStripRows; ++row) {
      // Rows lie at any address; the copy is what may be read as a struct. A
      // missing row has codes and scales of zero.
      BlockCodes codes;
      if (rows[row] != nullptr) {
        Block block;
        std::memcpy(&block,
                    static_cast<const std::uint8_t*>(rows[row]) +
                        i * static_cast<std::int64_t>(sizeof block),
                    sizeof block);
        ReadBlock(block, codes);
      } else {
        codes = BlockCodes{};
      }
      for (int j = 0; j < kRecords; ++j) {
        PutRecord<kFormat>(codes, j * kLayout.blocks, row,
                           strip + j * kLayout.record_bytes());
      }
    }
    strip += kRecords * kLayout.record_bytes();
  }
}

template <typename T>
void PackFloats(const void* const* rows, std::int64_t k, std::uint8_t* strip) {
  constexpr std::int64_t kSpan = 16;  // a line or two of each row at a time
  constexpr std::int64_t kSize = sizeof(T);
  for (std::int64_t k0 = 0; k0 < k; k0 += kSpan) {
    const std::int64_t end = k0 + kSpan < k ? k0 + kSpan : k;
    for (int row = 0; row < kStripRows; ++row) {
      const auto* source = static_cast<const std::uint8_t*>(rows[row]);
      for (std::int64_t i = k0; i < end; ++i) {
        T value = 0;
        if (source != nullptr) std::memcpy(&value, source + i * kSize, kSize);
        std::memcpy(strip + (i * kStripRows + row) * kSize, &value, kSize);
      }
    }
  }
}

}  // namespace

void ReadBlock(const BlockQ4_0& block, BlockCodes& out) {
  SplitNibbles(block.qs, out.codes);
  out.scale_f16 = block.d_f16;
}

void ReadBlock(const BlockQ4_1& block, BlockCodes& out) {
  SplitNibbles(block.qs, out.codes);
  out.scale_f16 = block.d_f16;
  out.min_f16 = block.m_f16 ^ kF16Sign;
}

void ReadBlock(const BlockQ5_0& block, BlockCodes& out) {
  SplitNibbles(block.qs, out.codes);
  AddFifthBits(block.qh, out.codes);
  out.scale_f16 = block.d_f16;
}

void ReadBlock(const BlockQ5_1& block, BlockCodes& out) {
  SplitNibbles(block.qs, out.codes);
  AddFifthBits(block.qh, out.codes);
  out.scale_f16 = block.d_f16;
  out.min_f16 = block.m_f16 ^ kF16Sign;
}

void ReadBlock(const BlockQ8_0& block, BlockCodes& out) {
  for (int j = 0; j < 32; ++j) {
    out.codes[j] = static_cast<std::uint8_t>(block.qs[j] + 128);
  }
  out.scale_f16 = block.d_f16;
}

void ReadBlock(const BlockQ2_K& block, BlockCodes& out) {
  for (int i = 0; i < 256; ++i) {
    const int k = (i % 128) / 32;
    out.codes[i] = static_cast<std::uint8_t>(
        (block.qs[32 * (i / 128) + i % 32] >> (2 * k)) & 3);
  }
  for (int b = 0; b < 16; ++b) {
    out.scales[b] = block.scales[b] & 15;
    out.mins[b] = block.scales[b] >> 4;
  }
  out.factor_f16 = block.d_f16;
  out.min_factor_f16 = block.dmin_f16;
}

void ReadBlock(const BlockQ3_K& block, BlockCodes& out) {
  for (int i = 0; i < 256; ++i) {
    const int k = (i % 128) / 32;
    const int low = (block.qs[32 * (i / 128) + i % 32] >> (2 * k)) & 3;
    const int high = (block.hmask[i % 32] >> (i / 32)) & 1;
    out.codes[i] = static_cast<std::uint8_t>(low | high << 2);
  }
  for (int b = 0; b < 16; ++b) {
    out.scales[b] =
        static_cast<std::uint8_t>(UnpackQ3Scale(block.scales, b) - 32);
  }
  out.factor_f16 = block.d_f16;
}

namespace {

// Elements 32 c .. 32 c + 63 of a run of nibbles: low halves, then high ones.
void SplitRuns(const std::uint8_t* qs, std::uint8_t* codes) {
  for (int c = 0; c < 4; ++c) {
    for (int l = 0; l < 32; ++l) {
      codes[64 * c + l] = qs[32 * c + l] & 15;
      codes[64 * c + 32 + l] = qs[32 * c + l] >> 4;
    }
  }
}

void PutScaleMins(const std::uint8_t* scales, BlockCodes& out) {
  for (int g = 0; g < 8; ++g) {
    const ScaleMin pair = UnpackScaleMin(scales, g);
    out.scales[g] = static_cast<std::uint8_t>(pair.scale);
    out.mins[g] = static_cast<std::uint8_t>(pair.min);
  }
}

}  // namespace

void ReadBlock(const BlockQ4_K& block, BlockCodes& out) {
  SplitRuns(block.qs, out.codes);
  PutScaleMins(block.scales, out);
  out.factor_f16 = block.d_f16;
  out.min_factor_f16 = block.dmin_f16;
}

void ReadBlock(const BlockQ5_K& block, BlockCodes& out) {
  SplitRuns(block.qs, out.codes);
  for (int g = 0; g < 8; ++g) {
    for (int l = 0; l < 32; ++l) {
      std::uint8_t& code = out.codes[32 * g + l];
      code = static_cast<std::uint8_t>(code | ((block.qh[l] >> g) & 1) << 4);
    }
  }
  PutScaleMins(block.scales, out);
  out.factor_f16 = block.d_f16;
  out.min_factor_f16 = block.dmin_f16;
}

void ReadBlock(const BlockQ6_K& block, BlockCodes& out) {
  for (int n = 0; n < 2; ++n) {
    const std::uint8_t* low = block.ql + 64 * n;
    const std::uint8_t* high = block.qh + 32 * n;
    std::uint8_t* codes = out.codes + 128 * n;
    for (int l = 0; l < 32; ++l) {
      const int h = high[l];
      codes[l] = static_cast<std::uint8_t>((low[l] & 15) | (h & 3) << 4);
      codes[32 + l] =
          static_cast<std::uint8_t>((low[32 + l] & 15) | ((h >> 2) & 3) << 4);
      codes[64 + l] =
          static_cast<std::uint8_t>((low[l] >> 4) | ((h >> 4) & 3) << 4);
      codes[96 + l] =
          static_cast<std::uint8_t>((low[32 + l] >> 4) | ((h >> 6) & 3) << 4);
    }
  }
  std::memcpy(out.scales, block.scales, 16);
  out.factor_f16 = block.d_f16;
}

void ReadBlock(const BlockIQ4_NL& block, BlockCodes& out) {
  SplitNibbles(block.qs, out.codes);
  out.scale_f16 = block.d_f16;
}

void ReadBlock(const BlockIQ4_XS& block, BlockCodes& out) {
  for (int g = 0; g < 8; ++g) {
    SplitNibbles(block.qs + 16 * g, out.codes + 32 * g);
    const int low = (block.scales_l[g / 2] >> (4 * (g % 2))) & 15;
    const int scale = low | ((block.scales_h >> (2 * g)) & 3) << 4;
    out.scales[g] = static_cast<std::uint8_t>(scale - 32);
  }
  out.factor_f16 = block.d_f16;
}

void ReadBlock(const BlockMXFP4& block, BlockCodes& out) {
  SplitNibbles(block.qs, out.codes);
  out.scale_f32[0] = E8M0HalfToFloat(block.e);
}

PanelFormat PanelFormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return PanelFormat::kF16;
    case DType::kBF16:
      return PanelFormat::kBF16;
    case DType::kQ8_0:
      return PanelFormat::kQ8;
    case DType::kQ4_0:
      return PanelFormat::kQ4;
    case DType::kQ4_1:
      return PanelFormat::kQ4Min;
    case DType::kQ5_0:
      return PanelFormat::kQ5;
    case DType::kQ5_1:
      return PanelFormat::kQ5Min;
    case DType::kIQ4_NL:
      return PanelFormat::kT4;
    case DType::kMXFP4:
    case DType::kIQ2_XXS:
    case DType::kIQ3_XXS:
    case DType::kIQ3_S:
    case DType::kIQ1_S:
    case DType::kTQ1_0:
    case DType::kTQ2_0:
      return PanelFormat::kT4F;
    case DType::kIQ2_XS:
    case DType::kIQ2_S:
    case DType::kIQ1_M:
      return PanelFormat::kT4FHalf;
    case DType::kQ2_K:
      return PanelFormat::kK2;
    case DType::kQ3_K:
      return PanelFormat::kK3;
    case DType::kQ4_K:
      return PanelFormat::kK4;
    case DType::kQ5_K:
      return PanelFormat::kK5;
    case DType::kQ6_K:
      return PanelFormat::kK6;
    case DType::kIQ4_XS:
      return PanelFormat::kT4K;
    default:
      return PanelFormat::kF32;
  }
}

std::int64_t StripBytes(PanelFormat format, std::int64_t k) {
  if (format == PanelFormat::kF32) return k * kStripRows * 4;
  if (IsFloatFormat(format)) return k * kStripRows * 2;
  const PanelLayout layout = LayoutOf(format);
  return k / (kBlockSize * layout.blocks) * layout.record_bytes();
}

std::int64_t UnpackedStripBytes(PanelFormat format, std::int64_t k) {
  if (format == PanelFormat::kF32) return 0;
  if (IsFloatFormat(format)) {
    return k * kStripRows * static_cast<std::int64_t>(sizeof(float));
  }
  const PanelLayout layout = LayoutOf(format);
  return k / kBlockSize * UnpackedBlockBytes(layout.halves, layout.has_min);
}

const std::int8_t* PanelTable(DType dtype) {
  switch (dtype) {
    case DType::kIQ4_NL:
    case DType::kIQ4_XS:
      return kIq4Values;
    case DType::kMXFP4:
      return kMxfp4Values;
    case DType::kIQ2_XXS:
    case DType::kIQ2_XS:
    case DType::kIQ2_S:
      return kIq2Table;
    case DType::kIQ3_XXS:
      return kIq3XxsTable;
    case DType::kIQ3_S:
      return kIq3STable;
    case DType::kIQ1_S:
    case DType::kIQ1_M:
      return kIq1Table;
    case DType::kTQ1_0:
    case DType::kTQ2_0:
      return kTernaryTable;
    default:
      return nullptr;
  }
}

void PackStripScalar(DType dtype, const void* const* rows, std::int64_t k,
                     std::uint8_t* strip) {
  using F = PanelFormat;
  switch (dtype) {
    case DType::kF32:
      return PackFloats<std::uint32_t>(rows, k, strip);
    case DType::kF16:
    case DType::kBF16:
      return PackFloats<std::uint16_t>(rows, k, strip);
    case DType::kQ8_0:
      return PackBlocks<F::kQ8, BlockQ8_0, 32>(rows, k, strip);
    case DType::kQ4_0:
      return PackBlocks<F::kQ4, BlockQ4_0, 32>(rows, k, strip);
    case DType::kQ4_1:
      return PackBlocks<F::kQ4Min, BlockQ4_1, 32>(rows, k, strip);
    case DType::kQ5_0:
      return PackBlocks<F::kQ5, BlockQ5_0, 32>(rows, k, strip);
    case DType::kQ5_1:
      return PackBlocks<F::kQ5Min, BlockQ5_1, 32>(rows, k, strip);
    case DType::kIQ4_NL:
      return PackBlocks<F::kT4, BlockIQ4_NL, 32>(rows, k, strip);
    case DType::kMXFP4:
      return PackBlocks<F::kT4F, BlockMXFP4, 32>(rows, k, strip);
    case DType::kQ2_K:
      return PackBlocks<F::kK2, BlockQ2_K, 256>(rows, k, strip);
    case DType::kQ3_K:
      return PackBlocks<F::kK3, BlockQ3_K, 256>(rows, k, strip);
    case DType::kQ4_K:
      return PackBlocks<F::kK4, BlockQ4_K, 256>(rows, k, strip);
    case DType::kQ5_K:
      return PackBlocks<F::kK5, BlockQ5_K, 256>(rows, k, strip);
    case DType::kQ6_K:
      return PackBlocks<F::kK6, BlockQ6_K, 256>(rows, k, strip);
    case DType::kIQ4_XS:
      return PackBlocks<F::kT4K, BlockIQ4_XS, 256>(rows, k, strip);
    case DType::kIQ2_XXS:
      return PackBlocks<F::kT4F, BlockIQ2_XXS, 256>(rows, k, strip);
    case DType::kIQ3_XXS:
      return PackBlocks<F::kT4F, BlockIQ3_XXS, 256>(rows, k, strip);
    case DType::kIQ3_S:
      return PackBlocks<F::kT4F, BlockIQ3_S, 256>(rows, k, strip);
    case DType::kIQ1_S:
      return PackBlocks<F::kT4F, BlockIQ1_S, 256>(rows, k, strip);
    case DType::kTQ1_0:
      return PackBlocks<F::kT4F, BlockTQ1_0, 256>(rows, k, strip);
    case DType::kTQ2_0:
      return PackBlocks<F::kT4F, BlockTQ2_0, 256>(rows, k, strip);
    case DType::kIQ2_XS:
      return PackBlocks<F::kT4FHalf, BlockIQ2_XS, 256>(rows, k, strip);
    case DType::kIQ2_S:
      return PackBlocks<F::kT4FHalf, BlockIQ2_S, 256>(rows, k, strip);
    case DType::kIQ1_M:
      return PackBlocks<F::kT4FHalf, BlockIQ1_M, 256>(rows, k, strip);
    default:
      return;
  }
}

PackStripFn PackStripFor(KernelLevel level) {
#if defined(__x86_64__)
  if (level != KernelLevel::kScalar) return PackStripAvx2;
#else
  (void)level;
#endif
  return PackStripScalar;
}

void PackStrip(DType dtype, const void* const* rows, std::int64_t k,
               std::uint8_t* strip) {
  static const PackStripFn pack = PackStripFor(BestKernelLevel());
  pack(dtype, rows, k, strip);
}

}  // namespace fucina
