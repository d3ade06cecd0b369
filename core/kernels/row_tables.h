#ifndef FUCINA_CORE_KERNELS_ROW_TABLES_H_
#define FUCINA_CORE_KERNELS_ROW_TABLES_H_

// The row kernels of each level, for dispatch.cc. A table may be asked for on
// any machine; its functions run only where the level is supported.

#include "fucina/kernels/row_kernels.h"

namespace fucina {

RowKernels ScalarRowKernels();
#if defined(__x86_64__)
RowKernels Avx2RowKernels();    // AVX2, FMA, F16C
RowKernels Avx512RowKernels();  // AVX-512 F, BW, DQ, VL
#endif

}  // namespace fucina

#endif  // FUCINA_CORE_KERNELS_ROW_TABLES_H_
