#ifndef FUCINA_BENCHMARKS_ROOFLINE_H_
#define FUCINA_BENCHMARKS_ROOFLINE_H_

// What this machine can do at best, measured here and now: the measure for
// every figure of the benchmarks. Each probe runs on all threads of a pool, for
// some tens of milliseconds, and takes the best of its rounds.

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "benchmark/benchmark.h"
#include "fucina/kernels/kernels.h"
#include "fucina/parallel/thread_pool.h"

namespace fucina::roofline {

// Bytes per second of reading a region of `bytes` that no cache holds. Four
// streams per thread, 8 MiB at a time from a shared counter, so that a core
// that loses time to a neighbour does not set the time of all. The memory is
// taken at the first call of each size and kept.
double DramRead(ThreadPool& pool, std::size_t bytes, int rounds);
// Large enough for that on this many threads: 512 MiB for one, else 256 MiB
// each, 1 GiB at least and 4 at most.
std::size_t DramBytes(int num_threads);

// 8-bit integer multiplications and additions per second, two for each product,
// with the instructions that `level` has: vpdpbusd or vpmaddubsw. 0 for scalar.
// REQUIRES: KernelsFor(level) != nullptr.
double Int8(ThreadPool& pool, KernelLevel level);

// The same for f32 fused multiply-adds.
double F32(ThreadPool& pool, KernelLevel level);

// The seconds since it was made: make it before the timed loop.
class Watch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// Adds counters to a benchmark: `what` per second, and in roof% which share of
// `roof` that is, measured by calling it once, after the timed loop.
// `per_iteration` counts bytes or operations, `seconds` is of all iterations.
template <typename Roof>
void Report(benchmark::State& state, double seconds, const char* what,
            double per_iteration, Roof roof) {
  state.counters[what] = benchmark::Counter(
      per_iteration, benchmark::Counter::kIsIterationInvariantRate);
  const double now = roof();
  if (now <= 0) return;
  const double rate =
      per_iteration * static_cast<double>(state.iterations()) / seconds;
  state.counters["roof%"] = 100 * rate / now;
}

}  // namespace fucina::roofline

#endif  // FUCINA_BENCHMARKS_ROOFLINE_H_
