#include "fucina/ops/embedding.h"

#include "core/ops/row_grain.h"
#include "fucina/diag/check.h"
#include "fucina/kernels/quantize.h"
#include "fucina/parallel/thread_pool.h"

namespace fucina::ops {

void Embedding(const Context& context, const Tensor& table,
               std::span<const std::int32_t> tokens, Tensor out) {
  FUCINA_CHECK_EQ(table.rank(), 2);
  FUCINA_CHECK_EQ(out.num_rows(), static_cast<std::int64_t>(tokens.size()));
  if (tokens.empty()) return;
  const std::int64_t size = table.row_size();
  FUCINA_CHECK_EQ(out.row_size(), size);
  for (const std::int32_t token : tokens) {
    FUCINA_CHECK(token >= 0 && token < table.dim(0))
        << "token " << token << " of " << table.dim(0);
  }
  context.pool.ParallelFor(
      static_cast<std::int64_t>(tokens.size()), RowGrain(size),
      [&](std::int64_t begin, std::int64_t end, int /*worker*/) {
        for (std::int64_t row = begin; row < end; ++row) {
          DequantizeRow(table.dtype(), table.row_bytes(tokens[row]),
                        out.mutable_row_f32(row), size);
        }
      });
}

}  // namespace fucina::ops
