#include "core/kernels/tables.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace fucina {

bool SupportsAvxVnni() {
#if defined(__x86_64__)
  // Leaf 7, subleaf 1, EAX bit 4; GCC 12's processor test does not know it.
  unsigned int eax = 0;
  unsigned int ebx = 0;
  unsigned int ecx = 0;
  unsigned int edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || eax < 1) {
    return false;
  }
  if (__get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (eax & (1U << 4)) != 0;
#else
  return false;
#endif
}

}  // namespace fucina
