// Rows are counting-sorted by expert; a (row, slot) pair has a place in that
// order, and everything between the input and the sum over slots is kept by
// place. An expert's rows are neighbours there, so they form tiles.
#include "fucina/ops/experts.h"

#include <algorithm>
#include <cstring>

#include "core/ops/strip_product.h"
#include "fucina/diag/check.h"
#include "fucina/diag/status_macros.h"
#include "fucina/kernels/kernels.h"
#include "fucina/parallel/thread_pool.h"

namespace fucina::ops {
namespace {

constexpr std::int64_t kFloat = sizeof(float);
constexpr std::int64_t kSerialValues = 16384;

std::int64_t Padded(std::int64_t features) {
  return (features + kBlockSize - 1) / kBlockSize * kBlockSize;
}

// Floats from one row of results to the next: rows a multiple of 4 KiB apart
// would fall on the same few sets of every cache.
std::int64_t RowStride(std::int64_t features) { return features + 16; }

// Copies one quantized row between tiles of different widths.
void CopyTileRow(const std::uint8_t* from, std::uint8_t* to, int to_rows,
                 int to_row, std::int64_t features) {
  for (std::int64_t b = 0; b < features / kBlockSize; ++b) {
    std::memcpy(to + to_row * kBlockSize, from, kBlockSize);
    std::uint8_t* words = to + to_rows * kBlockSize + to_row * 4;
    for (int w = 0; w < (kActivationBlockBytes - kBlockSize) / 4; ++w) {
      std::memcpy(words + w * to_rows * 4, from + kBlockSize + w * 4, 4);
    }
    from += kActivationBlockBytes;
    to += to_rows * kActivationBlockBytes;
  }
}

// Where the parts of the scratch memory begin.
struct ScratchLayout {
  std::int64_t bytes = 0;
  std::int64_t Take(std::int64_t size) {
    const std::int64_t begin = bytes;
    bytes += (size + 63) / 64 * 64;
    return begin;
  }
};

struct ScratchParts {
  std::int64_t offsets;      // i32 [experts + 1], places of each expert
  std::int64_t used;         // i32 [experts], the experts that have rows
  std::int64_t strip_ends;   // i64 [2 * experts], running sum of strips
  std::int64_t pair_of;      // i32 [pairs], the pair at a place
  std::int64_t place_of;     // i32 [pairs], -1 for a skipped pair
  std::int64_t row_tiles;    // [rows] quantized rows, tiles of one
  std::int64_t in_tiles;     // [pairs] gathered
  std::int64_t float_tiles;  // [pairs][widest] f32, for float weights
  std::int64_t gate;         // [pairs][RowStride(ffn)] f32
  std::int64_t up;           // [pairs][RowStride(ffn)] f32
  std::int64_t mid_tiles;    // [pairs] quantized
  std::int64_t down;         // [pairs][RowStride(hidden)] f32
  std::int64_t workers;
  std::int64_t worker_bytes;
  std::int64_t total;
};

ScratchParts LayOut(std::int64_t rows, std::int64_t experts, std::int64_t used,
                    std::int64_t hidden, std::int64_t ffn, int threads) {
  const std::int64_t pairs = rows * used;
  const std::int64_t widest = std::max(hidden, ffn);
  ScratchLayout layout;
  ScratchParts parts;
  parts.offsets = layout.Take((experts + 1) * 4);
  parts.used = layout.Take(experts * 4);
  parts.strip_ends = layout.Take(2 * experts * 8);
  parts.pair_of = layout.Take(pairs * 4);
  parts.place_of = layout.Take(pairs * 4);
  parts.row_tiles = layout.Take(IntTileBytes(rows, Padded(hidden)));
  parts.in_tiles = layout.Take(IntTileBytes(pairs, Padded(hidden)));
  parts.float_tiles = layout.Take(pairs * widest * kFloat);
  parts.gate = layout.Take(pairs * RowStride(ffn) * kFloat);
  parts.up = layout.Take(pairs * RowStride(ffn) * kFloat);
  parts.mid_tiles = layout.Take(IntTileBytes(pairs, Padded(ffn)));
  parts.down = layout.Take(pairs * RowStride(hidden) * kFloat);
  parts.worker_bytes = (StripScratchBytes(widest) + 4095) / 4096 * 4096;
  parts.workers = layout.Take(threads * parts.worker_bytes);
  parts.total = layout.bytes;
  return parts;
}

}  // namespace

class ExpertRunner {
 public:
  ExpertRunner(const Context& context, const Tensor& x,
               const ExpertChoice& choice,
               std::span<const ExpertWeights* const> experts,
               ExpertScratch& scratch, const Tensor& out)
      : pool_(context.pool),
        kernels_(context.kernels),
        x_(x),
        choice_(choice),
        experts_(experts),
        scratch_(scratch),
        out_(out),
        rows_(x.num_rows()),
        pairs_(rows_ * choice.num_used),
        parts_(LayOut(scratch.max_rows_, scratch.num_experts_,
                      scratch.num_used_, scratch.hidden_size_,
                      scratch.ffn_size_, scratch.num_threads_)) {}

  void Run() {
    Check();
    SortPairs();
    PrepareInput();
    MultiplyFirst();
    PrepareMiddle();
    MultiplyDown();
    SumSlots();
  }

 private:
  template <typename T>
  T* At(std::int64_t offset) const {
    return reinterpret_cast<T*>(scratch_.memory_.data() + offset);
  }
  std::int64_t hidden() const { return scratch_.hidden_size_; }
  std::int64_t ffn() const { return scratch_.ffn_size_; }

  void Check() const {
    FUCINA_CHECK_LE(rows_, scratch_.max_rows_);
    FUCINA_CHECK_LE(choice_.num_used, scratch_.num_used_);
    FUCINA_CHECK_EQ(x_.row_size(), hidden());
    FUCINA_CHECK_EQ(out_.num_rows(), rows_);
    FUCINA_CHECK_EQ(out_.row_size(), hidden());
    FUCINA_CHECK_LE(experts_.size(),
                    static_cast<std::size_t>(scratch_.num_experts_));
    FUCINA_CHECK_LE(pool_.num_threads(), scratch_.num_threads_);
    FUCINA_CHECK_EQ(choice_.experts.size(), static_cast<std::size_t>(pairs_));
    FUCINA_CHECK_EQ(choice_.weights.size(), static_cast<std::size_t>(pairs_));
  }

  bool Skipped(std::int64_t pair) const {
    const auto at = static_cast<std::size_t>(pair);
    if (choice_.weights[at] != 0) return false;
    for (std::int64_t p = pair - pair % choice_.num_used; p < pair; ++p) {
      if (choice_.experts[static_cast<std::size_t>(p)] == choice_.experts[at]) {
        return true;
      }
    }
    return false;
  }

  void SortPairs() {
    const auto count = static_cast<std::int64_t>(experts_.size());
    auto* const offsets = At<std::int32_t>(parts_.offsets);
    auto* const pair_of = At<std::int32_t>(parts_.pair_of);
    auto* const place_of = At<std::int32_t>(parts_.place_of);
    std::fill(offsets, offsets + count + 1, 0);
    for (std::int64_t p = 0; p < pairs_; ++p) {
      const std::int32_t e = choice_.experts[static_cast<std::size_t>(p)];
      FUCINA_CHECK(e >= 0 && e < count) << "expert " << e << " of " << count;
      if (!Skipped(p)) ++offsets[e + 1];
    }
    num_used_ = 0;
    auto* const used = At<std::int32_t>(parts_.used);
    for (std::int64_t e = 0; e < count; ++e) {
      if (offsets[e + 1] > 0) {
        FUCINA_CHECK(experts_[static_cast<std::size_t>(e)] != nullptr)
            << "expert " << e;
        CheckShapes(*experts_[static_cast<std::size_t>(e)]);
        used[num_used_++] = static_cast<std::int32_t>(e);
      }
      offsets[e + 1] += offsets[e];
    }
    // Filling moves each expert's begin to its end, the next one's begin.
    for (std::int64_t p = 0; p < pairs_; ++p) {
      const std::int32_t e = choice_.experts[static_cast<std::size_t>(p)];
      if (Skipped(p)) {
        place_of[p] = -1;
        continue;
      }
      place_of[p] = offsets[e];
      pair_of[offsets[e]++] = static_cast<std::int32_t>(p);
    }
    for (std::int64_t e = count; e > 0; --e) offsets[e] = offsets[e - 1];
    offsets[0] = 0;
    places_ = offsets[count];
    // Long pieces of work first, so that none is left alone at the end.
    std::sort(used, used + num_used_, [&](std::int32_t a, std::int32_t b) {
      const std::int32_t rows_a = offsets[a + 1] - offsets[a];
      const std::int32_t rows_b = offsets[b + 1] - offsets[b];
      return rows_a != rows_b ? rows_a > rows_b : a < b;
    });
  }

  void CheckShapes(const ExpertWeights& expert) const {
    if (!expert.gate_up.empty()) {
      FUCINA_CHECK(expert.gate_up.gated());
      FUCINA_CHECK_EQ(expert.gate_up.in_features(), hidden());
      FUCINA_CHECK_EQ(expert.gate_up.out_features(), ffn());
    } else {
      FUCINA_CHECK_EQ(expert.gate.in_features(), hidden());
      FUCINA_CHECK_EQ(expert.gate.out_features(), ffn());
      FUCINA_CHECK_EQ(expert.up.in_features(), hidden());
      FUCINA_CHECK_EQ(expert.up.out_features(), ffn());
    }
    FUCINA_CHECK_EQ(expert.down.in_features(), ffn());
    FUCINA_CHECK_EQ(expert.down.out_features(), hidden());
  }

  // The expert whose rows include `place`.
  std::int32_t ExpertAt(std::int64_t place) const {
    return choice_.experts[static_cast<std::size_t>(
        At<std::int32_t>(parts_.pair_of)[place])];
  }
  const ExpertWeights& Weights(std::int32_t e) const {
    return *experts_[static_cast<std::size_t>(e)];
  }

  // Calls body(begin, end) over [0, count), on all threads when it pays.
  template <typename Body>
  void For(std::int64_t count, std::int64_t values_each, Body body) {
    const bool serial = count * values_each < kSerialValues;
    pool_.ParallelFor(
        count,
        serial ? std::max<std::int64_t>(1, count) : pool_.GrainFor(count, 4),
        [&](std::int64_t begin, std::int64_t end, int) { body(begin, end); });
  }

  TilePlan PlanFor(std::int32_t e, PanelFormat format) const {
    const auto* offsets = At<std::int32_t>(parts_.offsets);
    const std::int64_t rows = offsets[e + 1] - offsets[e];
    return IsFloatFormat(format) ? FloatTilePlan(kernels_.linear, rows)
                                 : IntTilePlan(kernels_.linear, rows);
  }

  // A row of f32 into its place among float tiles.
  void PutFloats(const float* from, std::int64_t features, std::int64_t place,
                 PanelFormat format) {
    const std::int32_t e = ExpertAt(place);
    const std::int64_t begin = At<std::int32_t>(parts_.offsets)[e];
    const TilePlan plan = PlanFor(e, format);
    const std::int64_t tile = plan.TileOf(place - begin);
    const std::int64_t first = plan.begin(tile);
    const int size = plan.size(tile);
    float* to = At<float>(parts_.float_tiles) + (begin + first) * features +
                (place - begin - first);
    for (std::int64_t k = 0; k < features; ++k) to[k * size] = from[k];
  }

  // The matrices that read the input of expert `e`, for their format.
  static const PackedLinear& First(const ExpertWeights& expert) {
    return expert.gate_up.empty() ? expert.gate : expert.gate_up;
  }
  static bool Needs(const ExpertWeights& expert, bool is_float) {
    if (!expert.gate_up.empty()) {
      return IsFloatFormat(expert.gate_up.format()) == is_float;
    }
    return IsFloatFormat(expert.gate.format()) == is_float ||
           IsFloatFormat(expert.up.format()) == is_float;
  }

  void PrepareInput() {
    bool any_int = false;
    const auto* used = At<std::int32_t>(parts_.used);
    for (std::int64_t u = 0; u < num_used_; ++u) {
      any_int = any_int || Needs(Weights(used[u]), /*is_float=*/false);
    }
    auto* const row_tiles = At<std::uint8_t>(parts_.row_tiles);
    const std::int64_t row_bytes =
        any_int ? IntTileBytes(1, hidden()) : std::int64_t{0};
    if (any_int) {
      For(rows_, hidden(), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          kernels_.linear.quantize_row(x_.row_f32(row), hidden(), 1, 0,
                                       row_tiles + row * row_bytes);
        }
      });
    }
    For(places_, hidden(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t place = begin; place < end; ++place) {
        const std::int64_t row =
            At<std::int32_t>(parts_.pair_of)[place] / choice_.num_used;
        const std::int32_t e = ExpertAt(place);
        const ExpertWeights& expert = Weights(e);
        if (Needs(expert, /*is_float=*/false)) {
          const std::int64_t first_place = At<std::int32_t>(parts_.offsets)[e];
          const TilePlan plan = PlanFor(e, PanelFormat::kQ8);
          const std::int64_t tile = plan.TileOf(place - first_place);
          const std::int64_t first = first_place + plan.begin(tile);
          CopyTileRow(
              row_tiles + row * row_bytes,
              At<std::uint8_t>(parts_.in_tiles) + IntTileBytes(first, hidden()),
              plan.size(tile), static_cast<int>(place - first), hidden());
        }
        if (Needs(expert, /*is_float=*/true)) {
          PutFloats(x_.row_f32(row), hidden(), place, PanelFormat::kF32);
        }
      }
    });
  }

  PreparedRows Prepared(std::int32_t e, const PackedLinear& weight,
                        std::int64_t features, std::int64_t int_tiles) const {
    const std::int64_t begin = At<std::int32_t>(parts_.offsets)[e];
    PreparedRows rows;
    rows.features = features;
    rows.plan = PlanFor(e, weight.format());
    if (IsFloatFormat(weight.format())) {
      rows.float_tiles = At<float>(parts_.float_tiles) + begin * features;
    } else {
      rows.int_tiles =
          At<std::uint8_t>(int_tiles) + IntTileBytes(begin, features);
    }
    return rows;
  }

  // Multiplies every used expert's rows by up to two of its matrices. A matrix
  // is named by `matrix(expert, i)`, null for none; results go to `outs[i]`.
  template <typename Matrix>
  void Multiply(std::int64_t features, std::int64_t int_tiles,
                std::int64_t out_stride, const std::int64_t (&outs)[2],
                Matrix matrix) {
    const auto* used = At<std::int32_t>(parts_.used);
    auto* const ends = At<std::int64_t>(parts_.strip_ends);
    std::int64_t strips = 0;
    for (std::int64_t i = 0; i < 2 * num_used_; ++i) {
      const PackedLinear* weight =
          matrix(Weights(used[i / 2]), static_cast<int>(i % 2));
      if (weight != nullptr) strips += weight->num_strips();
      ends[i] = strips;
    }
    const std::int64_t grain = StripGrain(
        *matrix(Weights(used[0]), 0), (places_ + num_used_ - 1) / num_used_);
    struct Place {
      std::int64_t matrix = 0;  // two of each used expert
      const PackedLinear* weight = nullptr;
      std::int64_t strip = 0;
    };
    const auto find = [&](std::int64_t s) {
      const std::int64_t i =
          std::upper_bound(ends, ends + 2 * num_used_, s) - ends;
      return Place{i, matrix(Weights(used[i / 2]), static_cast<int>(i % 2)),
                   s - (i == 0 ? 0 : ends[i - 1])};
    };
    pool_.ParallelForShrinking(
        strips, grain,
        [&](std::int64_t begin, std::int64_t end, std::int64_t next,
            int worker) {
          Place place = find(begin);
          for (std::int64_t s = begin; s < end; ++s) {
            const std::int32_t e = used[place.matrix / 2];
            const PreparedRows rows =
                Prepared(e, *place.weight, features, int_tiles);
            float* const out = At<float>(outs[place.matrix % 2]) +
                               At<std::int32_t>(parts_.offsets)[e] * out_stride;
            const std::int64_t follows = s + 1 < end ? s + 1 : next;
            const Place then = follows < 0 ? Place{} : find(follows);
            MultiplyStrip(
                kernels_, *place.weight, place.strip, rows, 0, rows.plan.tiles,
                {},
                At<std::byte>(parts_.workers) + worker * parts_.worker_bytes,
                out, out_stride,
                then.weight == nullptr
                    ? nullptr
                    : NextStrip(*place.weight, *then.weight, then.strip));
            place = then;
          }
        });
  }

  void MultiplyFirst() {
    Multiply(hidden(), parts_.in_tiles, RowStride(ffn()),
             {parts_.gate, parts_.up},
             [](const ExpertWeights& expert, int i) -> const PackedLinear* {
               if (!expert.gate_up.empty()) {
                 return i == 0 ? &expert.gate_up : nullptr;
               }
               return i == 0 ? &expert.gate : &expert.up;
             });
  }

  void PrepareMiddle() {
    For(places_, ffn(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t place = begin; place < end; ++place) {
        const std::int32_t e = ExpertAt(place);
        const ExpertWeights& expert = Weights(e);
        float* const gate = At<float>(parts_.gate) + place * RowStride(ffn());
        if (expert.gate_up.empty()) {
          kernels_.rows.gated_silu(
              gate, At<float>(parts_.up) + place * RowStride(ffn()), ffn(),
              gate);
        }
        if (IsFloatFormat(expert.down.format())) {
          PutFloats(gate, ffn(), place, expert.down.format());
          continue;
        }
        const std::int64_t first_place = At<std::int32_t>(parts_.offsets)[e];
        const TilePlan plan = PlanFor(e, expert.down.format());
        const std::int64_t tile = plan.TileOf(place - first_place);
        const std::int64_t first = first_place + plan.begin(tile);
        kernels_.linear.quantize_row(
            gate, ffn(), plan.size(tile), static_cast<int>(place - first),
            At<std::uint8_t>(parts_.mid_tiles) + IntTileBytes(first, ffn()));
      }
    });
  }

  void MultiplyDown() {
    Multiply(ffn(), parts_.mid_tiles, RowStride(hidden()),
             {parts_.down, parts_.down},
             [](const ExpertWeights& expert, int i) -> const PackedLinear* {
               return i == 0 ? &expert.down : nullptr;
             });
  }

  void SumSlots() {
    const auto* place_of = At<std::int32_t>(parts_.place_of);
    For(rows_, hidden() * choice_.num_used,
        [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            float* const out = out_.mutable_row_f32(row);
            std::fill(out, out + hidden(), 0.0F);
            for (std::int64_t j = 0; j < choice_.num_used; ++j) {
              const std::int64_t pair = row * choice_.num_used + j;
              if (place_of[pair] < 0) continue;
              kernels_.linear.add_scaled(
                  At<float>(parts_.down) + place_of[pair] * RowStride(hidden()),
                  hidden(), choice_.weights[static_cast<std::size_t>(pair)],
                  out);
            }
          }
        });
  }

  ThreadPool& pool_;
  const Kernels& kernels_;
  const Tensor& x_;
  const ExpertChoice& choice_;
  std::span<const ExpertWeights* const> experts_;
  ExpertScratch& scratch_;
  const Tensor& out_;
  const std::int64_t rows_;
  const std::int64_t pairs_;
  const ScratchParts parts_;
  std::int64_t num_used_ = 0;
  std::int64_t places_ = 0;
};

absl::StatusOr<ExpertScratch> ExpertScratch::Create(
    std::int64_t max_rows, int num_experts, int num_used,
    std::int64_t hidden_size, std::int64_t ffn_size, int num_threads) {
  FUCINA_CHECK_GE(max_rows, 1);
  FUCINA_CHECK_GE(num_experts, 1);
  FUCINA_CHECK_GE(num_used, 1);
  FUCINA_CHECK_GE(num_threads, 1);
  ExpertScratch scratch;
  scratch.max_rows_ = max_rows;
  scratch.num_experts_ = num_experts;
  scratch.num_used_ = num_used;
  scratch.hidden_size_ = hidden_size;
  scratch.ffn_size_ = ffn_size;
  scratch.num_threads_ = num_threads;
  const ScratchParts parts = LayOut(max_rows, num_experts, num_used,
                                    hidden_size, ffn_size, num_threads);
  FUCINA_ASSIGN_OR_RETURN(
      scratch.memory_, Buffer::Allocate(static_cast<std::size_t>(parts.total)));
  return scratch;
}

void ExpertMixture(const Context& context, const Tensor& x,
                   const ExpertChoice& choice,
                   std::span<const ExpertWeights* const> experts,
                   ExpertScratch& scratch, const Tensor& out) {
  FUCINA_CHECK_GE(choice.num_used, 1);
  if (x.num_rows() == 0) return;
  ExpertRunner(context, x, choice, experts, scratch, out).Run();
}

}  // namespace fucina::ops
