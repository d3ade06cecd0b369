#ifndef FUCINA_CORE_KERNELS_PACK_TABLES_H_
#define FUCINA_CORE_KERNELS_PACK_TABLES_H_

// PackStrip of linear_kernels.h for each instruction set; the same bytes.

#include <cstdint>

#include "fucina/tensor/dtype.h"

namespace fucina {

void PackStripScalar(DType dtype, const void* const* rows, std::int64_t k,
                     std::uint8_t* strip);
void PackStripAvx2(DType dtype, const void* const* rows, std::int64_t k,
                   std::uint8_t* strip);

}  // namespace fucina

#endif  // FUCINA_CORE_KERNELS_PACK_TABLES_H_
