// A job is open while `generation` is odd. A worker that sees a new odd value
// joins by raising `active` and then looks at `generation` again; the
// dispatcher closes the job by making it even and then waits for `active` to
// reach zero. Both sides store first and load second, sequentially consistent,
// so either the worker sees the job closed or the dispatcher sees the worker. A
// worker that wakes too late therefore never touches a job that is over, and a
// job never waits for a worker that has not started: a team larger than the
// machine costs nothing but the wake-ups.
#include "fucina/parallel/thread_pool.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "fucina/diag/check.h"
#include "fucina/parallel/flush_denormals.h"

namespace fucina {
namespace {

using Clock = std::chrono::steady_clock;

// Long enough to bridge the serial stretches between the ops of a token, short
// enough that an idle team is parked before anybody notices.
constexpr std::chrono::microseconds kWorkerSpin(50);
// A dispatcher waits for pieces that are being computed right now.
constexpr std::chrono::microseconds kJoinSpin(2000);
// Pause hints between two looks at the clock.
constexpr int kPausesPerLook = 64;

void Pause() {
#if defined(__SSE2__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

static_assert(sizeof(std::atomic<std::uint32_t>) == 4);

void FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t seen,
               const timespec* timeout) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, timeout, nullptr, 0);
}

void FutexWake(std::atomic<std::uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

int SchedulableProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    return std::max(1, CPU_COUNT(&set));
  }
  return std::max(1U, std::thread::hardware_concurrency());
}

// The team and worker number that this thread is computing for.
thread_local const void* current_team = nullptr;
thread_local int current_worker = 0;

}  // namespace

struct ThreadPool::Impl {
  // Written by the dispatcher while no job is open.
  const Body* body = nullptr;
  std::int64_t count = 0;
  std::int64_t grain = 1;

  alignas(64) std::atomic<std::uint32_t> generation{0};
  alignas(64) std::atomic<std::int64_t> cursor{0};
  alignas(64) std::atomic<std::uint32_t> active{0};
  alignas(64) std::atomic<std::uint32_t> parked{0};
  std::atomic<bool> dispatcher_parked{false};
  std::atomic<bool> stop{false};

  std::mutex turn;  // one dispatcher at a time
  std::chrono::microseconds worker_spin = kWorkerSpin;
  std::vector<std::thread> threads;

  void RunPieces(int worker) {
    for (;;) {
      const std::int64_t begin =
          cursor.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= count) return;
      (*body)(begin, std::min(begin + grain, count), worker);
    }
  }

  // Returns the first generation that is not `seen`.
  std::uint32_t AwaitChange(std::uint32_t seen) {
    const Clock::time_point give_up = Clock::now() + worker_spin;
    do {
      for (int i = 0; i < kPausesPerLook; ++i) {
        const std::uint32_t now = generation.load(std::memory_order_acquire);
        if (now != seen) return now;
        Pause();
      }
    } while (Clock::now() < give_up);
    for (;;) {
      parked.fetch_add(1, std::memory_order_seq_cst);
      FutexWait(generation, seen, nullptr);
      parked.fetch_sub(1, std::memory_order_relaxed);
      const std::uint32_t now = generation.load(std::memory_order_acquire);
      if (now != seen) return now;
    }
  }

  void WorkerLoop(int worker) {
    const ScopedFlushDenormals flush;
    current_team = this;
    current_worker = worker;
    std::uint32_t seen = 0;
    for (;;) {
      seen = AwaitChange(seen);
      if (stop.load(std::memory_order_acquire)) return;
      if ((seen & 1U) == 0) continue;
      active.fetch_add(1, std::memory_order_seq_cst);
      if (generation.load(std::memory_order_seq_cst) == seen) {
        RunPieces(worker);
      }
      if (active.fetch_sub(1, std::memory_order_seq_cst) == 1 &&
          dispatcher_parked.load(std::memory_order_seq_cst)) {
        FutexWake(active, 1);
      }
    }
  }

  void Publish() {
    generation.fetch_add(1, std::memory_order_seq_cst);
    if (parked.load(std::memory_order_seq_cst) != 0) {
      // No more than there is work for besides the dispatcher.
      const std::int64_t helpers = (count - 1) / grain;
      FutexWake(generation,
                static_cast<int>(std::min<std::int64_t>(helpers, INT_MAX)));
    }
  }

  void Join() {
    generation.fetch_add(1, std::memory_order_seq_cst);
    const Clock::time_point give_up =
        Clock::now() + (worker_spin.count() == 0 ? kWorkerSpin : kJoinSpin);
    for (;;) {
      for (int i = 0; i < kPausesPerLook; ++i) {
        if (active.load(std::memory_order_seq_cst) == 0) return;
        Pause();
      }
      if (Clock::now() >= give_up) break;
    }
    // The time limit only bounds a delay; correctness is in the loop.
    const timespec limit = {0, 1'000'000};
    dispatcher_parked.store(true, std::memory_order_seq_cst);
    for (;;) {
      const std::uint32_t now = active.load(std::memory_order_seq_cst);
      if (now == 0) break;
      FutexWait(active, now, &limit);
    }
    dispatcher_parked.store(false, std::memory_order_relaxed);
  }

  void Stop() {
    stop.store(true, std::memory_order_release);
    generation.fetch_add(2, std::memory_order_seq_cst);
    FutexWake(generation, INT_MAX);
    for (std::thread& thread : threads) thread.join();
  }
};

ThreadPool::ThreadPool(int num_threads) : impl_(std::make_unique<Impl>()) {
  FUCINA_CHECK_GE(num_threads, 1);
  // Spinning against a thread that needs the same processor only delays it.
  if (num_threads > SchedulableProcessors()) {
    impl_->worker_spin = std::chrono::microseconds(0);
  }
  impl_->threads.reserve(static_cast<std::size_t>(num_threads - 1));
  for (int worker = 1; worker < num_threads; ++worker) {
    try {
      impl_->threads.emplace_back(
          [impl = impl_.get(), worker] { impl->WorkerLoop(worker); });
    } catch (const std::system_error&) {
      break;  // the system has no more threads to give
    }
  }
}

ThreadPool::~ThreadPool() { impl_->Stop(); }

int ThreadPool::num_threads() const {
  return static_cast<int>(impl_->threads.size()) + 1;
}

void ThreadPool::ParallelFor(std::int64_t count, std::int64_t grain,
                             Body body) {
  FUCINA_CHECK_GE(count, 0);
  FUCINA_CHECK_GE(grain, 1);
  if (count == 0) return;
  if (current_team == impl_.get()) {  // inside a body, flushed already
    for (std::int64_t begin = 0; begin < count; begin += grain) {
      body(begin, std::min(begin + grain, count), current_worker);
    }
    return;
  }
  const std::lock_guard<std::mutex> lock(impl_->turn);
  const ScopedFlushDenormals flush;
  const void* const outer_team = std::exchange(current_team, impl_.get());
  const int outer_worker = std::exchange(current_worker, 0);
  impl_->body = &body;
  impl_->count = count;
  impl_->grain = grain;
  impl_->cursor.store(0, std::memory_order_relaxed);
  if (count <= grain || impl_->threads.empty()) {
    impl_->RunPieces(0);
  } else {
    impl_->Publish();
    impl_->RunPieces(0);
    impl_->Join();
  }
  current_team = outer_team;
  current_worker = outer_worker;
}

void ThreadPool::ParallelForShrinking(std::int64_t count, std::int64_t grain,
                                      PieceBody body) {
  FUCINA_CHECK_GE(grain, 1);
  struct Piece {
    std::int64_t begin;
    std::int64_t end;
  };
  // With half of an equal share as the first piece, a core at half speed still
  // finishes it before the others have finished the rest.
  const std::int64_t share = 2 * std::int64_t{num_threads()};
  alignas(64) std::atomic<std::int64_t> cursor = 0;
  const auto claim = [&]() -> Piece {
    std::int64_t begin = cursor.load(std::memory_order_relaxed);
    while (begin < count) {
      const std::int64_t left = count - begin;
      const std::int64_t end =
          begin + std::min(std::max(grain, left / share), left);
      if (cursor.compare_exchange_weak(begin, end, std::memory_order_relaxed)) {
        return {begin, end};
      }
    }
    return {-1, -1};
  };
  // Each participant claims its next piece before it computes one, so that the
  // body can look ahead.
  const std::int64_t participants =
      std::min<std::int64_t>(num_threads(), (count + grain - 1) / grain);
  ParallelFor(participants, 1,
              [&](std::int64_t begin, std::int64_t end, int worker) {
                for (std::int64_t i = begin; i < end; ++i) {
                  Piece piece = claim();
                  while (piece.begin >= 0) {
                    const Piece next = claim();
                    body(piece.begin, piece.end, next.begin, worker);
                    piece = next;
                  }
                }
              });
}

std::int64_t ThreadPool::GrainFor(std::int64_t count, int pieces) const {
  return std::max<std::int64_t>(
      1, count / (static_cast<std::int64_t>(num_threads()) * pieces));
}

}  // namespace fucina
