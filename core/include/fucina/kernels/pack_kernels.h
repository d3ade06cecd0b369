#ifndef FUCINA_KERNELS_PACK_KERNELS_H_
#define FUCINA_KERNELS_PACK_KERNELS_H_

// PackStrip (linear_kernels.h) at one level. Every level writes the same bytes;
// the scalar one is the oracle. Packing has to keep up with memory, or loading
// a model would wait for it.

#include <cstdint>

#include "fucina/export.h"
#include "fucina/kernels/kernels.h"
#include "fucina/tensor/dtype.h"

namespace fucina {

using PackStripFn = void (*)(DType dtype, const void* const* rows,
                             std::int64_t k, std::uint8_t* strip);

// PackStrip with the instructions of `level`.
// REQUIRES: the machine supports the level, see KernelsFor.
FUCINA_API PackStripFn PackStripFor(KernelLevel level);

}  // namespace fucina

#endif  // FUCINA_KERNELS_PACK_KERNELS_H_
