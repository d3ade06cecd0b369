#ifndef FUCINA_TESTS_CORE_OPS_OPS_TESTING_H_
#define FUCINA_TESTS_CORE_OPS_OPS_TESTING_H_

// What the tests of ops share: every kernel level of this machine, teams of
// several sizes, random rows, and comparison of bits.

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "fucina/kernels/kernels.h"
#include "fucina/ops/context.h"
#include "fucina/parallel/thread_pool.h"
#include "fucina/tensor/tensor.h"

namespace fucina::ops_testing {

// A level and a team. The first is scalar on one thread: the oracle. The last
// is the best level on the largest team.
struct Rig {
  std::string name;
  ops::Context context;
};

inline const std::vector<Rig>& Rigs() {
  static auto* const rigs = [] {
    auto* result = new std::vector<Rig>;
    const auto add = [result](KernelLevel level, ThreadPool& pool) {
      const Kernels* kernels = KernelsFor(level);
      if (kernels == nullptr) return;
      result->push_back({std::string(Name(level)) + " on " +
                             std::to_string(pool.num_threads()) + " threads",
                         {pool, *kernels}});
    };
    auto* alone = new ThreadPool(1);
    for (const KernelLevel level : kAllKernelLevels) add(level, *alone);
    for (const int threads : {2, 5, 16}) {
      add(BestKernelLevel(), *new ThreadPool(threads));
    }
    return result;
  }();
  return *rigs;
}

using Floats = std::vector<float>;

inline Floats Normal(std::mt19937& random, std::int64_t n, float sigma = 1) {
  std::normal_distribution<float> normal(0, sigma);
  Floats values(n);
  for (float& value : values) value = normal(random);
  return values;
}

inline int Between(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

inline Tensor Rows(Floats& values, std::int64_t row_size) {
  return Tensor(DType::kF32,
                {static_cast<std::int64_t>(values.size()) / row_size, row_size},
                values.data());
}
inline Tensor Rows(const Floats& values, std::int64_t row_size) {
  return Tensor(DType::kF32,
                {static_cast<std::int64_t>(values.size()) / row_size, row_size},
                values.data());
}

inline bool SameBits(const Floats& a, const Floats& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace fucina::ops_testing

#endif  // FUCINA_TESTS_CORE_OPS_OPS_TESTING_H_
