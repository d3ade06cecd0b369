#include "fucina/ops/norm.h"

#include "core/ops/row_grain.h"
#include "fucina/diag/check.h"
#include "fucina/kernels/kernels.h"
#include "fucina/parallel/thread_pool.h"

namespace fucina::ops {
namespace {

void CheckSameShape(const Tensor& a, const Tensor& b) {
  FUCINA_CHECK_EQ(a.num_rows(), b.num_rows());
  FUCINA_CHECK_EQ(a.row_size(), b.row_size());
}

}  // namespace

void RmsNorm(const Context& context, const Tensor& x,
             std::span<const float> weight, float eps, Tensor out) {
  CheckSameShape(x, out);
  const std::int64_t size = x.row_size();
  FUCINA_CHECK_EQ(size, static_cast<std::int64_t>(weight.size()));
  const RowKernels& rows = context.kernels.rows;
  context.pool.ParallelFor(
      x.num_rows(), RowGrain(size),
      [&](std::int64_t begin, std::int64_t end, int /*worker*/) {
        for (std::int64_t row = begin; row < end; ++row) {
          rows.rms_norm(x.row_f32(row), weight.data(), eps, size,
                        out.mutable_row_f32(row));
        }
      });
}

void HeadRmsNorm(const Context& context, std::span<const float> weight,
                 float eps, Tensor x) {
  const std::int64_t size = x.row_size();
  const auto head_dim = static_cast<std::int64_t>(weight.size());
  FUCINA_CHECK(head_dim > 0 && size % head_dim == 0)
      << "rows of " << size << ", heads of " << head_dim;
  const RowKernels& rows = context.kernels.rows;
  context.pool.ParallelFor(
      x.num_rows(), RowGrain(size),
      [&](std::int64_t begin, std::int64_t end, int /*worker*/) {
        for (std::int64_t row = begin; row < end; ++row) {
          float* const data = x.mutable_row_f32(row);
          for (std::int64_t head = 0; head < size; head += head_dim) {
            rows.rms_norm(data + head, weight.data(), eps, head_dim,
                          data + head);
          }
        }
      });
}

void AddInPlace(const Context& context, const Tensor& delta, Tensor x) {
  CheckSameShape(delta, x);
  const std::int64_t size = x.row_size();
  const RowKernels& rows = context.kernels.rows;
  context.pool.ParallelFor(
      x.num_rows(), RowGrain(size),
      [&](std::int64_t begin, std::int64_t end, int /*worker*/) {
        for (std::int64_t row = begin; row < end; ++row) {
          rows.add(x.row_f32(row), delta.row_f32(row), size,
                   x.mutable_row_f32(row));
        }
      });
}

void AddRmsNorm(const Context& context, const Tensor& delta,
                std::span<const float> weight, float eps, Tensor x,
                Tensor out) {
  CheckSameShape(delta, x);
  CheckSameShape(out, x);
  const std::int64_t size = x.row_size();
  FUCINA_CHECK_EQ(size, static_cast<std::int64_t>(weight.size()));
  const RowKernels& rows = context.kernels.rows;
  context.pool.ParallelFor(
      x.num_rows(), RowGrain(size),
      [&](std::int64_t begin, std::int64_t end, int /*worker*/) {
        for (std::int64_t row = begin; row < end; ++row) {
          float* const sum = x.mutable_row_f32(row);
          rows.add(sum, delta.row_f32(row), size, sum);
          rows.rms_norm(sum, weight.data(), eps, size,
                        out.mutable_row_f32(row));
        }
      });
}

}  // namespace fucina::ops
