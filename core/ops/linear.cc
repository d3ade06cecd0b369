#include "fucina/ops/linear.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/ops/strip_product.h"
#include "fucina/diag/check.h"
#include "fucina/diag/status_macros.h"

namespace fucina::ops {
namespace {

// Most jobs of one call, and most low-rank pairs of all its jobs: q, k, v or
// gate, up with room to spare.
constexpr std::size_t kMaxJobs = 16;
constexpr std::size_t kMaxPairs = 16;

// Below this many values a row-parallel phase is not worth waking anybody.
constexpr std::int64_t kSerialValues = 16384;

// A strip is unpacked again for each run of tiles it is shared out in, which
// costs about as much as multiplying it by one tile.
constexpr std::int64_t kTilesPerRun = 12;

// Half of a core's second-level cache on servers since 2021; the other half
// holds an unpacked strip and what streams through.
constexpr std::int64_t kRunBytes = 1 << 20;

std::int64_t FloatStride(const Tensor& tensor) {
  return tensor.row_stride_bytes() / static_cast<std::int64_t>(sizeof(float));
}

}  // namespace

class LinearRunner {
 public:
  LinearRunner(const Context& context, ActivationRows& x,
               std::span<const LinearJob> jobs)
      : pool_(context.pool), kernels_(context.kernels), x_(x), jobs_(jobs) {}

  void Run() {
    if (jobs_.empty()) return;
    Check();
    bool any_int = false;
    bool any_float = false;
    for (const LinearJob& job : jobs_) {
      (IsFloatFormat(job.weight.format()) ? any_float : any_int) = true;
    }
    if (any_int && !x_.has_int_tiles_) PrepareInt();
    if (any_float && !x_.has_float_tiles_) PrepareFloat();
    MultiplyLowRankInputs();
    Multiply();
  }

 private:
  void Check() const {
    FUCINA_CHECK_GE(x_.rows_, 1) << "Assign comes first";
    FUCINA_CHECK_LE(pool_.num_threads(), x_.num_threads_);
    FUCINA_CHECK_LE(jobs_.size(), kMaxJobs);
    for (const LinearJob& job : jobs_) {
      FUCINA_CHECK(!job.weight.empty());
      FUCINA_CHECK_EQ(job.weight.in_features(), x_.features_);
      FUCINA_CHECK(job.out.dtype() == DType::kF32);
      FUCINA_CHECK_EQ(job.out.num_rows(), x_.rows_);
      FUCINA_CHECK_EQ(job.out.row_size(), job.weight.out_features());
      if (job.low_rank.empty()) continue;
      const std::span<const std::int64_t> parts = job.weight.part_features();
      FUCINA_CHECK_EQ(job.low_rank.size(), parts.size());
      for (std::size_t p = 0; p < parts.size(); ++p) {
        if (job.low_rank[p] == nullptr) continue;
        const LowRank& pair = *job.low_rank[p];
        FUCINA_CHECK(pair.a.dtype() == DType::kF32 &&
                     pair.b.dtype() == DType::kF32);
        FUCINA_CHECK_EQ(pair.a.num_rows(), parts[p]);
        FUCINA_CHECK_EQ(pair.b.row_size(), x_.features_);
        FUCINA_CHECK_EQ(pair.a.row_size(), pair.b.num_rows());
      }
    }
  }

  // Calls body(begin, end) over the rows, on all threads when it pays.
  template <typename RowsBody>
  void ForRows(std::int64_t values_per_row, RowsBody body) {
    const std::int64_t rows = x_.rows_;
    const bool serial = rows * values_per_row < kSerialValues;
    pool_.ParallelFor(
        rows, serial ? rows : pool_.GrainFor(rows, 4),
        [&](std::int64_t begin, std::int64_t end, int) { body(begin, end); });
  }

  void PrepareInt() {
    const std::int64_t features = x_.features_;
    const TilePlan plan = IntTilePlan(kernels_.linear, x_.rows_);
    auto* const tiles = x_.int_tiles_.as<std::uint8_t>();
    ForRows(features, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t tile = plan.TileOf(row);
        const std::int64_t first = plan.begin(tile);
        kernels_.linear.quantize_row(x_.values_.row_f32(row), features,
                                     plan.size(tile),
                                     static_cast<int>(row - first),
                                     tiles + IntTileBytes(first, features));
      }
    });
    x_.has_int_tiles_ = true;
  }

  void PrepareFloat() {
    const std::int64_t features = x_.features_;
    const TilePlan plan = FloatTilePlan(kernels_.linear, x_.rows_);
    auto* const tiles = x_.float_tiles_.as<float>();
    ForRows(features, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t tile = plan.TileOf(row);
        const std::int64_t first = plan.begin(tile);
        const int size = plan.size(tile);
        const float* from = x_.values_.row_f32(row);
        float* to = tiles + first * features + (row - first);
        for (std::int64_t k = 0; k < features; ++k) to[k * size] = from[k];
      }
    });
    x_.has_float_tiles_ = true;
  }

  // b x of every pair, [rows, rank] one after the other.
  void MultiplyLowRankInputs() {
    std::int64_t used_rank = 0;
    std::size_t pair_count = 0;
    auto* const memory = x_.low_rank_.as<float>();
    for (const LinearJob& job : jobs_) {
      for (const LowRank* pair : job.low_rank) {
        FUCINA_CHECK_LT(pair_count, kMaxPairs);
        LowRankProduct& product = pairs_[pair_count++];
        product.pair = pair;
        if (pair == nullptr) continue;
        const std::int64_t rank = pair->b.num_rows();
        FUCINA_CHECK_LE(used_rank + rank, x_.max_rank_)
            << "ranks of the pairs of one call";
        float* const bx = memory + used_rank * x_.rows_;
        used_rank += rank;
        product.bx = bx;
        ForRows(rank * x_.features_, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            float* const y = bx + row * rank;
            std::fill(y, y + rank, 0.0F);
            kernels_.linear.add_dot_rows(
                pair->b.row_f32(0), FloatStride(pair->b), rank, x_.features_,
                x_.values_.row_f32(row), 1.0F, y);
          }
        });
      }
    }
  }

  PreparedRows Prepared(const PackedLinear& weight) const {
    PreparedRows rows;
    rows.features = x_.features_;
    if (IsFloatFormat(weight.format())) {
      rows.plan = FloatTilePlan(kernels_.linear, x_.rows_);
      rows.float_tiles = x_.float_tiles_.as<float>();
    } else {
      rows.plan = IntTilePlan(kernels_.linear, x_.rows_);
      rows.int_tiles = x_.int_tiles_.as<std::uint8_t>();
    }
    return rows;
  }

  void Multiply() {
    std::int64_t strips = 0;
    bool any_float = false;
    for (const LinearJob& job : jobs_) {
      strips += job.weight.num_strips();
      any_float = any_float || IsFloatFormat(job.weight.format());
    }
    // Runs of rows, each multiplied by every strip in turn: as many as leave a
    // run's tiles in the second-level cache, and with few strips as many as
    // give everybody something to do.
    const std::int64_t bytes =
        any_float ? x_.rows_ * x_.features_ * std::int64_t{sizeof(float)}
                  : IntTileBytes(x_.rows_, x_.features_);
    const std::int64_t wanted = 8 * std::int64_t{pool_.num_threads()};
    const std::int64_t most =
        std::max<std::int64_t>(1, x_.rows_ / (kTilesPerRun * 6));
    const std::int64_t runs =
        std::clamp(std::max((wanted + strips - 1) / strips,
                            (bytes + kRunBytes - 1) / kRunBytes),
                   std::int64_t{1}, most);
    const std::int64_t grain = StripGrain(jobs_[0].weight, x_.rows_ / runs);
    pool_.ParallelForShrinking(
        strips * runs, grain,
        [&](std::int64_t begin, std::int64_t end, std::int64_t next,
            int worker) {
          StripPlace place = FindStrip(begin % strips);
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t follows = i + 1 < end ? i + 1 : next;
            const StripPlace then =
                follows < 0 ? StripPlace{} : FindStrip(follows % strips);
            MultiplyItem(place, i / strips, runs, worker, then);
            place = then;
          }
        });
  }

  // A strip among those of all jobs.
  struct StripPlace {
    const LinearJob* job = nullptr;
    std::size_t first_pair = 0;  // of the job
    std::int64_t strip = 0;      // of its weight
  };

  StripPlace FindStrip(std::int64_t strip) const {
    StripPlace place = {.job = jobs_.data(), .strip = strip};
    while (place.strip >= place.job->weight.num_strips()) {
      place.strip -= place.job->weight.num_strips();
      place.first_pair += place.job->low_rank.size();
      ++place.job;
    }
    return place;
  }

  void MultiplyItem(const StripPlace& place, std::int64_t run,
                    std::int64_t runs, int worker, const StripPlace& next) {
    const LinearJob& job = *place.job;
    const PreparedRows rows = Prepared(job.weight);
    // Without a pair in it the list only costs: tiles then go straight out.
    std::span<const LowRankProduct> low_rank(pairs_ + place.first_pair,
                                             job.low_rank.size());
    if (std::all_of(
            low_rank.begin(), low_rank.end(),
            [](const LowRankProduct& p) { return p.pair == nullptr; })) {
      low_rank = {};
    }
    const std::int64_t tiles = rows.plan.tiles;
    MultiplyStrip(kernels_, job.weight, place.strip, rows, tiles * run / runs,
                  tiles * (run + 1) / runs, low_rank,
                  x_.worker_scratch_.data() + worker * x_.worker_scratch_bytes_,
                  job.out.mutable_row_f32(0), FloatStride(job.out),
                  next.job == nullptr
                      ? nullptr
                      : NextStrip(job.weight, next.job->weight, next.strip));
  }

  ThreadPool& pool_;
  const Kernels& kernels_;
  ActivationRows& x_;
  std::span<const LinearJob> jobs_;
  LowRankProduct pairs_[kMaxPairs];
};

absl::StatusOr<ActivationRows> ActivationRows::Create(std::int64_t max_rows,
                                                      std::int64_t max_features,
                                                      int num_threads,
                                                      std::int64_t max_rank) {
  FUCINA_CHECK_GE(max_rows, 1);
  FUCINA_CHECK_GE(max_features, 1);
  FUCINA_CHECK_GE(num_threads, 1);
  FUCINA_CHECK_GE(max_rank, 0);
  ActivationRows rows;
  rows.max_rows_ = max_rows;
  rows.max_features_ = max_features;
  rows.max_rank_ = max_rank;
  rows.num_threads_ = num_threads;
  const std::int64_t padded = (max_features + 31) / 32 * 32;
  // A worker's memory starts on a page of its own.
  rows.worker_scratch_bytes_ =
      (StripScratchBytes(max_features) + 4095) / 4096 * 4096;
  const auto allocate = [](Buffer& buffer, std::int64_t bytes) -> absl::Status {
    FUCINA_ASSIGN_OR_RETURN(buffer,
                            Buffer::Allocate(static_cast<std::size_t>(bytes)));
    return absl::OkStatus();
  };
  constexpr std::int64_t kFloat = sizeof(float);
  FUCINA_RETURN_IF_ERROR(
      allocate(rows.int_tiles_, IntTileBytes(max_rows, padded)));
  FUCINA_RETURN_IF_ERROR(
      allocate(rows.float_tiles_, max_rows * max_features * kFloat));
  FUCINA_RETURN_IF_ERROR(allocate(
      rows.low_rank_, std::max<std::int64_t>(1, max_rows * max_rank * kFloat)));
  FUCINA_RETURN_IF_ERROR(
      allocate(rows.worker_scratch_, num_threads * rows.worker_scratch_bytes_));
  return rows;
}

void ActivationRows::Assign(const Tensor& x) {
  FUCINA_CHECK(x.dtype() == DType::kF32) << x.DebugString();
  FUCINA_CHECK_EQ(x.rank(), 2);
  FUCINA_CHECK_GE(x.num_rows(), 1);
  FUCINA_CHECK_LE(x.num_rows(), max_rows_);
  FUCINA_CHECK_LE(x.row_size(), max_features_);
  values_ = x;
  rows_ = x.num_rows();
  features_ = x.row_size();
  has_int_tiles_ = false;
  has_float_tiles_ = false;
}

void Linear(const Context& context, ActivationRows& x,
            std::span<const LinearJob> jobs) {
  LinearRunner(context, x, jobs).Run();
}

void Linear(const Context& context, ActivationRows& x,
            const PackedLinear& weight, const Tensor& out) {
  const LinearJob job{.weight = weight, .out = out};
  Linear(context, x, std::span<const LinearJob>(&job, 1));
}

}  // namespace fucina::ops
