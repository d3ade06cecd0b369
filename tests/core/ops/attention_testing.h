#ifndef FUCINA_TESTS_CORE_OPS_ATTENTION_TESTING_H_
#define FUCINA_TESTS_CORE_OPS_ATTENTION_TESTING_H_

// A made-up sequence: queries, keys and values of every position, its storage,
// and the definition of attention over them in f64.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "fucina/kernels/f16.h"
#include "fucina/model/kv_cache.h"
#include "fucina/ops/attention.h"
#include "tests/core/ops/ops_testing.h"

namespace fucina::ops_testing {

struct HeadShape {
  int num_heads = 4;
  int num_kv_heads = 2;
  int head_dim = 32;
  DType dtype = DType::kF16;

  int q_size() const { return num_heads * head_dim; }
  int kv_size() const { return num_kv_heads * head_dim; }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(head_dim)); }
};

inline std::unique_ptr<KvCache> NewCache(const HeadShape& shape, int capacity) {
  return KvCache::Create({.num_layers = 1,
                          .num_kv_heads = shape.num_kv_heads,
                          .head_dim = shape.head_dim,
                          .dtype = shape.dtype},
                         capacity)
      .value();
}

inline ops::AttentionScratch NewScratch(const HeadShape& shape, const Rig& rig,
                                        int capacity, int num_items = 1) {
  return ops::AttentionScratch::Create(
             {.num_threads = rig.context.pool.num_threads(),
              .num_heads = shape.num_heads,
              .num_kv_heads = shape.num_kv_heads,
              .head_dim = shape.head_dim,
              .capacity = capacity,
              .num_items = num_items})
      .value();
}

struct Sequence {
  HeadShape shape;
  int length = 0;
  Floats q, k, v;  // [length][heads * head_dim]

  Sequence(const HeadShape& s, int n, std::mt19937& random, float sigma = 1)
      : shape(s),
        length(n),
        q(Normal(random, static_cast<std::int64_t>(n) * s.q_size(), sigma)),
        k(Normal(random, static_cast<std::int64_t>(n) * s.kv_size(), sigma)),
        v(Normal(random, static_cast<std::int64_t>(n) * s.kv_size(), sigma)) {}

  // Appends and attends for positions [begin, end); writes their rows of `out`
  // ([length][heads * head_dim]).
  void Run(const Rig& rig, KvCache& cache, ops::AttentionScratch& scratch,
           int begin, int end, Floats& out) {
    const ops::AttentionItem item = {.kv = cache.layer(0),
                                     .position = begin,
                                     .first_row = begin,
                                     .num_rows = end - begin};
    ops::AppendKv(rig.context, Rows(k, shape.kv_size()),
                  Rows(v, shape.kv_size()), {&item, 1});
    ops::Attention(rig.context, Rows(q, shape.q_size()), {&item, 1},
                   shape.scale(), scratch, Rows(out, shape.q_size()));
    cache.Advance(end - begin);
  }

  // All rows, in pieces of the given sizes, repeated.
  Floats RunInPieces(const Rig& rig, const std::vector<int>& pieces,
                     int capacity) {
    const std::unique_ptr<KvCache> cache = NewCache(shape, capacity);
    ops::AttentionScratch scratch = NewScratch(shape, rig, capacity);
    Floats out(q.size());
    std::size_t next = 0;
    for (int begin = 0; begin < length;) {
      const int end = std::min(length, begin + pieces[next++ % pieces.size()]);
      Run(rig, *cache, scratch, begin, end, out);
      begin = end;
    }
    return out;
  }

  float Stored(float x) const {
    if (shape.dtype == DType::kF32) return x;
    return F16ToFloat(FloatToF16(std::clamp(x, -65504.0f, 65504.0f)));
  }

  // One row by the definition.
  std::vector<double> Reference(int position) const {
    const int dim = shape.head_dim;
    const int group = shape.num_heads / shape.num_kv_heads;
    std::vector<double> out(shape.q_size());
    std::vector<double> weight(position + 1);
    for (int head = 0; head < shape.num_heads; ++head) {
      const float* const query =
          q.data() + static_cast<std::int64_t>(position) * shape.q_size() +
          head * dim;
      const std::int64_t offset = head / group * dim;
      double max = -std::numeric_limits<double>::infinity();
      for (int j = 0; j <= position; ++j) {
        double score = 0;
        for (int c = 0; c < dim; ++c) {
          score += static_cast<double>(query[c]) *
                   Stored(k[static_cast<std::int64_t>(j) * shape.kv_size() +
                            offset + c]);
        }
        weight[j] = score * shape.scale();
        max = std::max(max, weight[j]);
      }
      double sum = 0;
      for (double& w : weight) sum += w = std::exp(w - max);
      for (int c = 0; c < dim; ++c) {
        double value = 0;
        for (int j = 0; j <= position; ++j) {
          value += weight[j] *
                   Stored(v[static_cast<std::int64_t>(j) * shape.kv_size() +
                            offset + c]);
        }
        out[head * dim + c] = value / sum;
      }
    }
    return out;
  }
};

}  // namespace fucina::ops_testing

#endif  // FUCINA_TESTS_CORE_OPS_ATTENTION_TESTING_H_
