#include "core/ops/strip_product.h"

#include "fucina/diag/check.h"

namespace fucina::ops {
namespace {

constexpr std::int64_t kTileFloats = kMaxTileRows * kStripRows;

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

}  // namespace

TilePlan IntTilePlan(const LinearKernels& kernels, std::int64_t rows) {
  return TilePlan(rows, rows <= kernels.direct_rows ? kernels.direct_tile_rows
                                                    : kernels.int_tile_rows);
}

TilePlan FloatTilePlan(const LinearKernels& kernels, std::int64_t rows) {
  return TilePlan(rows, kernels.float_tile_rows);
}

const void* PreparedRows::tile(std::int64_t index) const {
  const std::int64_t row = plan.begin(index);
  if (float_tiles != nullptr) return float_tiles + row * features;
  return int_tiles + IntTileBytes(row, features);
}

std::int64_t StripScratchBytes(std::int64_t features) {
  // The largest unpacked block has two scales and two minima per row.
  const std::int64_t unpacked =
      UnpackedStripBytes(PanelFormat::kK2, (features + 255) / 256 * 256);
  return kTileFloats * static_cast<std::int64_t>(sizeof(float)) + unpacked;
}

std::int64_t StripGrain(const ThreadPool& pool, std::int64_t strips,
                        const PackedLinear& weight, std::int64_t rows) {
  // What one core of a server of 2023 reads from memory and multiplies; only
  // the order of magnitude matters.
  constexpr double kBytesPerUs = 12e3;
  constexpr double kOperationsPerUs = 400e3;
  constexpr double kClaimUs = 20;
  const double strip_us =
      static_cast<double>(weight.strip_bytes()) / kBytesPerUs +
      2.0 * kStripRows * static_cast<double>(weight.in_features() * rows) /
          kOperationsPerUs;
  return std::clamp(static_cast<std::int64_t>(kClaimUs / strip_us),
                    std::int64_t{1}, pool.GrainFor(strips));
}

void MultiplyStrip(const Kernels& kernels, const PackedLinear& weight,
                   std::int64_t strip, const PreparedRows& rows,
                   std::int64_t tile_begin, std::int64_t tile_end,
                   std::span<const LowRankProduct> low_rank, std::byte* scratch,
                   float* out, std::int64_t out_stride) {
  const FormatKernels& format =
      kernels.linear.formats[static_cast<int>(weight.format())];
  float* const tile = reinterpret_cast<float*>(scratch);
  auto* const unpacked = reinterpret_cast<std::uint8_t*>(
      scratch + kTileFloats * static_cast<std::int64_t>(sizeof(float)));

  TileArgs args;
  args.weights = weight.strip(strip);
  args.table = PanelTable(weight.dtype());
  args.k = rows.features;
  const TileFn* multiply = format.direct;
  if (format.unpack != nullptr && rows.plan.rows > kernels.linear.direct_rows) {
    format.unpack(args.weights, args.table, args.k, unpacked);
    args.weights = unpacked;
    multiply = format.unpacked;
  }

  const int strip_columns = weight.gated() ? 16 : kStripRows;
  const std::int64_t first_column = strip * strip_columns;
  const int columns = static_cast<int>(std::min<std::int64_t>(
      strip_columns, weight.out_features() - first_column));
  const bool plain = !weight.gated() && weight.bias() == nullptr &&
                     low_rank.empty() && columns == kStripRows;
  for (std::int64_t i = tile_begin; i < tile_end; ++i) {
    const std::int64_t first_row = rows.plan.begin(i);
    const int size = rows.plan.size(i);
    float* const out_tile = out + first_row * out_stride + first_column;
    args.activations = rows.tile(i);
    args.out = plain ? out_tile : tile;
    args.out_stride = plain ? out_stride : kStripRows;
    multiply[size](args);
    if (plain) continue;
    Complete(kernels, weight, strip, first_row, size, low_rank, tile);
    for (int t = 0; t < size; ++t) {
      float* const row = tile + t * kStripRows;
      if (weight.gated()) {
        kernels.rows.gated_silu(row, row + 16, columns,
                                out_tile + t * out_stride);
      } else {
        std::copy(row, row + columns, out_tile + t * out_stride);
      }
    }
  }
}

}  // namespace fucina::ops
