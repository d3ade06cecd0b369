#include "fucina/parallel/flush_denormals.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace fucina {

#if defined(__SSE2__)
namespace {
// Flush-to-zero is bit 15 of MXCSR, denormals-are-zero bit 6.
constexpr unsigned int kFlush = (1U << 15) | (1U << 6);
}  // namespace

ScopedFlushDenormals::ScopedFlushDenormals() : saved_(_mm_getcsr()) {
  if ((saved_ & kFlush) != kFlush) _mm_setcsr(saved_ | kFlush);
}

ScopedFlushDenormals::~ScopedFlushDenormals() {
  // Only our two bits go back: exception flags raised meanwhile stay.
  if ((saved_ & kFlush) != kFlush) {
    _mm_setcsr((_mm_getcsr() & ~kFlush) | (saved_ & kFlush));
  }
}
#else
ScopedFlushDenormals::ScopedFlushDenormals() = default;
ScopedFlushDenormals::~ScopedFlushDenormals() = default;
#endif

}  // namespace fucina
