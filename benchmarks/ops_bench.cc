// Ops at the shapes of real models, on all threads of the machine and the best
// kernel level. bytes/s are those of the keys and values read, beside roof%,
// the share of what memory gives now; ops/s count two per multiply-add, beside
// the share of what the f32 units give now. What stays in the caches has no
// roof%.

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "benchmarks/roofline.h"
#include "fucina/kernels/kernels.h"
#include "fucina/model/kv_cache.h"
#include "fucina/ops/activation.h"
#include "fucina/ops/attention.h"
#include "fucina/ops/norm.h"
#include "fucina/ops/rope.h"
#include "fucina/ops/routing.h"
#include "fucina/parallel/thread_plan.h"
#include "fucina/parallel/thread_pool.h"

namespace fucina {
namespace {

const ops::Context& Machine() {
  static auto* const pool = new ThreadPool(PlanThreads(0).num_threads);
  static auto* const context =
      new ops::Context{*pool, *KernelsFor(BestKernelLevel())};
  return *context;
}

std::vector<float> Normal(std::int64_t n) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

Tensor Rows(std::vector<float>& values, std::int64_t rows) {
  return Tensor(DType::kF32,
                {rows, static_cast<std::int64_t>(values.size()) / rows},
                values.data());
}

// Arguments: rows, size.
void BM_RmsNorm(benchmark::State& state) {
  const std::int64_t n = state.range(0) * state.range(1);
  std::vector<float> x = Normal(n);
  std::vector<float> y(n);
  const std::vector<float> weight = Normal(state.range(1));
  for (auto _ : state) {
    ops::RmsNorm(Machine(), Rows(x, state.range(0)), weight, 1e-6f,
                 Rows(y, state.range(0)));
  }
  state.SetBytesProcessed(state.iterations() * n * 4);
}
BENCHMARK(BM_RmsNorm)->Args({1, 1024})->Args({1, 4096})->Args({512, 1024});

// Arguments: rows, size.
void BM_GatedSilu(benchmark::State& state) {
  const std::int64_t n = state.range(0) * state.range(1);
  std::vector<float> gate = Normal(n);
  std::vector<float> up = Normal(n);
  std::vector<float> y(n);
  for (auto _ : state) {
    ops::GatedSilu(Machine(), Rows(gate, state.range(0)),
                   Rows(up, state.range(0)), Rows(y, state.range(0)));
  }
  state.SetBytesProcessed(state.iterations() * n * 8);
}
BENCHMARK(BM_GatedSilu)->Args({1, 3072})->Args({1, 12288})->Args({512, 3072});

// Arguments: rows, heads of 128.
void BM_HeadNormAndRope(benchmark::State& state) {
  const std::int64_t n = state.range(0) * state.range(1) * 128;
  std::vector<float> x = Normal(n);
  const std::vector<float> weight = Normal(128);
  const ops::RopeTable table({.rotary_dim = 128, .theta = 1e6});
  if (!table.Prepare(4096).ok()) return state.SkipWithError("no memory");
  std::vector<std::int32_t> positions(state.range(0));
  for (std::size_t i = 0; i < positions.size(); ++i) {
    positions[i] = static_cast<std::int32_t>(i);
  }
  for (auto _ : state) {
    const ops::NormedHeads heads = {Rows(x, state.range(0)), weight};
    ops::NormAndRope(Machine(), table, positions, 128, 1e-6f, {&heads, 1});
  }
  state.SetBytesProcessed(state.iterations() * n * 4);
}
BENCHMARK(BM_HeadNormAndRope)->Args({1, 24})->Args({512, 24});

// Arguments: rows, experts, used.
void BM_Route(benchmark::State& state) {
  const auto rows = state.range(0);
  const ops::RoutingRule rule = {
      .num_experts = static_cast<int>(state.range(1)),
      .num_experts_used = static_cast<int>(state.range(2))};
  std::vector<float> logits = Normal(rows * rule.num_experts);
  std::vector<std::int32_t> experts(
      static_cast<std::size_t>(rows * rule.num_experts_used));
  std::vector<float> weights(experts.size());
  for (auto _ : state) {
    ops::Route(rule, Rows(logits, rows), {}, experts, weights);
  }
  state.SetItemsProcessed(state.iterations() * rows);
}
BENCHMARK(BM_Route)->Args({1, 128, 8})->Args({512, 128, 8});

// Several layers, so that the keys and values of a step do not stay in the
// caches from one iteration to the next.
struct Model {
  int num_heads, num_kv_heads, head_dim, num_layers;
  std::unique_ptr<KvCache> cache;
  std::vector<float> q, k, v, out;
  ops::AttentionScratch scratch;

  Model(const benchmark::State& state, int rows, int depth, int layers)
      : num_heads(static_cast<int>(state.range(0))),
        num_kv_heads(static_cast<int>(state.range(1))),
        head_dim(static_cast<int>(state.range(2))),
        num_layers(layers) {
    const int capacity = depth + rows;
    cache = KvCache::Create({.num_layers = num_layers,
                             .num_kv_heads = num_kv_heads,
                             .head_dim = head_dim},
                            capacity)
                .value();
    q = Normal(static_cast<std::int64_t>(rows) * num_heads * head_dim);
    out.resize(q.size());
    k = Normal(static_cast<std::int64_t>(std::max(rows, 512)) * num_kv_heads *
               head_dim);
    v = k;
    scratch = ops::AttentionScratch::Create(
                  {.num_threads = Machine().pool.num_threads(),
                   .num_heads = num_heads,
                   .num_kv_heads = num_kv_heads,
                   .head_dim = head_dim,
                   .capacity = capacity})
                  .value();
    for (int layer = 0; layer < num_layers; ++layer) {
      for (int at = 0; at < depth; at += 512) {
        Append(layer, at, std::min(512, depth - at));
      }
      Append(layer, depth, rows);  // the first touch of its pages
    }
  }

  void Append(int layer, int position, int rows) {
    const ops::AttentionItem item = {
        .kv = cache->layer(layer), .position = position, .num_rows = rows};
    const std::int64_t size =
        static_cast<std::int64_t>(num_kv_heads) * head_dim;
    ops::AppendKv(Machine(), Tensor(DType::kF32, {rows, size}, k.data()),
                  Tensor(DType::kF32, {rows, size}, v.data()), {&item, 1});
  }

  void Attend(int layer, int position, int rows) {
    const ops::AttentionItem item = {
        .kv = cache->layer(layer), .position = position, .num_rows = rows};
    ops::Attention(Machine(), Rows(q, rows), {&item, 1},
                   1.0f / std::sqrt(static_cast<float>(head_dim)), scratch,
                   Rows(out, rows));
  }
};

// Arguments: heads, KV heads, head_dim, depth, rows.
void BM_AttentionDecode(benchmark::State& state) {
  const int depth = static_cast<int>(state.range(3));
  const int rows = static_cast<int>(state.range(4));
  // As much as no cache holds: some processors have half a gigabyte.
  constexpr std::int64_t kStreamedBytes = std::int64_t{1} << 30;
  const int layers = static_cast<int>(std::clamp<std::int64_t>(
      kStreamedBytes / (4 * depth * state.range(1) * state.range(2)), 1, 512));
  Model model(state, rows, depth, layers);
  int layer = 0;
  const roofline::Watch watch;
  for (auto _ : state) {
    model.Append(layer, depth, rows);
    model.Attend(layer, depth, rows);
    layer = (layer + 1) % layers;
  }
  // Keys and values in f16.
  const double bytes =
      4.0 * (depth + rows) * model.num_kv_heads * model.head_dim;
  roofline::Report(state, watch.Seconds(), "bytes/s", bytes, [] {
    ThreadPool& pool = Machine().pool;
    return roofline::DramRead(pool, roofline::DramBytes(pool.num_threads()), 2);
  });
}
BENCHMARK(BM_AttentionDecode)
    ->Args({16, 8, 128, 60, 1})
    ->Args({16, 8, 128, 512, 1})
    ->Args({16, 8, 128, 4096, 1})
    ->Args({16, 8, 128, 16384, 1})
    ->Args({16, 8, 128, 4096, 4})
    ->Args({32, 8, 128, 4096, 1})
    ->Args({32, 8, 128, 4096, 8})
    ->Args({64, 4, 128, 4096, 1})
    ->Args({32, 32, 64, 4096, 1})
    ->UseRealTime();

// Arguments: heads, KV heads, head_dim, depth, rows.
void BM_AttentionPrefill(benchmark::State& state) {
  const int depth = static_cast<int>(state.range(3));
  const int rows = static_cast<int>(state.range(4));
  Model model(state, rows, depth, 1);
  model.Append(0, depth, rows);
  double pairs = 0;  // of query and position
  for (int row = 0; row < rows; ++row) pairs += depth + row + 1;
  const roofline::Watch watch;
  for (auto _ : state) model.Attend(0, depth, rows);
  roofline::Report(
      state, watch.Seconds(), "ops/s",
      4.0 * pairs * model.num_heads * model.head_dim,
      [] { return roofline::F32(Machine().pool, Machine().kernels.level); });
}
BENCHMARK(BM_AttentionPrefill)
    ->Args({16, 8, 128, 0, 64})
    ->Args({16, 8, 128, 0, 512})
    ->Args({16, 8, 128, 4096, 512})
    ->Args({32, 8, 128, 0, 512})
    ->Args({64, 4, 128, 0, 512})
    ->Args({32, 32, 64, 0, 512})
    ->UseRealTime();

// Arguments: rows.
void BM_AppendKv(benchmark::State& state) {
  const int rows = static_cast<int>(state.range(3));
  Model model(state, rows, 0, 1);
  for (auto _ : state) model.Append(0, 0, rows);
  state.SetItemsProcessed(state.iterations() * rows);
}
BENCHMARK(BM_AppendKv)
    ->Args({16, 8, 128, 1})
    ->Args({16, 8, 128, 512})
    ->UseRealTime();

}  // namespace
}  // namespace fucina
