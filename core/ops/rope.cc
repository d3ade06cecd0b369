#include "fucina/ops/rope.h"

#include <atomic>
#include <cmath>
#include <mutex>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/ops/row_grain.h"
#include "fucina/diag/check.h"
#include "fucina/diag/status_macros.h"
#include "fucina/kernels/kernels.h"
#include "fucina/parallel/thread_pool.h"
#include "fucina/tensor/buffer.h"

namespace fucina::ops {
namespace {

// Radians per position of pair `i`, and what multiplies cosine and sine.
struct Frequencies {
  std::vector<double> radians;
  double magnitude = 1.0;
};

Frequencies MakeFrequencies(const RopeSpec& spec) {
  const RopeScaling& scaling = spec.scaling;
  const int dim = spec.rotary_dim;
  const double squeeze =
      scaling.kind == RopeScalingKind::kNone ? 1.0 : 1.0 / scaling.factor;
  const bool yarn =
      scaling.kind == RopeScalingKind::kYarn && scaling.ext_factor != 0.0;

  // The pair that turns `rotations` times over the original context.
  const auto pair_of = [&](double rotations) {
    return dim *
           std::log(scaling.original_context_length /
                    (rotations * 2.0 * std::numbers::pi)) /
           (2.0 * std::log(spec.theta));
  };
  double low = 0.0;
  double high = 0.0;
  if (yarn) {
    // Pairs, although the bound is the number of elements: as the reference
    // implementations have it.
    low = std::max(0.0, std::floor(pair_of(scaling.beta_fast)));
    high = std::min(dim - 1.0, std::ceil(pair_of(scaling.beta_slow)));
  }

  Frequencies result;
  result.magnitude = scaling.attn_factor;
  if (yarn) result.magnitude *= 1.0 + 0.1 * std::log(scaling.factor);
  for (int i = 0; i < dim / 2; ++i) {
    const double factor = spec.factors.empty() ? 1.0 : spec.factors[i];
    const double kept = std::pow(spec.theta, -2.0 * i / dim) / factor;
    double mix = 0.0;
    if (yarn) {
      const double ramp = (i - low) / std::max(0.001, high - low);
      mix = (1.0 - std::min(1.0, std::max(0.0, ramp))) * scaling.ext_factor;
    }
    result.radians.push_back(squeeze * kept * (1.0 - mix) + kept * mix);
  }
  return result;
}

}  // namespace

struct RopeTable::Impl {
  RopeSpec spec;
  Frequencies frequencies;
  std::mutex growing;
  std::vector<Buffer> memory;  // guarded by `growing`
  int prepared_runs = 0;       // guarded by `growing`
  std::atomic<int> prepared_positions = 0;
  // [kRunPositions][rotary_dim] each; written once, before
  // prepared_positions covers it.
  std::unique_ptr<const float*[]> runs;
};

RopeTable::RopeTable(RopeSpec spec) : impl_(std::make_unique<Impl>()) {
  FUCINA_CHECK(spec.rotary_dim > 0 && spec.rotary_dim % 2 == 0)
      << "rotary_dim " << spec.rotary_dim;
  FUCINA_CHECK(spec.theta > 0.0) << "theta " << spec.theta;
  FUCINA_CHECK(spec.scaling.factor > 0.0) << "factor " << spec.scaling.factor;
  FUCINA_CHECK(spec.factors.empty() ||
               static_cast<int>(spec.factors.size()) == spec.rotary_dim / 2)
      << spec.factors.size() << " factors for " << spec.rotary_dim / 2;
  FUCINA_CHECK(spec.scaling.kind != RopeScalingKind::kYarn ||
               spec.scaling.original_context_length > 0);
  impl_->frequencies = MakeFrequencies(spec);
  impl_->runs = std::make_unique<const float*[]>(kMaxPositions / kRunPositions);
  impl_->spec = std::move(spec);
}

RopeTable::~RopeTable() = default;

const RopeSpec& RopeTable::spec() const { return impl_->spec; }

absl::Status RopeTable::Prepare(int num_positions) const {
  Impl& impl = *impl_;
  if (num_positions <=
      impl.prepared_positions.load(std::memory_order_acquire)) {
    return absl::OkStatus();
  }
  if (num_positions > kMaxPositions) {
    return absl::OutOfRangeError(absl::StrCat(
        "a context of ", num_positions, " tokens exceeds the limit of ",
        kMaxPositions, "; ask for a smaller context"));
  }
  const std::lock_guard<std::mutex> lock(impl.growing);
  const int pairs = impl.spec.rotary_dim / 2;
  while (impl.prepared_runs * kRunPositions < num_positions) {
    Buffer buffer;
    FUCINA_ASSIGN_OR_RETURN(
        buffer, Buffer::Allocate(sizeof(float) * kRunPositions * 2 * pairs));
    float* row = buffer.as<float>();
    for (int i = 0; i < kRunPositions; ++i, row += 2 * pairs) {
      const double position = impl.prepared_runs * kRunPositions + i;
      for (int pair = 0; pair < pairs; ++pair) {
        const double angle = position * impl.frequencies.radians[pair];
        row[pair] =
            static_cast<float>(impl.frequencies.magnitude * std::cos(angle));
        row[pairs + pair] =
            static_cast<float>(impl.frequencies.magnitude * std::sin(angle));
      }
    }
    impl.runs[impl.prepared_runs] = buffer.as<float>();
    impl.memory.push_back(std::move(buffer));
    ++impl.prepared_runs;
    impl.prepared_positions.store(impl.prepared_runs * kRunPositions,
                                  std::memory_order_release);
  }
  return absl::OkStatus();
}

const float* RopeTable::Row(int position) const {
  FUCINA_CHECK(position >= 0 && position < impl_->prepared_positions.load(
                                               std::memory_order_acquire))
      << "position " << position << " is not prepared";
  return impl_->runs[position / kRunPositions] +
         static_cast<std::int64_t>(position % kRunPositions) *
             impl_->spec.rotary_dim;
}

void Rope(const Context& context, const RopeTable& table,
          std::span<const std::int32_t> positions, int head_dim, Tensor x) {
  const std::int64_t size = x.row_size();
  FUCINA_CHECK_EQ(x.num_rows(), static_cast<std::int64_t>(positions.size()));
  FUCINA_CHECK(head_dim > 0 && size % head_dim == 0)
      << "rows of " << size << ", heads of " << head_dim;
  FUCINA_CHECK_LE(table.spec().rotary_dim, head_dim);
  const int pairs = table.spec().rotary_dim / 2;
  const auto rotate = table.spec().pairing == RopePairing::kHalf
                          ? context.kernels.rows.rope_half
                          : context.kernels.rows.rope_interleaved;
  context.pool.ParallelFor(
      x.num_rows(), RowGrain(size),
      [&](std::int64_t begin, std::int64_t end, int /*worker*/) {
        for (std::int64_t row = begin; row < end; ++row) {
          const float* const angles = table.Row(positions[row]);
          float* const data = x.mutable_row_f32(row);
          for (std::int64_t head = 0; head < size; head += head_dim) {
            rotate(angles, pairs, data + head);
          }
        }
      });
}

void NormAndRope(const Context& context, const RopeTable& table,
                 std::span<const std::int32_t> positions, int head_dim,
                 float eps, std::span<const NormedHeads> tensors) {
  FUCINA_CHECK(head_dim > 0 && table.spec().rotary_dim <= head_dim)
      << "heads of " << head_dim;
  std::int64_t row_size = 0;  // of all tensors together
  for (const NormedHeads& heads : tensors) {
    FUCINA_CHECK_EQ(heads.x.num_rows(),
                    static_cast<std::int64_t>(positions.size()));
    FUCINA_CHECK_EQ(heads.x.row_size() % head_dim, 0);
    FUCINA_CHECK(heads.weight.empty() ||
                 static_cast<int>(heads.weight.size()) == head_dim)
        << heads.weight.size() << " weights for heads of " << head_dim;
    row_size += heads.x.row_size();
  }
  const RowKernels& kernels = context.kernels.rows;
  const int pairs = table.spec().rotary_dim / 2;
  const auto rotate = table.spec().pairing == RopePairing::kHalf
                          ? kernels.rope_half
                          : kernels.rope_interleaved;
  context.pool.ParallelFor(
      static_cast<std::int64_t>(positions.size()), RowGrain(row_size),
      [&](std::int64_t begin, std::int64_t end, int /*worker*/) {
        for (std::int64_t row = begin; row < end; ++row) {
          const float* const angles = table.Row(positions[row]);
          for (const NormedHeads& heads : tensors) {
            float* const data = heads.x.mutable_row_f32(row);
            for (std::int64_t at = 0; at < heads.x.row_size(); at += head_dim) {
              if (!heads.weight.empty()) {
                kernels.rms_norm(data + at, heads.weight.data(), eps, head_dim,
                                 data + at);
              }
              rotate(angles, pairs, data + at);
            }
          }
        }
      });
}

}  // namespace fucina::ops
