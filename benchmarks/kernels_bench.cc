// The products of every level and weight type on shapes of real models. Few
// rows stream their weights from memory: bytes/s, and roof% of what memory
// gives now. Many rows: ops/s (multiplications and additions), and roof% of
// what the units of that level give now, int8 or f32. FUCINA_BENCH_THREADS is
// the number of threads, by default that of the machine.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/roofline.h"
#include "fucina/kernels/kernels.h"
#include "fucina/kernels/pack_kernels.h"
#include "fucina/ops/experts.h"
#include "fucina/ops/linear.h"
#include "fucina/parallel/thread_plan.h"
#include "fucina/parallel/thread_pool.h"

namespace fucina {
namespace {

struct Shape {
  std::int64_t n;
  std::int64_t k;
};

// A benchmark may read the environment; the program may not.
ThreadPool& Pool() {
  static ThreadPool pool([] {
    const char* wanted = std::getenv("FUCINA_BENCH_THREADS");
    return PlanThreads(wanted == nullptr ? 0 : std::atoi(wanted)).num_threads;
  }());
  return pool;
}

// From this many rows on a product is bound by arithmetic, not by memory.
constexpr std::int64_t kComputeRows = 32;

// Memory bandwidth or arithmetic, whichever bounds a product of `m` rows.
void ReportProduct(benchmark::State& state, double seconds, DType dtype,
                   KernelLevel level, std::int64_t m, std::int64_t bytes,
                   std::int64_t ops) {
  if (m < kComputeRows) {
    roofline::Report(state, seconds, "bytes/s", static_cast<double>(bytes), [] {
      return roofline::DramRead(Pool(),
                                roofline::DramBytes(Pool().num_threads()), 2);
    });
    return;
  }
  roofline::Report(state, seconds, "ops/s", static_cast<double>(ops), [&] {
    return IsFloatFormat(PanelFormatOf(dtype)) ? roofline::F32(Pool(), level)
                                               : roofline::Int8(Pool(), level);
  });
}

// Speed does not depend on values, as long as none is subnormal or NaN: random
// nibbles with scale fields near 0.01.
std::vector<std::byte> RandomBlocks(DType dtype, std::int64_t rows,
                                    std::int64_t k) {
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(rows * RowBytes(dtype, k)));
  std::mt19937 random(1);
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(0x20 | (random() & 0x0F));
  }
  return bytes;
}

// As much as no cache holds: some processors have half a gigabyte.
constexpr std::int64_t kStreamedBytes = std::int64_t{1} << 30;

// One packed matrix, or as many copies as `bytes` hold. The last one asked for
// is kept: benchmarks that share it follow each other.
const std::vector<ops::PackedLinear>& Packed(DType dtype, Shape shape,
                                             std::int64_t bytes) {
  struct Kept {
    DType dtype = DType::kF32;
    Shape shape = {};
    std::int64_t bytes = -1;
    std::vector<ops::PackedLinear> copies = {};
  };
  static Kept kept;
  if (kept.bytes == bytes && kept.dtype == dtype && kept.shape.n == shape.n &&
      kept.shape.k == shape.k) {
    return kept.copies;
  }
  kept = {.dtype = dtype, .shape = shape, .bytes = bytes};
  const std::vector<std::byte> source = RandomBlocks(dtype, shape.n, shape.k);
  const Tensor weight(dtype, {shape.n, shape.k}, source.data());
  const std::int64_t count = std::max<std::int64_t>(
      1, bytes / ops::PackedLinear::PackedBytes(dtype, shape.n, shape.k));
  for (std::int64_t i = 0; i < count; ++i) {
    kept.copies.push_back(ops::PackedLinear::Pack(weight, Pool()).value());
  }
  return kept.copies;
}

void RunLinear(benchmark::State& state, DType dtype, KernelLevel level,
               std::int64_t m, Shape shape) {
  const std::vector<ops::PackedLinear>& packed =
      Packed(dtype, shape, m < kComputeRows ? kStreamedBytes : 0);
  const std::int64_t bytes =
      ops::PackedLinear::PackedBytes(dtype, shape.n, shape.k);
  std::vector<float> x(static_cast<std::size_t>(m * shape.k));
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(random);
  std::vector<float> y(static_cast<std::size_t>(m * (shape.n + 16)));
  const Tensor out = Tensor::Strided(
      DType::kF32, m, shape.n,
      (shape.n + 16) * static_cast<std::int64_t>(sizeof(float)), y.data());
  ops::ActivationRows rows =
      ops::ActivationRows::Create(m, shape.k, Pool().num_threads()).value();
  const ops::Context context{Pool(), *KernelsFor(level)};
  std::size_t next = 0;
  const roofline::Watch watch;
  for (auto _ : state) {
    rows.Assign(Tensor(DType::kF32, {m, shape.k}, x.data()));
    ops::Linear(context, rows, packed[next], out);
    next = (next + 1) % packed.size();
  }
  ReportProduct(state, watch.Seconds(), dtype, level, m, bytes,
                2 * m * shape.n * shape.k);
}

// One thread packs into memory that is there: what the processor can do.
// RunPack adds the team and fresh memory, which the system has to clear.
void RunPackStrip(benchmark::State& state, DType dtype, KernelLevel level,
                  Shape shape) {
  const std::vector<std::byte> source = RandomBlocks(dtype, shape.n, shape.k);
  const Tensor weight(dtype, {shape.n, shape.k}, source.data());
  const std::int64_t strip_bytes = StripBytes(PanelFormatOf(dtype), shape.k);
  const std::int64_t num_strips = shape.n / kStripRows;
  std::vector<std::uint8_t> packed(
      static_cast<std::size_t>(num_strips * strip_bytes));
  const PackStripFn pack = PackStripFor(level);
  for (auto _ : state) {
    for (std::int64_t s = 0; s < num_strips; ++s) {
      const void* rows[kStripRows];
      for (int i = 0; i < kStripRows; ++i) {
        rows[i] = weight.row_bytes(s * kStripRows + i);
      }
      pack(dtype, rows, shape.k, packed.data() + s * strip_bytes);
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(source.size()));
}

void RunPack(benchmark::State& state, DType dtype, Shape shape) {
  const std::vector<std::byte> source = RandomBlocks(dtype, shape.n, shape.k);
  const Tensor weight(dtype, {shape.n, shape.k}, source.data());
  for (auto _ : state) {
    benchmark::DoNotOptimize(ops::PackedLinear::Pack(weight, Pool()).value());
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(source.size()));
}

// One layer of a mixture of the shape of Qwen3-30B-A3B, with fewer experts.
void RunExperts(benchmark::State& state, DType dtype, std::int64_t m) {
  constexpr std::int64_t kHidden = 2048;
  constexpr std::int64_t kFfn = 768;
  constexpr int kExperts = 32;
  constexpr int kUsed = 8;
  const std::vector<std::byte> up =
      RandomBlocks(dtype, kExperts * kFfn, kHidden);
  const std::vector<std::byte> down =
      RandomBlocks(dtype, kExperts * kHidden, kFfn);
  const Tensor up_tensor(dtype, {kExperts, kFfn, kHidden}, up.data());
  const ops::PackedExperts packed =
      ops::PackedExperts::Pack(
          up_tensor, up_tensor,
          Tensor(dtype, {kExperts, kHidden, kFfn}, down.data()), Pool())
          .value();
  std::vector<const ops::ExpertWeights*> experts;
  for (const ops::ExpertWeights& expert : packed.experts()) {
    experts.push_back(&expert);
  }
  std::mt19937 random(3);
  std::vector<std::int32_t> chosen;
  for (std::int64_t i = 0; i < m; ++i) {
    const std::uint32_t first = random();
    for (std::uint32_t j = 0; j < kUsed; ++j) {
      chosen.push_back(static_cast<std::int32_t>((first + 5 * j) % kExperts));
    }
  }
  const std::vector<float> weights(chosen.size(), 0.125F);
  std::vector<float> x(static_cast<std::size_t>(m * kHidden), 0.3F);
  std::vector<float> y(x.size());
  ops::ExpertScratch scratch =
      ops::ExpertScratch::Create(m, kExperts, kUsed, kHidden, kFfn,
                                 Pool().num_threads())
          .value();
  const ops::Context context{Pool(), *KernelsFor(BestKernelLevel())};
  const roofline::Watch watch;
  for (auto _ : state) {
    ops::ExpertMixture(
        context, Tensor(DType::kF32, {m, kHidden}, x.data()),
        {.num_used = kUsed, .experts = chosen, .weights = weights}, experts,
        scratch, Tensor(DType::kF32, {m, kHidden}, y.data()));
  }
  // Each expert that is used is read once.
  std::int64_t active = 0;
  for (std::int32_t expert = 0; expert < kExperts; ++expert) {
    active += std::count(chosen.begin(), chosen.end(), expert) > 0 ? 1 : 0;
  }
  const std::int64_t expert_bytes =
      2 * ops::PackedLinear::PackedBytes(dtype, kFfn, kHidden) +
      ops::PackedLinear::PackedBytes(dtype, kHidden, kFfn);
  const double seconds = watch.Seconds();
  const std::int64_t rows_of_each = m * kUsed / kExperts;
  if (rows_of_each >= kComputeRows) {
    ReportProduct(state, seconds, dtype, context.kernels.level, rows_of_each,
                  active * expert_bytes, m * kUsed * 3 * 2 * kHidden * kFfn);
  } else {
    // No roof: the few experts of one layer stay in the caches.
    roofline::Report(state, seconds, "bytes/s",
                     static_cast<double>(active * expert_bytes),
                     [] { return 0.0; });
  }
}

constexpr DType kTypes[] = {
    DType::kQ8_0,   DType::kQ4_0,   DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
    DType::kQ2_K,   DType::kQ3_K,   DType::kQ4_K, DType::kQ5_K, DType::kQ6_K,
    DType::kIQ4_NL, DType::kIQ4_XS, DType::kF16,  DType::kBF16, DType::kF32};
constexpr Shape kShapes[] = {{3072, 1024}, {1024, 3072}, {6144, 2048}};

std::string Dims(std::int64_t m, Shape shape) {
  return std::to_string(m) + "x" + std::to_string(shape.n) + "x" +
         std::to_string(shape.k);
}

void RegisterAll() {
  for (KernelLevel level : kAllKernelLevels) {
    if (KernelsFor(level) == nullptr) continue;
    for (DType dtype : kTypes) {
      const std::string prefix =
          std::string(Name(level)) + "/" + std::string(Name(dtype)) + "/";
      for (Shape shape : kShapes) {
        for (std::int64_t m : {1, 2, 4, 8, 16, 128, 512}) {
          if (level == KernelLevel::kScalar && m > 1) continue;
          benchmark::RegisterBenchmark(
              ("BM_Linear/" + prefix + Dims(m, shape)).c_str(),
              [=](benchmark::State& state) {
                RunLinear(state, dtype, level, m, shape);
              })
              ->UseRealTime();
        }
      }
    }
  }
  for (KernelLevel level : {KernelLevel::kScalar, BestKernelLevel()}) {
    for (DType dtype : kTypes) {
      benchmark::RegisterBenchmark(
          ("BM_PackStrip/" + std::string(Name(level)) + "/" +
           std::string(Name(dtype)) + "/6144x2048")
              .c_str(),
          [=](benchmark::State& state) {
            RunPackStrip(state, dtype, level, Shape{6144, 2048});
          })
          ->UseRealTime();
    }
  }
  for (DType dtype : kTypes) {
    benchmark::RegisterBenchmark(
        ("BM_Pack/" + std::string(Name(dtype)) + "/6144x2048").c_str(),
        [=](benchmark::State& state) {
          RunPack(state, dtype, Shape{6144, 2048});
        })
        ->UseRealTime();
  }
  for (DType dtype : {DType::kQ8_0, DType::kQ4_K}) {
    for (std::int64_t m : {1, 4, 16, 128, 512}) {
      benchmark::RegisterBenchmark(
          ("BM_Experts/" + std::string(Name(dtype)) + "/" + std::to_string(m))
              .c_str(),
          [=](benchmark::State& state) { RunExperts(state, dtype, m); })
          ->UseRealTime();
    }
  }
}

}  // namespace
}  // namespace fucina

int main(int argc, char** argv) {
  fucina::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
