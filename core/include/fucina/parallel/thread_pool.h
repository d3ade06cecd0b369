#ifndef FUCINA_PARALLEL_THREAD_POOL_H_
#define FUCINA_PARALLEL_THREAD_POOL_H_

// The only threads of the core: a persistent fork-join team. Workers spin for a
// short time, then park; an idle team uses no processor. Work is claimed from a
// counter, so which thread computes an index is not defined, and bodies must
// not let it matter: results never depend on the number of threads.
//
// Safe to use from several threads: they take turns. Bodies run with subnormal
// numbers flushed to zero on every participant, the caller included.

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "fucina/export.h"

namespace fucina {

class FUCINA_API ThreadPool {
 public:
  // A team of `num_threads` participants; the calling thread is one of them.
  // When the system refuses a thread the team is smaller; num_threads() tells.
  // REQUIRES: num_threads >= 1.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const;

  // Calls body(begin, end, worker) for pieces of at most `grain` indices that
  // together cover [0, count) exactly once; returns when all are done.
  //
  // `worker` is in [0, num_threads()) and tells concurrent calls apart, for
  // scratch memory. A call from inside a body of the same team runs serially on
  // the thread that makes it and keeps that thread's worker number. Never
  // allocates. Bodies must not throw.
  // REQUIRES: count >= 0, grain >= 1.
  using Body =
      absl::FunctionRef<void(std::int64_t begin, std::int64_t end, int worker)>;
  void ParallelFor(std::int64_t count, std::int64_t grain, Body body);

  // The same in pieces that shrink: a share of what is left, and `grain`
  // indices at the end. For bodies that gain from long pieces, such as streams
  // of memory: everybody gets some, and the last one holds nobody up. `next` is
  // the first index of this thread's next piece, or -1 when there is none.
  using PieceBody = absl::FunctionRef<void(std::int64_t begin, std::int64_t end,
                                           std::int64_t next, int worker)>;
  void ParallelForShrinking(std::int64_t count, std::int64_t grain,
                            PieceBody body);

  // A grain that gives each participant about `pieces` turns at the counter: a
  // core that loses time to a neighbour then holds up the others by little.
  std::int64_t GrainFor(std::int64_t count, int pieces = 12) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fucina

#endif  // FUCINA_PARALLEL_THREAD_POOL_H_
