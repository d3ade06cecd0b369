#include "fucina/parallel/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace fucina {
namespace {

// Every index of [0, count) once, in pieces no larger than the grain, by worker
// numbers of the team.
void ExpectCoversOnce(ThreadPool& pool, std::int64_t count,
                      std::int64_t grain) {
  std::vector<std::atomic<int>> hits(static_cast<std::size_t>(count));
  std::atomic<int> bad_pieces{0};
  pool.ParallelFor(count, grain,
                   [&](std::int64_t begin, std::int64_t end, int worker) {
                     if (begin >= end || end - begin > grain || worker < 0 ||
                         worker >= pool.num_threads()) {
                       ++bad_pieces;
                     }
                     for (std::int64_t i = begin; i < end; ++i) {
                       ++hits[static_cast<std::size_t>(i)];
                     }
                   });
  EXPECT_EQ(bad_pieces, 0);
  for (const std::atomic<int>& hit : hits) ASSERT_EQ(hit, 1);
}

TEST(ThreadPool, CoversEveryIndexOnce) {
  for (int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.num_threads(), threads);
    for (std::int64_t count : {0, 1, 2, 7, 64, 1000}) {
      for (std::int64_t grain : {1, 3, 64, 5000}) {
        ExpectCoversOnce(pool, count, grain);
      }
    }
  }
}

TEST(ThreadPool, ShrinkingPiecesCoverEveryIndexOnceAndEndSmall) {
  for (int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    for (std::int64_t count : {0, 1, 2, 7, 64, 1000}) {
      for (std::int64_t grain : {1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> hits(static_cast<std::size_t>(count));
        std::atomic<int> bad_pieces{0};
        std::vector<std::int64_t> promised(5, -1);  // by worker
        pool.ParallelForShrinking(
            count, grain,
            [&](std::int64_t begin, std::int64_t end, std::int64_t next,
                int worker) {
              // Half of an equal share of what is left, at least the grain.
              const std::int64_t left = count - begin;
              const std::int64_t most =
                  std::max(grain, left / (2 * pool.num_threads()));
              if (begin >= end || end - begin != std::min(most, left) ||
                  (next >= 0 && next < end) || next >= count ||
                  (promised[worker] >= 0 && promised[worker] != begin) ||
                  worker < 0 || worker >= pool.num_threads()) {
                ++bad_pieces;
              }
              promised[worker] = next;
              for (std::int64_t i = begin; i < end; ++i) {
                ++hits[static_cast<std::size_t>(i)];
              }
            });
        EXPECT_EQ(bad_pieces, 0) << threads << " " << count << " " << grain;
        for (const std::atomic<int>& hit : hits) ASSERT_EQ(hit, 1);
      }
    }
  }
}

TEST(ThreadPool, WorkersThatRunAtOnceHaveDifferentNumbers) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<bool> clash{false};
  pool.ParallelFor(400, 1, [&](std::int64_t, std::int64_t, int worker) {
    auto& mine = inside[static_cast<std::size_t>(worker)];
    if (mine.fetch_add(1) != 0) clash = true;
    std::this_thread::yield();
    mine.fetch_sub(1);
  });
  EXPECT_FALSE(clash);
}

TEST(ThreadPool, NoWakeUpIsLostInADenseStreamOfJobs) {
  ThreadPool pool(3);
  std::atomic<std::int64_t> sum{0};
  for (int job = 0; job < 20000; ++job) {
    pool.ParallelFor(3, 1, [&](std::int64_t begin, std::int64_t, int) {
      sum.fetch_add(begin + 1, std::memory_order_relaxed);
    });
  }
  EXPECT_EQ(sum, 20000 * 6);
}

TEST(ThreadPool, NoWakeUpIsLostAroundParking) {
  ThreadPool pool(2);
  std::atomic<int> done{0};
  // Pauses around the 50 us after which workers park.
  for (int job = 0; job < 1500; ++job) {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::microseconds(job % 100);
    while (std::chrono::steady_clock::now() < end) {
    }
    pool.ParallelFor(2, 1, [&](std::int64_t, std::int64_t, int) { ++done; });
  }
  EXPECT_EQ(done, 3000);
}

TEST(ThreadPool, ResultIsVisibleToTheCaller) {
  ThreadPool pool(2);
  std::vector<int> values(512, 0);  // plain memory on purpose
  for (int round = 1; round <= 300; ++round) {
    pool.ParallelFor(512, 16, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) {
        values[static_cast<std::size_t>(i)] += round;
      }
    });
  }
  for (int value : values) ASSERT_EQ(value, 300 * 301 / 2);
}

TEST(ThreadPool, NestedCallRunsInlineAsTheSameWorker) {
  ThreadPool pool(3);
  std::atomic<int> wrong{0};
  std::atomic<int> inner{0};
  pool.ParallelFor(30, 1, [&](std::int64_t, std::int64_t, int worker) {
    const std::thread::id thread = std::this_thread::get_id();
    std::int64_t next = 0;
    pool.ParallelFor(
        10, 3, [&](std::int64_t begin, std::int64_t end, int nested_worker) {
          if (nested_worker != worker || begin != next ||
              std::this_thread::get_id() != thread) {
            ++wrong;
          }
          next = end;
          inner += static_cast<int>(end - begin);
        });
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(inner, 300);
}

TEST(ThreadPool, ACallFromInsideAnotherTeamsBodyIsACallLikeAnyOther) {
  ThreadPool outer(2);
  ThreadPool inner(2);
  std::atomic<int> hits{0};
  outer.ParallelFor(8, 1, [&](std::int64_t, std::int64_t, int) {
    inner.ParallelFor(5, 1, [&](std::int64_t, std::int64_t, int) { ++hits; });
  });
  EXPECT_EQ(hits, 40);
}

TEST(ThreadPool, ConcurrentCallersTakeTurns) {
  ThreadPool pool(2);
  std::atomic<int> hits{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int job = 0; job < 300; ++job) {
        pool.ParallelFor(4, 1,
                         [&](std::int64_t, std::int64_t, int) { ++hits; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(hits, 4 * 300 * 4);
}

TEST(ThreadPool, FarMoreThreadsThanProcessorsStillWork) {
  ThreadPool pool(24);
  for (int job = 0; job < 200; ++job) ExpectCoversOnce(pool, 100, 1);
}

TEST(ThreadPool, IdleTeamUsesNoProcessor) {
  ThreadPool pool(4);
  pool.ParallelFor(8, 1, [](std::int64_t, std::int64_t, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::clock_t before = std::clock();  // of all threads of the process
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const double seconds =
      static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 0.02);
}

TEST(ThreadPool, ManyTeamsComeAndGo) {
  for (int i = 0; i < 200; ++i) {
    ThreadPool pool(3);
    if (i % 2 == 0) {
      pool.ParallelFor(3, 1, [](std::int64_t, std::int64_t, int) {});
    }
  }
}

TEST(ThreadPool, GrainGivesEveryParticipantSeveralTurns) {
  ThreadPool pool(2);
  EXPECT_EQ(pool.GrainFor(0), 1);
  EXPECT_EQ(pool.GrainFor(23), 1);
  EXPECT_EQ(pool.GrainFor(240), 10);
  EXPECT_EQ(pool.GrainFor(240, 4), 30);
}

TEST(ThreadPoolDeathTest, RefusesNonsense) {
  EXPECT_DEATH(ThreadPool(0), "num_threads");
  ThreadPool pool(1);
  const auto nothing = [](std::int64_t, std::int64_t, int) {};
  EXPECT_DEATH(pool.ParallelFor(-1, 1, nothing), "count");
  EXPECT_DEATH(pool.ParallelFor(1, 0, nothing), "grain");
}

}  // namespace
}  // namespace fucina
