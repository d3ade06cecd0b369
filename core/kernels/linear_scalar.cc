// The products in plain C++, written to be read: the oracle of the other
// levels. What is computed is in linear_kernels.h, where the bytes are in
// panel_layout.h.
#include <bit>
#include <cmath>
#include <cstring>

#include "core/kernels/panel_layout.h"
#include "core/kernels/tables.h"
#include "fucina/kernels/f16.h"

namespace fucina {
namespace {

constexpr int kMaxRows = 6;

template <typename T>
T LoadAs(const void* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

float LoadHalfAt(const void* p) { return F16ToFloat(LoadAs<std::uint16_t>(p)); }

// One row's share of a block of 32 k.
struct RowBlock {
  int codes[32];
  float scale[2];  // per half; [0] only where there is one
  float min[2];
};

// Code of element `e` of panel row `r`.
int CodeAt(const PanelLayout& layout, const std::uint8_t* panel, int r, int e) {
  const int group = e / 4;
  const int byte = 4 * r + e % 4;
  if (layout.code_bits == 8) return panel[group * 64 + byte];
  const int half = group / 4;
  const int q = group % 4;
  const std::uint8_t line = panel[(2 * half + q % 2) * 64 + byte];
  const int low = q < 2 ? line & 15 : line >> 4;
  if (layout.code_bits == 5) {
    return low | ((panel[256 + byte] >> group) & 1) << 4;
  }
  if (layout.code_bits == 6) {
    return low | ((panel[256 + half * 64 + byte] >> (2 * q)) & 3) << 4;
  }
  return low;
}

float ScaleAt(const PanelLayout& layout, const std::uint8_t* scales,
              const std::uint8_t* factors, int index, int row) {
  const int i = index * kStripRows + row;
  switch (layout.scale) {
    case PanelScale::kF16:
      return LoadHalfAt(scales + 2 * i);
    case PanelScale::kF32:
      return LoadAs<float>(scales + 4 * i);
    case PanelScale::kU8:
      return LoadHalfAt(factors + 2 * row) * static_cast<float>(scales[i]);
    case PanelScale::kI8:
      return LoadHalfAt(factors + 2 * row) *
             static_cast<float>(LoadAs<std::int8_t>(scales + i));
  }
  return 0;
}

RowBlock DecodeBlock(const PanelLayout& layout, const std::uint8_t* record,
                     const std::int8_t* table, int block, int row) {
  RowBlock result = {};
  const std::uint8_t* panel =
      record + (2 * block + row / 16) * layout.panel_bytes();
  for (int e = 0; e < 32; ++e) {
    const int code = CodeAt(layout, panel, row % 16, e);
    result.codes[e] = layout.has_table ? table[code] + 128 : code;
  }
  const std::uint8_t* factors = record + layout.factor_offset();
  for (int h = 0; h < layout.halves; ++h) {
    const int index = layout.halves * block + h;
    result.scale[h] =
        ScaleAt(layout, record + layout.code_bytes(), factors, index, row);
    if (layout.has_min) {
      result.min[h] = ScaleAt(layout, record + layout.min_offset(),
                              factors + 2 * kStripRows, index, row);
    }
  }
  return result;
}

template <typename T>
T Word(const std::uint8_t* tile_block, int rows, ActivationWord word, int row) {
  return LoadAs<T>(tile_block + rows * kBlockSize + (word * rows + row) * 4);
}

float AddBlock(const PanelLayout& layout, const RowBlock& w,
               const std::uint8_t* tile_block, int rows, int t, float acc) {
  const std::uint8_t* codes = tile_block + t * kBlockSize;
  const float dx = Word<float>(tile_block, rows, kWordScale, t);
  const int span = kBlockSize / layout.halves;
  for (int h = 0; h < layout.halves; ++h) {
    const ActivationWord word = layout.halves == 1 ? kWordNegSum
                                : h == 0           ? kWordNegSumLow
                                                   : kWordNegSumHigh;
    const std::int32_t negative_sum =
        Word<std::int32_t>(tile_block, rows, word, t);
    std::int32_t n =
        layout.has_min ? 0 : negative_sum * (1 << layout.offset_shift);
    for (int e = h * span; e < (h + 1) * span; ++e) {
      n += w.codes[e] * LoadAs<std::int8_t>(codes + e);
    }
    acc = std::fma(static_cast<float>(n), w.scale[h] * dx, acc);
    if (layout.has_min) {
      const float sum = layout.halves == 1
                            ? Word<float>(tile_block, rows, kWordScaledSum, t)
                            : dx * static_cast<float>(-negative_sum);
      acc = std::fma(-w.min[h], sum, acc);
    }
  }
  return acc;
}

template <int kRows>
void StartSums(const TileArgs& args, int row, float (&acc)[kRows]) {
  if (!args.accumulate) return;
  for (int t = 0; t < kRows; ++t) acc[t] = args.out[t * args.out_stride + row];
}

template <PanelFormat kFormat, int kRows>
void Direct(const TileArgs& args) {
  const PanelLayout layout = LayoutOf(kFormat);
  const std::int64_t blocks = args.k / kBlockSize;
  const auto* tile = static_cast<const std::uint8_t*>(args.activations);
  for (int row = 0; row < kStripRows; ++row) {
    float acc[kRows] = {};
    StartSums(args, row, acc);
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::uint8_t* record =
          args.weights + b / layout.blocks * layout.record_bytes();
      const RowBlock w = DecodeBlock(layout, record, args.table,
                                     static_cast<int>(b % layout.blocks), row);
      for (int t = 0; t < kRows; ++t) {
        acc[t] = AddBlock(layout, w, tile + b * kRows * kActivationBlockBytes,
                          kRows, t, acc[t]);
      }
    }
    for (int t = 0; t < kRows; ++t)
      args.out[t * args.out_stride + row] = acc[t];
  }
}

float FloatAt(PanelFormat format, const std::uint8_t* strip, std::int64_t i) {
  switch (format) {
    case PanelFormat::kF16:
      return LoadHalfAt(strip + 2 * i);
    case PanelFormat::kBF16:
      return BF16ToFloat(LoadAs<std::uint16_t>(strip + 2 * i));
    default:
      return LoadAs<float>(strip + 4 * i);
  }
}

template <PanelFormat kFormat, int kRows>
void FloatDirect(const TileArgs& args) {
  const auto* x = static_cast<const float*>(args.activations);
  for (int row = 0; row < kStripRows; ++row) {
    float acc[kRows] = {};
    StartSums(args, row, acc);
    for (std::int64_t k = 0; k < args.k; ++k) {
      const float w = FloatAt(kFormat, args.weights, k * kStripRows + row);
      for (int t = 0; t < kRows; ++t) {
        acc[t] = std::fma(w, x[k * kRows + t], acc[t]);
      }
    }
    for (int t = 0; t < kRows; ++t)
      args.out[t * args.out_stride + row] = acc[t];
  }
}

void QuantizeBlock(const float* x, int rows, int row, std::uint8_t* tile) {
  std::uint32_t amax_bits = 0;
  for (int i = 0; i < kBlockSize; ++i) {
    const std::uint32_t bits = LoadAs<std::uint32_t>(x + i) & 0x7FFFFFFFU;
    amax_bits = bits > amax_bits ? bits : amax_bits;
  }
  std::int8_t codes[kBlockSize] = {};
  float dx = amax_bits >= kInfBits ? std::bit_cast<float>(kNanBits) : 0.0F;
  if (amax_bits >= kTinyBits && amax_bits < kInfBits) {
    const float amax = std::bit_cast<float>(amax_bits);
    const float inverse = 127.0F / amax;
    dx = amax / 127.0F;
    for (int i = 0; i < kBlockSize; ++i) {
      // |x * inverse| <= 127, so that adding and taking away 1.5 * 2^23 rounds
      // to the nearest integer, ties to even.
      const float rounded = (x[i] * inverse + 0x1.8p+23F) - 0x1.8p+23F;
      codes[i] = static_cast<std::int8_t>(rounded);
    }
  }
  std::int32_t low = 0;
  std::int32_t high = 0;
  for (int i = 0; i < 16; ++i) low += codes[i];
  for (int i = 16; i < 32; ++i) high += codes[i];
  const float scaled_sum = dx * static_cast<float>(low + high);
  const std::int32_t negative[3] = {-(low + high), -low, -high};
  std::memcpy(tile + row * kBlockSize, codes, kBlockSize);
  std::uint8_t* words = tile + rows * kBlockSize + row * 4;
  std::memcpy(words + kWordScale * rows * 4, &dx, 4);
  std::memcpy(words + kWordNegSum * rows * 4, &negative[0], 4);
  std::memcpy(words + kWordNegSumLow * rows * 4, &negative[1], 4);
  std::memcpy(words + kWordNegSumHigh * rows * 4, &negative[2], 4);
  std::memcpy(words + kWordScaledSum * rows * 4, &scaled_sum, 4);
}

void QuantizeRow(const float* x, std::int64_t k, int rows, int row,
                 std::uint8_t* tile) {
  for (std::int64_t i = 0; i < k; i += kBlockSize) {
    QuantizeBlock(x + i, rows, row, tile);
    tile += rows * kActivationBlockBytes;
  }
}

void AddScaled(const float* x, std::int64_t n, float a, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::fma(a, x[i], y[i]);
}

void AddDotRows(const float* w, std::int64_t w_stride, std::int64_t n,
                std::int64_t k, const float* x, float scale, float* y) {
  for (std::int64_t row = 0; row < n; ++row, w += w_stride) {
    float lanes[16] = {};
    // A last part of fewer than 16 is filled up with zeros.
    for (std::int64_t i = 0; i < (k + 15) / 16 * 16; ++i) {
      lanes[i % 16] = i < k ? std::fma(w[i], x[i], lanes[i % 16])
                            : std::fma(0.0F, 0.0F, lanes[i % 16]);
    }
    for (int width = 8; width > 0; width /= 2) {
      for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
    }
    y[row] = std::fma(scale, lanes[0], y[row]);
  }
}

template <PanelFormat kFormat, int kRows>
void FillTiles(FormatKernels& entry) {
  if constexpr (kRows > 0) {
    entry.direct[kRows] = IsFloatFormat(kFormat) ? &FloatDirect<kFormat, kRows>
                                                 : &Direct<kFormat, kRows>;
    FillTiles<kFormat, kRows - 1>(entry);
  }
}

template <int kFormat>
void FillFormats(LinearKernels& kernels) {
  if constexpr (kFormat < kNumPanelFormats) {
    FillTiles<static_cast<PanelFormat>(kFormat), kMaxRows>(
        kernels.formats[kFormat]);
    FillFormats<kFormat + 1>(kernels);
  }
}

}  // namespace

LinearKernels ScalarLinearKernels() {
  LinearKernels kernels;
  FillFormats<0>(kernels);
  kernels.int_tile_rows = kMaxRows;
  kernels.float_tile_rows = kMaxRows;
  kernels.direct_rows = kMaxRows;
  kernels.quantize_row = &QuantizeRow;
  kernels.add_dot_rows = &AddDotRows;
  kernels.add_scaled = &AddScaled;
  return kernels;
}

}  // namespace fucina
