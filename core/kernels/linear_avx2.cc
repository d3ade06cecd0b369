// Products with 256-bit registers and no integer dot product.
#include <immintrin.h>

#include <cstring>

#include "core/kernels/panel_layout.h"
#include "core/kernels/tables.h"
#include "core/kernels/target.h"

#define FUCINA_KERNEL_VNNI 0

FUCINA_BEGIN_TARGET("avx2,fma,f16c")
namespace fucina {
namespace {

// clang-format off
#include "core/kernels/vec_256.inc"
#include "core/kernels/linear_tiles.inc"
#include "core/kernels/linear_table.inc"
#include "core/kernels/linear_rows.inc"
#include "core/kernels/quantize_row_256.inc"
// clang-format on

}  // namespace
}  // namespace fucina
FUCINA_END_TARGET

namespace fucina {

LinearKernels Avx2LinearKernels() {
  LinearKernels kernels;
  kernels.int_tile_rows = 2;
  kernels.float_tile_rows = 6;
  kernels.direct_rows = 2;
  FillFormats<0, 2, 2, 6>(kernels);
  kernels.quantize_row = &QuantizeRow;
  kernels.add_dot_rows = &AddDotRows;
  kernels.add_scaled = &AddScaled;
  return kernels;
}

}  // namespace fucina
