#include "fucina/ops/activation.h"

#include <algorithm>
#include <cstdint>

#include "core/ops/row_grain.h"
#include "fucina/diag/check.h"
#include "fucina/kernels/kernels.h"
#include "fucina/parallel/thread_pool.h"

namespace fucina::ops {

void GatedSilu(const Context& context, const Tensor& gate, const Tensor& up,
               Tensor out) {
  FUCINA_CHECK_EQ(gate.num_rows(), out.num_rows());
  FUCINA_CHECK_EQ(up.num_rows(), out.num_rows());
  FUCINA_CHECK_EQ(gate.row_size(), out.row_size());
  FUCINA_CHECK_EQ(up.row_size(), out.row_size());
  const std::int64_t size = out.row_size();
  const RowKernels& rows = context.kernels.rows;
  // A single row is cut into pieces as well: feed-forward rows are long and
  // each element stands for itself.
  const std::int64_t piece = std::min<std::int64_t>(size, 4096);
  const std::int64_t pieces = (size + piece - 1) / piece;
  context.pool.ParallelFor(
      out.num_rows() * pieces, RowGrain(4 * piece),
      [&](std::int64_t begin, std::int64_t end, int /*worker*/) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t row = i / pieces;
          const std::int64_t first = i % pieces * piece;
          rows.gated_silu(gate.row_f32(row) + first, up.row_f32(row) + first,
                          std::min(piece, size - first),
                          out.mutable_row_f32(row) + first);
        }
      });
}

}  // namespace fucina::ops
