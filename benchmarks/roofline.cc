#include "benchmarks/roofline.h"

#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>

#include "absl/functional/function_ref.h"
#include "fucina/diag/check.h"

// GCC 12 takes the deliberately undefined operands of its own intrinsics for
// mistakes (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace fucina::roofline {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{8} << 20;
constexpr std::size_t kPageBytes = 4096;
// Small pages cost a fifth of the bandwidth of one thread on Granite Rapids.
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
// Software prefetch that far ahead in each stream adds up to a fifth there.
constexpr std::size_t kAhead = 2048;

// Independent sums: two instructions per cycle with a latency of five need ten.
// They are variables of their own, because an array of them would be walked in
// memory.
constexpr int kChains = 12;
#define FUCINA_CHAINS(f, ...)                                                 \
  f(0, __VA_ARGS__) f(1, __VA_ARGS__) f(2, __VA_ARGS__) f(3, __VA_ARGS__)     \
      f(4, __VA_ARGS__) f(5, __VA_ARGS__) f(6, __VA_ARGS__) f(7, __VA_ARGS__) \
          f(8, __VA_ARGS__) f(9, __VA_ARGS__) f(10, __VA_ARGS__)              \
              f(11, __VA_ARGS__)

// About 5 us of work.
constexpr int kTurns = 2000;

std::atomic<std::uint64_t> sink;

double SecondsOf(absl::FunctionRef<void()> work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

// --- memory -----------------------------------------------------------------

// Each reads a chunk as four quarter streams of 64-byte blocks and returns a
// sum of all of it.
__attribute__((target("avx512f"))) std::uint64_t Sum512(const std::byte* data) {
  constexpr std::size_t kStream = kChunkBytes / 4;
  __m512i s0 = _mm512_setzero_si512();
  __m512i s1 = s0;
  __m512i s2 = s0;
  __m512i s3 = s0;
  for (std::size_t at = 0; at < kStream; at += 64) {
    const std::byte* block = data + at;
    for (std::size_t stream = 0; stream < 4; ++stream) {
      _mm_prefetch(block + stream * kStream + kAhead, _MM_HINT_T0);
    }
    s0 = _mm512_add_epi64(s0, _mm512_load_si512(block));
    s1 = _mm512_add_epi64(s1, _mm512_load_si512(block + kStream));
    s2 = _mm512_add_epi64(s2, _mm512_load_si512(block + 2 * kStream));
    s3 = _mm512_add_epi64(s3, _mm512_load_si512(block + 3 * kStream));
  }
  return static_cast<std::uint64_t>(_mm512_reduce_add_epi64(
      _mm512_add_epi64(_mm512_add_epi64(s0, s1), _mm512_add_epi64(s2, s3))));
}

__attribute__((target("avx2"))) std::uint64_t Sum256(const std::byte* data) {
  __m256i sums[8] = {};
  for (std::size_t at = 0; at < kChunkBytes / 4; at += 64) {
    for (std::size_t i = 0; i < 8; ++i) {
      sums[i] = _mm256_add_epi64(
          sums[i],
          _mm256_load_si256(reinterpret_cast<const __m256i*>(
              data + (i / 2) * (kChunkBytes / 4) + at + (i % 2) * 32)));
    }
  }
  std::uint64_t parts[4];
  for (int i = 1; i < 8; ++i) sums[0] = _mm256_add_epi64(sums[0], sums[i]);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(parts), sums[0]);
  return parts[0] + parts[1] + parts[2] + parts[3];
}

std::uint64_t SumScalar(const std::byte* data) {
  std::uint64_t sums[4] = {};
  for (std::size_t at = 0; at < kChunkBytes / 4; at += sizeof(sums[0])) {
    for (std::size_t stream = 0; stream < 4; ++stream) {
      sums[stream] += *reinterpret_cast<const std::uint64_t*>(
          data + stream * (kChunkBytes / 4) + at);
    }
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

std::uint64_t (*SumFunction())(const std::byte*) {
  switch (BestKernelLevel()) {
    case KernelLevel::kAvx512Vnni:
      return Sum512;
    case KernelLevel::kAvxVnni:
    case KernelLevel::kAvx2:
      return Sum256;
    case KernelLevel::kScalar:
      break;
  }
  return SumScalar;
}

// Pages that nobody wrote may all be the one page of zeros.
const std::byte* Region(ThreadPool& pool, std::size_t bytes) {
  static auto* const regions = new std::map<std::size_t, std::byte*>();
  std::byte*& region = (*regions)[bytes];
  if (region == nullptr) {
    region = static_cast<std::byte*>(std::aligned_alloc(kHugePageBytes, bytes));
    FUCINA_CHECK(region != nullptr) << bytes;
    // Where the system has none the roof is that of small pages.
    (void)madvise(region, bytes, MADV_HUGEPAGE);
    const auto pages = static_cast<std::int64_t>(bytes / kPageBytes);
    pool.ParallelFor(
        pages, 256, [&](std::int64_t begin, std::int64_t end, int) {
          for (std::int64_t page = begin; page < end; ++page) {
            region[static_cast<std::size_t>(page) * kPageBytes] = std::byte{1};
          }
        });
  }
  return region;
}

// --- arithmetic -------------------------------------------------------------
// Each function runs kTurns over its chains of sum = step(sum, a, b) and
// returns something of the sums. The compiler must not see that every turn does
// the same. Macros, because a template would not pass its instruction set on to
// the step.

#define FUCINA_KEEP(value) asm volatile("" : "+v"(value))
#define FUCINA_START(i, Vector, zero) Vector s##i = zero();
#define FUCINA_STEP(i, step) \
  FUCINA_KEEP(a);            \
  s##i = step(s##i, a, b);   \
  FUCINA_KEEP(s##i);
#define FUCINA_ADD(i, add) sum = add(sum, s##i);

#define FUCINA_TURNS(name, isa, Vector, first, second, step, zero, add, \
                     reduce)                                            \
  __attribute__((target(isa))) std::uint64_t name() {                   \
    Vector a = first;                                                   \
    const Vector b = second;                                            \
    FUCINA_CHAINS(FUCINA_START, Vector, zero)                           \
    for (int turn = 0; turn < kTurns; ++turn) {                         \
      FUCINA_CHAINS(FUCINA_STEP, step)                                  \
    }                                                                   \
    Vector sum = zero();                                                \
    FUCINA_CHAINS(FUCINA_ADD, add)                                      \
    return static_cast<std::uint64_t>(reduce(sum));                     \
  }

#define FUCINA_MULTIPLY_ADD_512(sum, a, b) _mm512_fmadd_ps(a, b, sum)
#define FUCINA_MULTIPLY_ADD_256(sum, a, b) _mm256_fmadd_ps(a, b, sum)
#define FUCINA_DOT_256(sum, a, b)                                     \
  _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), \
                                          _mm256_set1_epi16(1)))
#define FUCINA_LANE_256(sum) _mm256_extract_epi32(sum, 0)

FUCINA_TURNS(DotTurns512, "avx512f,avx512bw,avx512vnni", __m512i,
             _mm512_set1_epi8(3), _mm512_set1_epi8(5), _mm512_dpbusd_epi32,
             _mm512_setzero_si512, _mm512_add_epi32, _mm512_reduce_add_epi32)
FUCINA_TURNS(DotTurnsVnni256, "avx2,avxvnni", __m256i, _mm256_set1_epi8(3),
             _mm256_set1_epi8(5), _mm256_dpbusd_avx_epi32, _mm256_setzero_si256,
             _mm256_add_epi32, FUCINA_LANE_256)
FUCINA_TURNS(DotTurns256, "avx2", __m256i, _mm256_set1_epi8(3),
             _mm256_set1_epi8(5), FUCINA_DOT_256, _mm256_setzero_si256,
             _mm256_add_epi32, FUCINA_LANE_256)
FUCINA_TURNS(FmaTurns512, "avx512f", __m512, _mm512_set1_ps(0.5F),
             _mm512_set1_ps(0.25F), FUCINA_MULTIPLY_ADD_512, _mm512_setzero_ps,
             _mm512_add_ps, _mm512_reduce_add_ps)
FUCINA_TURNS(FmaTurns256, "avx2,fma", __m256, _mm256_set1_ps(0.5F),
             _mm256_set1_ps(0.25F), FUCINA_MULTIPLY_ADD_256, _mm256_setzero_ps,
             _mm256_add_ps, _mm256_cvtss_f32)

// Pieces of `turns` per second on all threads together, best of five.
double PiecesPerSecond(ThreadPool& pool, std::uint64_t (*turns)()) {
  // About 10 ms per thread, in pieces small enough to balance.
  const std::int64_t pieces = std::int64_t{2000} * pool.num_threads();
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    const double seconds = SecondsOf([&] {
      pool.ParallelFor(pieces, 8,
                       [&](std::int64_t begin, std::int64_t end, int) {
                         for (std::int64_t i = begin; i < end; ++i) {
                           sink.fetch_add(turns(), std::memory_order_relaxed);
                         }
                       });
    });
    best = std::max(best, static_cast<double>(pieces) / seconds);
  }
  return best;
}

}  // namespace

double DramRead(ThreadPool& pool, std::size_t bytes, int rounds) {
  const auto chunks = static_cast<std::int64_t>(bytes / kChunkBytes);
  FUCINA_CHECK_GE(chunks, 1);
  const std::byte* const region = Region(pool, bytes);
  std::uint64_t (*const sum)(const std::byte*) = SumFunction();
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    const double seconds = SecondsOf([&] {
      pool.ParallelFor(
          chunks, 1, [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t i = begin; i < end; ++i) {
              sink.fetch_add(
                  sum(region + static_cast<std::size_t>(i) * kChunkBytes),
                  std::memory_order_relaxed);
            }
          });
    });
    best = std::max(best, static_cast<double>(chunks) * kChunkBytes / seconds);
  }
  return best;
}

std::size_t DramBytes(int num_threads) {
  const auto threads = static_cast<std::size_t>(num_threads);
  const std::size_t mib =
      threads == 1 ? 512 : std::clamp<std::size_t>(256 * threads, 1024, 4096);
  return mib << 20;
}

double Int8(ThreadPool& pool, KernelLevel level) {
  FUCINA_CHECK(KernelsFor(level) != nullptr);
  switch (level) {
    case KernelLevel::kScalar:
      return 0;
    case KernelLevel::kAvx2:
      return PiecesPerSecond(pool, DotTurns256) * kTurns * kChains * 32 * 2;
    case KernelLevel::kAvxVnni:
      return PiecesPerSecond(pool, DotTurnsVnni256) * kTurns * kChains * 32 * 2;
    case KernelLevel::kAvx512Vnni:
      return PiecesPerSecond(pool, DotTurns512) * kTurns * kChains * 64 * 2;
  }
  return 0;
}

double F32(ThreadPool& pool, KernelLevel level) {
  FUCINA_CHECK(KernelsFor(level) != nullptr);
  switch (level) {
    case KernelLevel::kScalar:
      return 0;
    case KernelLevel::kAvx2:
    case KernelLevel::kAvxVnni:
      return PiecesPerSecond(pool, FmaTurns256) * kTurns * kChains * 8 * 2;
    case KernelLevel::kAvx512Vnni:
      return PiecesPerSecond(pool, FmaTurns512) * kTurns * kChains * 16 * 2;
  }
  return 0;
}

}  // namespace fucina::roofline
