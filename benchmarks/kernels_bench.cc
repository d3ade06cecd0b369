// The products of every level and weight type on shapes of real models. Read
// bytes_per_second of m = 1 against the memory bandwidth of the machine, and
// items_per_second (multiplications and additions) of m = 512 against its peak.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

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

ThreadPool& Pool() {
  static ThreadPool pool(PlanThreads(0).num_threads);
  return pool;
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

void RunLinear(benchmark::State& state, DType dtype, KernelLevel level,
               std::int64_t m, Shape shape, bool streamed) {
  const std::vector<std::byte> source = RandomBlocks(dtype, shape.n, shape.k);
  const Tensor weight(dtype, {shape.n, shape.k}, source.data());
  // Streamed: enough copies that no cache but the last holds them.
  const std::int64_t bytes =
      ops::PackedLinear::PackedBytes(dtype, shape.n, shape.k);
  const std::int64_t copies =
      streamed ? std::max<std::int64_t>(1, (std::int64_t{256} << 20) / bytes)
               : 1;
  std::vector<ops::PackedLinear> packed;
  for (std::int64_t i = 0; i < copies; ++i) {
    packed.push_back(ops::PackedLinear::Pack(weight, Pool()).value());
  }
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
  for (auto _ : state) {
    rows.Assign(Tensor(DType::kF32, {m, shape.k}, x.data()));
    ops::Linear(context, rows, packed[next], out);
    next = (next + 1) % packed.size();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
  state.SetItemsProcessed(state.iterations() * 2 * m * shape.n * shape.k);
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
  for (auto _ : state) {
    ops::ExpertMixture(
        context, Tensor(DType::kF32, {m, kHidden}, x.data()),
        {.num_used = kUsed, .experts = chosen, .weights = weights}, experts,
        scratch, Tensor(DType::kF32, {m, kHidden}, y.data()));
  }
  state.SetItemsProcessed(state.iterations() * m * kUsed * 3 * 2 * kHidden *
                          kFfn);
}

constexpr DType kTypes[] = {DType::kQ8_0, DType::kQ4_0, DType::kQ4_K,
                            DType::kQ5_K, DType::kQ6_K, DType::kIQ4_XS,
                            DType::kF16,  DType::kF32};
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
        for (std::int64_t m : {1, 4, 8, 16, 512}) {
          if (level == KernelLevel::kScalar && m > 1) continue;
          benchmark::RegisterBenchmark(
              ("BM_Linear/" + prefix + Dims(m, shape)).c_str(),
              [=](benchmark::State& state) {
                RunLinear(state, dtype, level, m, shape, m <= 16);
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
  for (std::int64_t m : {1, 4, 16, 512}) {
    benchmark::RegisterBenchmark(
        ("BM_Experts/q4_k/" + std::to_string(m)).c_str(),
        [=](benchmark::State& state) { RunExperts(state, DType::kQ4_K, m); })
        ->UseRealTime();
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
