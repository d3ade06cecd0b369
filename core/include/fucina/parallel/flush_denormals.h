#ifndef FUCINA_PARALLEL_FLUSH_DENORMALS_H_
#define FUCINA_PARALLEL_FLUSH_DENORMALS_H_

// Subnormal numbers are treated as zero wherever numbers are computed: they
// cost 20 to 50 times the clock, and every thread must agree for results to be
// equal. Workers of a ThreadPool always run so; other threads use the guard.

#include "fucina/export.h"

namespace fucina {

// Sets flush-to-zero and denormals-are-zero on the current thread, restores
// what was there before at the end of the scope. A no-op on processors without
// the switch.
class FUCINA_API ScopedFlushDenormals {
 public:
  ScopedFlushDenormals();
  ~ScopedFlushDenormals();
  ScopedFlushDenormals(const ScopedFlushDenormals&) = delete;
  ScopedFlushDenormals& operator=(const ScopedFlushDenormals&) = delete;

 private:
  unsigned int saved_ = 0;
};

}  // namespace fucina

#endif  // FUCINA_PARALLEL_FLUSH_DENORMALS_H_
