#ifndef FUCINA_CORE_KERNELS_TABLES_H_
#define FUCINA_CORE_KERNELS_TABLES_H_

// Each target's file fills in its table of products; dispatch.cc picks. The
// functions themselves are baseline code and safe to call on any processor.

#include "fucina/kernels/linear_kernels.h"

namespace fucina {

LinearKernels ScalarLinearKernels();
LinearKernels Avx2LinearKernels();
LinearKernels AvxVnniLinearKernels();
LinearKernels Avx512LinearKernels();

// The processor has 256-bit integer dot products outside AVX-512.
bool SupportsAvxVnni();

}  // namespace fucina

#endif  // FUCINA_CORE_KERNELS_TABLES_H_
