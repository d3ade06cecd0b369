#include "core/ops/strip_product.h"

#include "fucina/diag/check.h"

namespace fucina::ops {
namespace {

// Up to this many rows a strip is walked in pieces of k, each for all tiles, so
// that its unpacked form stays in the first-level cache and the next piece
// comes from memory meanwhile. More rows of integers hide the memory's latency
// themselves, and then keeping sums in registers over all of k is worth more; a
// strip of f32 is four times as long and never fits.
constexpr std::int64_t kPiecewiseIntRows = 64;
constexpr std::int64_t kPiecewiseFloatRows = 288;
constexpr std::int64_t kPieceOfInts = 512;    // 16 KiB of codes
constexpr std::int64_t kPieceOfFloats = 128;  // 16 KiB
constexpr std::int64_t kTileFloats = kPiecewiseFloatRows * kStripRows;

constexpr std::int64_t kLineBytes = 64;

// Adds bias and low-rank products to a tile of one strip.
void Complete(const Kernels& kernels, const PackedLinear& weight,
              std::int64_t strip, std::int64_t first_row, int rows,
              std::span<const LowRankProduct> low_rank, float* tile) {
  if (weight.bias() != nullptr) {
    const float* bias = weight.bias() + strip * kStripRows;
    for (int t = 0; t < rows; ++t) {
      for (int i = 0; i < kStripRows; ++i) tile[t * kStripRows + i] += bias[i];
    }
  }
  // The lanes of this strip that belong to part p, and its rows.
  std::int64_t part_begin = 0;
  for (std::size_t p = 0; p < low_rank.size(); ++p) {
    const std::int64_t part_rows = weight.part_features()[p];
    std::int64_t first = 0;  // row of the part
    std::int64_t count = 0;
    std::int64_t lane = 0;
    if (weight.gated()) {
      first = strip * 16;
      count = std::min<std::int64_t>(16, part_rows - first);
      lane = static_cast<std::int64_t>(p) * 16;
    } else {
      const std::int64_t begin =
          std::max(part_begin, strip * std::int64_t{kStripRows});
      const std::int64_t end = std::min(part_begin + part_rows,
                                        (strip + 1) * std::int64_t{kStripRows});
      first = begin - part_begin;
      count = end - begin;
      lane = begin - strip * kStripRows;
    }
    part_begin += part_rows;
    if (low_rank[p].pair == nullptr || count <= 0) continue;
    const LowRank& pair = *low_rank[p].pair;
    const std::int64_t rank = pair.a.row_size();
    for (int t = 0; t < rows; ++t) {
      kernels.linear.add_dot_rows(
          pair.a.row_f32(first),
          pair.a.row_stride_bytes() / static_cast<std::int64_t>(sizeof(float)),
          count, rank, low_rank[p].bx + (first_row + t) * rank, pair.scale,
          tile + t * kStripRows + lane);
    }
  }
}

// One strip's products; see MultiplyStrip.
class StripProduct {
 public:
  StripProduct(const Kernels& kernels, const PackedLinear& weight,
               std::int64_t strip, const PreparedRows& rows,
               std::span<const LowRankProduct> low_rank, std::byte* scratch,
               float* out, std::int64_t out_stride,
               const std::uint8_t* next_strip)
      : kernels_(kernels),
        format_(kernels.linear.formats[static_cast<int>(weight.format())]),
        weight_(weight),
        strip_(strip),
        rows_(rows),
        low_rank_(low_rank),
        sums_(reinterpret_cast<float*>(scratch)),
        unpacked_(reinterpret_cast<std::uint8_t*>(
            scratch + kTileFloats * static_cast<std::int64_t>(sizeof(float)))),
        out_(out),
        out_stride_(out_stride),
        next_strip_(next_strip),
        is_float_(IsFloatFormat(weight.format())) {
    const std::int64_t columns = weight.gated() ? 16 : kStripRows;
    first_column_ = strip * columns;
    columns_ = static_cast<int>(
        std::min(columns, weight.out_features() - first_column_));
    plain_ = !weight.gated() && weight.bias() == nullptr && low_rank.empty() &&
             columns_ == kStripRows;
    const std::int64_t direct_rows =
        is_float_ ? kernels.linear.float_tile_rows : kernels.linear.direct_rows;
    unpacks_ = format_.unpack != nullptr && rows.plan.rows > direct_rows;
    args_.table = PanelTable(weight.dtype());
    multiply_ = unpacks_ ? format_.unpacked : format_.direct;
  }

  void Run(std::int64_t tile_begin, std::int64_t tile_end) {
    const std::int64_t first = rows_.plan.begin(tile_begin);
    const std::int64_t count = rows_.plan.begin(tile_end) - first;
    if (tile_end - tile_begin == 1 && !unpacks_) {
      if (next_strip_ != nullptr) {
        args_.next_strip = next_strip_;
      } else {
        SetPrefetch(kPrefetchBytes, 1);
      }
      TileByTile(tile_begin, tile_end);
    } else if (count > (is_float_ ? kPiecewiseFloatRows : kPiecewiseIntRows)) {
      TileByTile(tile_begin, tile_end);
    } else {
      PieceByPiece(tile_begin, tile_end);
      Finish(first, static_cast<int>(count), sums_);
    }
  }

 private:
  // Fetches what lies `distance` bytes ahead of the weights while `tiles` tiles
  // are multiplied, an equal share with each.
  void SetPrefetch(std::int64_t distance, std::int64_t tiles) {
    const std::int64_t blocks = rows_.features / (is_float_ ? 4 : kBlockSize);
    const std::int64_t lines =
        (weight_.strip_bytes() + kLineBytes - 1) / kLineBytes;
    const std::int64_t turns = std::max<std::int64_t>(1, blocks * tiles);
    args_.prefetch = weight_.strip(strip_) + distance;
    args_.prefetch_lines = static_cast<int>((lines + turns - 1) / turns);
  }

  // Points the arguments at features [begin, begin + count) of the strip.
  void SetWeights(std::int64_t begin, std::int64_t count) {
    args_.weights = weight_.strip(strip_) + StripBytes(weight_.format(), begin);
    args_.k = count;
    if (!unpacks_) return;
    format_.unpack(args_.weights, args_.table, count, unpacked_);
    args_.weights = unpacked_;
  }

  void TileByTile(std::int64_t tile_begin, std::int64_t tile_end) {
    SetWeights(0, rows_.features);
    for (std::int64_t i = tile_begin; i < tile_end; ++i) {
      const std::int64_t first = rows_.plan.begin(i);
      const int size = rows_.plan.size(i);
      float* const out_tile = out_ + first * out_stride_ + first_column_;
      args_.activations = rows_.tile(i);
      args_.out = plain_ ? out_tile : sums_;
      args_.out_stride = plain_ ? out_stride_ : kStripRows;
      multiply_[size](args_);
      if (!plain_) Finish(first, size, sums_);
    }
  }

  void PieceByPiece(std::int64_t tile_begin, std::int64_t tile_end) {
    const std::int64_t piece = is_float_ ? kPieceOfFloats : kPieceOfInts;
    const std::int64_t first = rows_.plan.begin(tile_begin);
    args_.out_stride = kStripRows;
    for (std::int64_t k = 0; k < rows_.features; k += piece) {
      const std::int64_t count = std::min(piece, rows_.features - k);
      SetWeights(k, count);
      SetPrefetch(StripBytes(weight_.format(), k + count),
                  tile_end - tile_begin);
      args_.accumulate = k > 0;
      for (std::int64_t i = tile_begin; i < tile_end; ++i) {
        args_.activations = rows_.tile(i, k);
        args_.out = sums_ + (rows_.plan.begin(i) - first) * kStripRows;
        multiply_[rows_.plan.size(i)](args_);
        // The next tile goes on fetching where this one ended.
        args_.prefetch += args_.prefetch_lines * kLineBytes *
                          (count / (is_float_ ? 4 : kBlockSize));
      }
    }
  }

  // Bias, pairs and gate; then the sums [rows][32] go to the result.
  void Finish(std::int64_t first_row, int rows, float* sums) {
    Complete(kernels_, weight_, strip_, first_row, rows, low_rank_, sums);
    float* const out = out_ + first_row * out_stride_ + first_column_;
    for (int t = 0; t < rows; ++t) {
      float* const row = sums + t * kStripRows;
      if (weight_.gated()) {
        kernels_.rows.gated_silu(row, row + 16, columns_,
                                 out + t * out_stride_);
      } else {
        std::copy(row, row + columns_, out + t * out_stride_);
      }
    }
  }

  const Kernels& kernels_;
  const FormatKernels& format_;
  const PackedLinear& weight_;
  const std::int64_t strip_;
  const PreparedRows& rows_;
  const std::span<const LowRankProduct> low_rank_;
  float* const sums_;  // [kPiecewiseFloatRows][32]
  std::uint8_t* const unpacked_;
  float* const out_;
  const std::int64_t out_stride_;
  const std::uint8_t* const next_strip_;
  const bool is_float_;
  std::int64_t first_column_ = 0;
  int columns_ = 0;
  bool plain_ = false;  // sums are the result
  bool unpacks_ = false;
  const TileFn* multiply_ = nullptr;
  TileArgs args_;
};

}  // namespace

TilePlan IntTilePlan(const LinearKernels& kernels, std::int64_t rows) {
  return TilePlan(rows, kernels.int_tile_rows);
}

TilePlan FloatTilePlan(const LinearKernels& kernels, std::int64_t rows) {
  return TilePlan(rows, kernels.float_tile_rows);
}

const void* PreparedRows::tile(std::int64_t index, std::int64_t k) const {
  const std::int64_t row = plan.begin(index);
  const int size = plan.size(index);
  if (float_tiles != nullptr) return float_tiles + row * features + k * size;
  return int_tiles + IntTileBytes(row, features) + IntTileBytes(size, k);
}

std::int64_t StripScratchBytes(std::int64_t features) {
  // Unpacked floats take the most.
  return kTileFloats * static_cast<std::int64_t>(sizeof(float)) +
         UnpackedStripBytes(PanelFormat::kF16, features);
}

std::int64_t StripGrain(const PackedLinear& weight, std::int64_t rows) {
  // What one core of a server of 2023 reads from memory and multiplies; only
  // the order of magnitude matters.
  constexpr double kBytesPerUs = 12e3;
  constexpr double kOperationsPerUs = 400e3;
  constexpr double kClaimUs = 4;
  const double strip_us =
      static_cast<double>(weight.strip_bytes()) / kBytesPerUs +
      2.0 * kStripRows * static_cast<double>(weight.in_features() * rows) /
          kOperationsPerUs;
  return std::max(std::int64_t{1},
                  static_cast<std::int64_t>(kClaimUs / strip_us));
}

const std::uint8_t* NextStrip(const PackedLinear& weight,
                              const PackedLinear& next, std::int64_t strip) {
  return next.strip_bytes() == weight.strip_bytes() ? next.strip(strip)
                                                    : nullptr;
}

void MultiplyStrip(const Kernels& kernels, const PackedLinear& weight,
                   std::int64_t strip, const PreparedRows& rows,
                   std::int64_t tile_begin, std::int64_t tile_end,
                   std::span<const LowRankProduct> low_rank, std::byte* scratch,
                   float* out, std::int64_t out_stride,
                   const std::uint8_t* next_strip) {
  StripProduct(kernels, weight, strip, rows, low_rank, scratch, out, out_stride,
               next_strip)
      .Run(tile_begin, tile_end);
}

}  // namespace fucina::ops
