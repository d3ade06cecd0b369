#ifndef FUCINA_KERNELS_LINEAR_KERNELS_H_
#define FUCINA_KERNELS_LINEAR_KERNELS_H_

// Matrix products over packed weights. A vector lane owns an output row and the
// kernel walks k in order, so an output is the same chain of operations
// whatever the batch, the tile, the thread or the vector width.
//
// Integer weight formats. The unit is a strip of 32 rows, two panels of 16. k
// advances in blocks of 32; a line of 64 bytes holds 4 consecutive k of 16
// rows, row after row. Each weight is an unsigned code; per row and block (or
// half block) there is an f32 scale, and either a constant offset or an f32
// minimum: w = scale * (code - offset) or w = scale * code - min.
// Activations are int8 with one f32 scale per 32 values (dx = amax / 127, round
// to nearest even). Per block, in ascending order, and per half block where the
// scales are per 16:
//     n   = sum(code * a) - offset * sum(a)        exact, int32
//     acc = fma(float(n), scale * dx, acc)
//     acc = fma(-min, dx * float(sum(a)), acc)     formats with a minimum
// A block whose largest |x| is below 2^-100 counts as zero; one with an
// infinity or a NaN has dx = NaN, and the NaN reaches every output of the row.
//
// Float weight formats: strips of 32 rows, k-major, no activation rounding:
//     acc = fma(w[k], x[k], acc), k ascending.

#include <cstddef>
#include <cstdint>

#include "fucina/export.h"
#include "fucina/tensor/dtype.h"

namespace fucina {

// How packed weights lie in memory. In the comments, bits per weight.
enum class PanelFormat : std::uint8_t {
  kF32,      // f32 [k][32]
  kF16,      // f16 [k][32]
  kBF16,     // bf16 [k][32]
  kQ8,       // 8.5   code + 128, f16 scale per 32
  kQ4,       // 4.5   code + 8, f16 scale per 32
  kQ4Min,    // 5     code, f16 scale and f16 minimum per 32
  kQ5,       // 5.5   code + 16, f16 scale per 32
  kQ5Min,    // 6     code, f16 scale and f16 minimum per 32
  kT4,       // 4.5   index into a table of 16, f16 scale per 32
  kT4F,      // 5     index into a table of 16, f32 scale per 32
  kT4FHalf,  // 6     index into a table of 16, f32 scale per 16
  kK2,       // 5.13  code, u8 scale and u8 minimum per 16, f16 pair per 256
  kK3,       // 4.56  code + 4, i8 scale per 16, f16 per 256
  kK4,       // 4.62  code, u8 scale and u8 minimum per 32, f16 pair per 256
  kK5,       // 5.62  the same with a fifth bit
  kK6,       // 6.56  code + 32, i8 scale per 16, f16 per 256
  kT4K,      // 4.31  index into a table of 16, i8 scale per 32, f16 per 256
};
inline constexpr int kNumPanelFormats = 17;

inline constexpr int kStripRows = 32;
inline constexpr int kBlockSize =
    32;  // k values that share an activation scale

// Bytes of one row's share of a block in an activation tile: 32 codes, then dx,
// -sum(a), -sum(first half of a), -sum(second half), dx * sum(a), 4 bytes each.
inline constexpr int kActivationBlockBytes = 52;

// How far ahead of its use a strip's only tile fetches: it does nothing but
// wait for memory. Measured between 2 and 8 KiB on a 2-core Sapphire Rapids
// machine, 4 KiB was never worse.
inline constexpr int kPrefetchBytes = 4096;

// The widest tile of rows at any level.
inline constexpr int kMaxTileRows = 12;

// One strip times one tile of activation rows.
struct TileArgs {
  const std::uint8_t* weights = nullptr;  // a packed strip, or an unpacked one
  const std::int8_t* table = nullptr;     // [16] values of the kT4 formats
  std::int64_t k = 0;                     // in features
  // Integer formats: per block of 32 k, the codes of all rows of the tile
  // [rows][32], then [rows] each of the five words above. Float formats: f32
  // [k][rows].
  const void* activations = nullptr;
  float* out = nullptr;         // [rows][32]
  std::int64_t out_stride = 0;  // floats from one row to the next
  // Goes on from the sums in `out`: a strip may be walked in pieces of k, whole
  // records each, and gives the same bits.
  bool accumulate = false;
  // The strip that this thread multiplies next, as long as this one and to be
  // read by nobody else; its lines are fetched from four places at once, which
  // draws more from memory than one stream does. Null where it is not known.
  const std::uint8_t* next_strip = nullptr;
  // Without a next strip: memory that is wanted next, for tiles of three rows
  // and more. So many lines of 64 bytes per block of 32 k (4 k of float
  // formats) are fetched from here on. May point behind a buffer. Smaller tiles
  // fetch what lies ahead of them.
  const std::uint8_t* prefetch = nullptr;
  int prefetch_lines = 0;
};
using TileFn = void (*)(const TileArgs& args);

// Unpacked integer strip: per block of 32 k: codes u8 [2 panels][8 lines][64],
// then f32 scales [halves][32], then f32 minima [halves][32] where the format
// has them. Unpacked strip of 16-bit floats: f32 [k][32].
using UnpackFn = void (*)(const std::uint8_t* strip, const std::int8_t* table,
                          std::int64_t k, std::uint8_t* unpacked);

struct FormatKernels {
  // direct[r] reads the packed strip for a tile of r rows; null where the level
  // has none.
  TileFn direct[kMaxTileRows + 1] = {};
  // For more rows than direct_rows (float_tile_rows of float formats): unpack
  // once, then unpacked[r] for every tile. Null where direct serves any number
  // of rows.
  UnpackFn unpack = nullptr;
  TileFn unpacked[kMaxTileRows + 1] = {};
};

struct LinearKernels {
  FormatKernels formats[kNumPanelFormats] = {};

  // Widest tile of integer and of float formats that direct / unpacked serve.
  int int_tile_rows = 1;
  int float_tile_rows = 1;
  // Up to this many rows, packed integer strips are read directly in one tile.
  int direct_rows = 1;

  // Quantizes one row of `k` f32 values, a multiple of 32, into slot `row` of
  // a tile of `rows` rows.
  void (*quantize_row)(const float* x, std::int64_t k, int rows, int row,
                       std::uint8_t* tile) = nullptr;

  // y[i] += scale * sum_k(w[i * w_stride + k] * x[k]) for i < n, in f32 with
  // 16 interleaved partial sums (k mod 16) added up in a fixed tree.
  void (*add_dot_rows)(const float* w, std::int64_t w_stride, std::int64_t n,
                       std::int64_t k, const float* x, float scale,
                       float* y) = nullptr;

  // y[i] += a * x[i] for i < n, fused.
  void (*add_scaled)(const float* x, std::int64_t n, float a,
                     float* y) = nullptr;
};

// --- packing, the same for every level --------------------------------------

// The packed form of weights of a file type. REQUIRES: a weight type.
FUCINA_API PanelFormat PanelFormatOf(DType dtype);

// Bytes of one packed strip of `k` features.
// REQUIRES: k is a multiple of the type's block size.
FUCINA_API std::int64_t StripBytes(PanelFormat format, std::int64_t k);

// Bytes of the unpacked form of a strip; 0 for f32, which has none.
FUCINA_API std::int64_t UnpackedStripBytes(PanelFormat format, std::int64_t k);

constexpr bool IsFloatFormat(PanelFormat format) {
  return format <= PanelFormat::kBF16;
}

// The values of the kT4 formats' indices for `dtype`; null for other formats.
FUCINA_API const std::int8_t* PanelTable(DType dtype);

// Packs 32 rows of `k` values of file type `dtype`. rows[i] points at the
// blocks of row i as they are in the file; null rows become zeros.
FUCINA_API void PackStrip(DType dtype, const void* const* rows, std::int64_t k,
                          std::uint8_t* strip);

}  // namespace fucina

#endif  // FUCINA_KERNELS_LINEAR_KERNELS_H_
