#ifndef FUCINA_KERNELS_KERNELS_H_
#define FUCINA_KERNELS_KERNELS_H_

// The table of arithmetic functions, one per instruction-set level. Every level
// gives the same bits: the scalar one is written to be read and is the oracle
// of the others. Pointers, sizes and strides only; shapes are checked by ops.
//
// Tables are constants and safe to share. Subnormal numbers must be flushed
// (see parallel/flush_denormals.h) for levels to agree on them.

#include <optional>

#include "absl/strings/string_view.h"
#include "fucina/export.h"
#include "fucina/kernels/linear_kernels.h"
#include "fucina/kernels/row_kernels.h"

namespace fucina {

enum class KernelLevel {
  kScalar,      // plain C++, runs everywhere
  kAvx2,        // 256-bit, FMA and F16C
  kAvxVnni,     // the same with 256-bit integer dot products
  kAvx512Vnni,  // 512-bit F, BW, DQ, VL with VNNI
};
inline constexpr KernelLevel kAllKernelLevels[] = {
    KernelLevel::kScalar, KernelLevel::kAvx2, KernelLevel::kAvxVnni,
    KernelLevel::kAvx512Vnni};

struct Kernels {
  KernelLevel level = KernelLevel::kScalar;
  LinearKernels linear = {};
  RowKernels rows = {};
};

// The table of `level`; null when this processor, or the operating system,
// does not support it. KernelsFor(kScalar) is never null.
FUCINA_API const Kernels* KernelsFor(KernelLevel level);

// The fastest level that this machine supports.
FUCINA_API KernelLevel BestKernelLevel();

// "scalar", "avx2", "avx-vnni", "avx512-vnni".
FUCINA_API absl::string_view Name(KernelLevel level);

// The level of a name as printed by Name; nullopt for another word.
FUCINA_API std::optional<KernelLevel> ParseKernelLevel(absl::string_view name);

}  // namespace fucina

#endif  // FUCINA_KERNELS_KERNELS_H_
