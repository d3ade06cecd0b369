#ifndef FUCINA_PARALLEL_THREAD_POOL_H_
#define FUCINA_PARALLEL_THREAD_POOL_H_

// The only threads of the core: a persistent fork-join team. Workers spin for a
// short time, then park; an idle team uses no processor. Work is claimed from a
// counter, so which thread computes an index is not defined, and bodies must
// not let it matter: results never depend on the number of threads.

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "fucina/export.h"

namespace fucina {

class FUCINA_API ThreadPool {
 public:
  // A team of `num_threads` participants; the calling thread is one of them.
  // REQUIRES: num_threads >= 1.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const;

  // Calls body(begin, end, worker) for pieces of at most `grain` indices that
  // together cover [0, count) exactly once; returns when all are done. `worker`
  // is in [0, num_threads()) and tells concurrent calls apart, for scratch
  // memory. A call from inside a body, or while another thread uses the team,
  // runs serially on the caller as worker of its own scratch: see `worker`.
  // Never allocates. Bodies must not throw.
  using Body =
      absl::FunctionRef<void(std::int64_t begin, std::int64_t end, int worker)>;
  void ParallelFor(std::int64_t count, std::int64_t grain, Body body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fucina

#endif  // FUCINA_PARALLEL_THREAD_POOL_H_
