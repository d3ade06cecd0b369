#ifndef FUCINA_CORE_KERNELS_TARGET_H_
#define FUCINA_CORE_KERNELS_TARGET_H_

// FUCINA_BEGIN_TARGET("avx2,fma") … FUCINA_END_TARGET: functions between them
// are compiled for these instruction sets. Include everything needed before the
// region opens, and keep what is inside in an unnamed namespace: a function
// that other files share must stay baseline. Never -mavx2 on a file, which puts
// such code into inline functions of the standard library.

#define FUCINA_PRAGMA_(x) _Pragma(#x)

// GCC 12 takes the deliberately undefined operands of its own intrinsics for
// mistakes (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#if defined(__clang__)
#define FUCINA_BEGIN_TARGET(features)                                    \
  FUCINA_PRAGMA_(clang attribute push(__attribute__((target(features))), \
                                      apply_to = function))
#define FUCINA_END_TARGET FUCINA_PRAGMA_(clang attribute pop)
#else
#define FUCINA_BEGIN_TARGET(features) \
  FUCINA_PRAGMA_(GCC push_options)    \
  FUCINA_PRAGMA_(GCC target(features))
#define FUCINA_END_TARGET FUCINA_PRAGMA_(GCC pop_options)
#endif

// Unrolls the loop that follows completely, so that arrays indexed by its
// variable stay in registers. A literal count: at least the number of turns.
#if defined(__clang__)
#define FUCINA_UNROLLED(count) FUCINA_PRAGMA_(clang loop unroll(full))
#else
#define FUCINA_UNROLLED(count) FUCINA_PRAGMA_(GCC unroll count)
#endif

// For the pieces of a kernel: a call between them would send arrays of sums
// through memory, which halves the speed, and the compiler's own judgement does
// that to the larger ones.
#define FUCINA_KERNEL_INLINE inline __attribute__((always_inline))

#endif  // FUCINA_CORE_KERNELS_TARGET_H_
