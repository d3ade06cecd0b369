#ifndef FUCINA_CORE_OPS_STRIP_PRODUCT_H_
#define FUCINA_CORE_OPS_STRIP_PRODUCT_H_

// The piece of work that linear and expert products are made of: one strip of
// packed weights times a run of prepared rows.

#include <algorithm>
#include <cstdint>
#include <span>

#include "fucina/kernels/kernels.h"
#include "fucina/ops/linear.h"
#include "fucina/tensor/low_rank.h"

namespace fucina::ops {

// How `rows` rows are cut into tiles: as few as possible, and of equal size but
// for one row.
struct TilePlan {
  std::int64_t rows = 0;
  std::int64_t tiles = 0;

  TilePlan() = default;
  TilePlan(std::int64_t num_rows, int widest)
      : rows(num_rows), tiles((num_rows + widest - 1) / widest) {}
  std::int64_t begin(std::int64_t tile) const {
    return tile * (rows / tiles) + std::min(tile, rows % tiles);
  }
  int size(std::int64_t tile) const {
    return static_cast<int>(rows / tiles + (tile < rows % tiles ? 1 : 0));
  }
  // The tile that `row` is in.
  std::int64_t TileOf(std::int64_t row) const {
    const std::int64_t wide = rows % tiles;
    const std::int64_t size_of_wide = rows / tiles + 1;
    return row < wide * size_of_wide
               ? row / size_of_wide
               : wide + (row - wide * size_of_wide) / (rows / tiles);
  }
};

TilePlan IntTilePlan(const LinearKernels& kernels, std::int64_t rows);
TilePlan FloatTilePlan(const LinearKernels& kernels, std::int64_t rows);

// Bytes of the tiles of `rows` rows.
inline std::int64_t IntTileBytes(std::int64_t rows, std::int64_t features) {
  return rows * (features / kBlockSize) * kActivationBlockBytes;
}

// Rows in the form that a weight's format reads.
struct PreparedRows {
  TilePlan plan;
  std::int64_t features = 0;
  const std::uint8_t* int_tiles = nullptr;  // one of the two
  const float* float_tiles = nullptr;

  // Tile `index` from feature `k` on; int tiles: a multiple of 32.
  const void* tile(std::int64_t index, std::int64_t k = 0) const;
};

// Low-rank pairs of a weight's parts, with b x computed already.
struct LowRankProduct {
  const LowRank* pair = nullptr;  // null: none for this part
  const float* bx = nullptr;      // [rows, rank]
};

// Bytes of scratch that MultiplyStrip needs for weights of up to `features`.
std::int64_t StripScratchBytes(std::int64_t features);

// How many strips to claim at the end of a product, when the pieces have
// shrunk: about 4 us of work, so that the claim costs nothing and the last one
// holds nobody up.
std::int64_t StripGrain(const PackedLinear& weight, std::int64_t rows);

// Strip `strip` of `next` as MultiplyStrip's `next_strip` while a strip of
// `weight` is multiplied: null unless they are equally long.
const std::uint8_t* NextStrip(const PackedLinear& weight,
                              const PackedLinear& next, std::int64_t strip);

// Rows of tiles [tile_begin, tile_end) times strip `strip`. Writes 32 columns
// of `out` (16 of a gated pair, fewer at the right edge); row i of the prepared
// rows goes to out + i * out_stride. `next_strip` is the one that this thread
// goes on with, fetched meanwhile; null when it is not known.
void MultiplyStrip(const Kernels& kernels, const PackedLinear& weight,
                   std::int64_t strip, const PreparedRows& rows,
                   std::int64_t tile_begin, std::int64_t tile_end,
                   std::span<const LowRankProduct> low_rank, std::byte* scratch,
                   float* out, std::int64_t out_stride,
                   const std::uint8_t* next_strip);

}  // namespace fucina::ops

#endif  // FUCINA_CORE_OPS_STRIP_PRODUCT_H_
