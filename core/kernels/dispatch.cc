// Which levels this machine supports, decided once.
#include "core/kernels/row_tables.h"
#include "core/kernels/tables.h"
#include "fucina/kernels/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace fucina {
namespace {

#if defined(__x86_64__)
// Asked of the processor itself: Clang 14's test does not know the name.
bool HasF16c() {
  unsigned int eax = 0;
  unsigned int ebx = 0;
  unsigned int ecx = 0;
  unsigned int edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

// libgcc's and compiler-rt's processor test also asks the operating system
// whether it saves the wide registers.
bool Supported(KernelLevel level) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") &&
                    __builtin_cpu_supports("fma") && HasF16c();
  switch (level) {
    case KernelLevel::kScalar:
      return true;
    case KernelLevel::kAvx2:
      return avx2;
    case KernelLevel::kAvxVnni:
      return avx2 && SupportsAvxVnni();
    case KernelLevel::kAvx512Vnni:
      return avx2 && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512vnni");
  }
  return false;
#else
  return level == KernelLevel::kScalar;
#endif
}

Kernels Make(KernelLevel level) {
  Kernels kernels;
  kernels.level = level;
  switch (level) {
    case KernelLevel::kScalar:
      kernels.linear = ScalarLinearKernels();
      kernels.rows = ScalarRowKernels();
      break;
#if defined(__x86_64__)
    case KernelLevel::kAvx2:
      kernels.linear = Avx2LinearKernels();
      kernels.rows = Avx2RowKernels();
      break;
    case KernelLevel::kAvxVnni:
      kernels.linear = AvxVnniLinearKernels();
      kernels.rows = Avx2RowKernels();
      break;
    case KernelLevel::kAvx512Vnni:
      kernels.linear = Avx512LinearKernels();
      kernels.rows = Avx512RowKernels();
      break;
#else
    default:
      break;
#endif
  }
  return kernels;
}

}  // namespace

const Kernels* KernelsFor(KernelLevel level) {
  switch (level) {
    case KernelLevel::kScalar: {
      static const Kernels kernels = Make(KernelLevel::kScalar);
      return &kernels;
    }
    case KernelLevel::kAvx2: {
      static const bool supported = Supported(KernelLevel::kAvx2);
      static const Kernels kernels = Make(KernelLevel::kAvx2);
      return supported ? &kernels : nullptr;
    }
    case KernelLevel::kAvxVnni: {
      static const bool supported = Supported(KernelLevel::kAvxVnni);
      static const Kernels kernels = Make(KernelLevel::kAvxVnni);
      return supported ? &kernels : nullptr;
    }
    case KernelLevel::kAvx512Vnni: {
      static const bool supported = Supported(KernelLevel::kAvx512Vnni);
      static const Kernels kernels = Make(KernelLevel::kAvx512Vnni);
      return supported ? &kernels : nullptr;
    }
  }
  return nullptr;
}

KernelLevel BestKernelLevel() {
  KernelLevel best = KernelLevel::kScalar;
  for (KernelLevel level : kAllKernelLevels) {
    if (KernelsFor(level) != nullptr) best = level;
  }
  return best;
}

absl::string_view Name(KernelLevel level) {
  switch (level) {
    case KernelLevel::kScalar:
      return "scalar";
    case KernelLevel::kAvx2:
      return "avx2";
    case KernelLevel::kAvxVnni:
      return "avx-vnni";
    case KernelLevel::kAvx512Vnni:
      return "avx512-vnni";
  }
  return "unknown";
}

std::optional<KernelLevel> ParseKernelLevel(absl::string_view name) {
  for (KernelLevel level : kAllKernelLevels) {
    if (Name(level) == name) return level;
  }
  return std::nullopt;
}

}  // namespace fucina
