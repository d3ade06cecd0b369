#include "fucina/ops/experts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "fucina/kernels/kernels.h"
#include "fucina/kernels/quantize.h"
#include "gtest/gtest.h"

namespace fucina::ops {
namespace {

using Floats = std::vector<float>;

constexpr int kExperts = 6;
constexpr int kUsed = 3;
constexpr std::int64_t kHidden = 64;
constexpr std::int64_t kFfn = 96;

Floats RandomFloats(std::int64_t n, std::mt19937& random) {
  std::normal_distribution<float> normal;
  Floats values(static_cast<std::size_t>(n));
  for (float& v : values) v = normal(random);
  return values;
}

// [experts, rows, columns] as in a file, with the decoded values beside.
struct Stack {
  std::vector<std::byte> bytes;
  Floats values;
  Tensor tensor;

  Stack(DType dtype, std::int64_t rows, std::int64_t columns,
        std::mt19937& random) {
    const std::size_t row_bytes =
        static_cast<std::size_t>(RowBytes(dtype, columns));
    const std::int64_t count = kExperts * rows;
    bytes.resize(row_bytes * static_cast<std::size_t>(count));
    values.resize(static_cast<std::size_t>(count * columns));
    for (std::int64_t r = 0; r < count; ++r) {
      Floats row = RandomFloats(columns, random);
      for (float& v : row) v *= 0.2F;
      std::byte* to = bytes.data() + static_cast<std::size_t>(r) * row_bytes;
      QuantizeRow(dtype, row.data(), to, columns);
      DequantizeRow(dtype, to, values.data() + r * columns, columns);
    }
    tensor = Tensor(dtype, {kExperts, rows, columns}, bytes.data());
  }

  double Dot(std::int64_t expert, std::int64_t row, const double* x) const {
    const std::int64_t columns = tensor.dim(2);
    const float* w = values.data() + (expert * tensor.dim(1) + row) * columns;
    double sum = 0;
    for (std::int64_t i = 0; i < columns; ++i) sum += w[i] * x[i];
    return sum;
  }
};

struct Layer {
  Stack gate;
  Stack up;
  Stack down;
  PackedExperts packed;
  std::vector<const ExpertWeights*> experts;

  Layer(DType gate_type, DType up_type, DType down_type, ThreadPool& pool,
        std::mt19937& random)
      : gate(gate_type, kFfn, kHidden, random),
        up(up_type, kFfn, kHidden, random),
        down(down_type, kHidden, kFfn, random) {
    absl::StatusOr<PackedExperts> result =
        PackedExperts::Pack(gate.tensor, up.tensor, down.tensor, pool);
    EXPECT_TRUE(result.ok()) << result.status();
    packed = std::move(result).value();
    for (const ExpertWeights& expert : packed.experts()) {
      experts.push_back(&expert);
    }
  }
};

struct Choice {
  std::vector<std::int32_t> experts;
  Floats weights;

  Choice(std::int64_t rows, std::mt19937& random) {
    std::uniform_real_distribution<float> uniform(0.1F, 1.0F);
    for (std::int64_t i = 0; i < rows; ++i) {
      std::vector<std::int32_t> order(kExperts);
      for (int e = 0; e < kExperts; ++e) order[static_cast<std::size_t>(e)] = e;
      std::shuffle(order.begin(), order.end(), random);
      for (int j = 0; j < kUsed; ++j) {
        experts.push_back(order[static_cast<std::size_t>(j)]);
        weights.push_back(uniform(random));
      }
    }
  }

  ExpertChoice Rows(std::int64_t begin, std::int64_t count) const {
    return {.num_used = kUsed,
            .experts = std::span(experts).subspan(
                static_cast<std::size_t>(begin * kUsed),
                static_cast<std::size_t>(count * kUsed)),
            .weights = std::span(weights).subspan(
                static_cast<std::size_t>(begin * kUsed),
                static_cast<std::size_t>(count * kUsed))};
  }
};

Floats Mix(const Context& context, const Layer& layer, const float* x,
           std::int64_t rows, const ExpertChoice& choice) {
  absl::StatusOr<ExpertScratch> scratch = ExpertScratch::Create(
      rows, kExperts, kUsed, kHidden, kFfn, context.pool.num_threads());
  EXPECT_TRUE(scratch.ok()) << scratch.status();
  Floats out(static_cast<std::size_t>(rows * kHidden), -7.0F);
  ExpertMixture(context, Tensor(DType::kF32, {rows, kHidden}, x), choice,
                layer.experts, *scratch,
                Tensor(DType::kF32, {rows, kHidden}, out.data()));
  return out;
}

// The definition in f64 over decoded weights.
Floats Reference(const Layer& layer, const float* x, std::int64_t rows,
                 const ExpertChoice& choice) {
  Floats out;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::vector<double> row(x + i * kHidden, x + (i + 1) * kHidden);
    std::vector<double> sum(static_cast<std::size_t>(kHidden), 0.0);
    for (int j = 0; j < kUsed; ++j) {
      const auto pair = static_cast<std::size_t>(i * kUsed + j);
      const std::int32_t e = choice.experts[pair];
      std::vector<double> middle;
      for (std::int64_t f = 0; f < kFfn; ++f) {
        const double g = layer.gate.Dot(e, f, row.data());
        middle.push_back(g / (1 + std::exp(-g)) *
                         layer.up.Dot(e, f, row.data()));
      }
      for (std::int64_t h = 0; h < kHidden; ++h) {
        sum[static_cast<std::size_t>(h)] +=
            double{choice.weights[pair]} * layer.down.Dot(e, h, middle.data());
      }
    }
    out.insert(out.end(), sum.begin(), sum.end());
  }
  return out;
}

double RelativeError(const Floats& got, const Floats& expected) {
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    error += (double{got[i]} - expected[i]) * (double{got[i]} - expected[i]);
    norm += double{expected[i]} * expected[i];
  }
  return std::sqrt(error / norm);
}

void ExpectSameBits(const Floats& a, const Floats& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(a[i]),
              std::bit_cast<std::uint32_t>(b[i]))
        << what << " element " << i << ": " << a[i] << " and " << b[i];
  }
}

struct Types {
  DType gate;
  DType up;
  DType down;
  double bound;  // relative, of the activations' rounding to 8 bits
};
constexpr Types kTypes[] = {
    {DType::kF32, DType::kF32, DType::kF32, 2e-6},
    {DType::kQ8_0, DType::kQ8_0, DType::kQ8_0, 0.02},
    {DType::kQ4_0, DType::kQ5_0, DType::kF16, 0.02},
    {DType::kF16, DType::kQ8_0, DType::kIQ4_NL, 0.02},
};

TEST(ExpertMixture, IsTheWeightedSumOfExperts) {
  std::mt19937 random(1);
  ThreadPool pool(2);
  const Context context{pool, *KernelsFor(BestKernelLevel())};
  for (const Types& types : kTypes) {
    const Layer layer(types.gate, types.up, types.down, pool, random);
    const Floats x = RandomFloats(17 * kHidden, random);
    const Choice choice(17, random);
    EXPECT_LT(
        RelativeError(Mix(context, layer, x.data(), 17, choice.Rows(0, 17)),
                      Reference(layer, x.data(), 17, choice.Rows(0, 17))),
        types.bound)
        << Name(types.gate) << " " << Name(types.down);
  }
}

TEST(ExpertMixture, RowsDoNotDependOnGroupingThreadsOrLevel) {
  std::mt19937 random(2);
  ThreadPool one(1);
  ThreadPool three(3);
  constexpr std::int64_t kRows = 40;
  for (const Types& types : kTypes) {
    const Layer layer(types.gate, types.up, types.down, three, random);
    const Floats x = RandomFloats(kRows * kHidden, random);
    const Choice choice(kRows, random);
    const Context best{one, *KernelsFor(BestKernelLevel())};
    Floats alone;
    for (std::int64_t i = 0; i < kRows; ++i) {
      const Floats row =
          Mix(best, layer, x.data() + i * kHidden, 1, choice.Rows(i, 1));
      alone.insert(alone.end(), row.begin(), row.end());
    }
    for (KernelLevel level : kAllKernelLevels) {
      const Kernels* kernels = KernelsFor(level);
      if (kernels == nullptr) continue;
      for (ThreadPool* pool : {&one, &three}) {
        const Context context{*pool, *kernels};
        for (std::int64_t rows : {2, 7, 40}) {
          ExpectSameBits(
              Mix(context, layer, x.data(), rows, choice.Rows(0, rows)),
              Floats(alone.begin(), alone.begin() + rows * kHidden),
              std::string(Name(level)) + " " + std::string(Name(types.gate)) +
                  " rows " + std::to_string(rows));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(ExpertMixture, DroppedSlotsAreNotComputed) {
  std::mt19937 random(3);
  ThreadPool pool(2);
  const Context context{pool, *KernelsFor(BestKernelLevel())};
  Layer layer(DType::kQ8_0, DType::kQ8_0, DType::kQ8_0, pool, random);
  const Floats x = RandomFloats(kHidden, random);
  const std::vector<std::int32_t> dropped = {4, 4, 4};
  const Floats weights = {0.5F, 0, 0};
  // Nobody else may be touched.
  for (int e = 0; e < kExperts; ++e) {
    if (e != 4) layer.experts[static_cast<std::size_t>(e)] = nullptr;
  }
  const Floats y =
      Mix(context, layer, x.data(), 1,
          {.num_used = kUsed, .experts = dropped, .weights = weights});
  EXPECT_LT(RelativeError(y, Reference(layer, x.data(), 1,
                                       {.num_used = kUsed,
                                        .experts = dropped,
                                        .weights = weights})),
            0.02);
}

TEST(PackedExperts, MemoryOfTheCallerGivesTheSameResult) {
  std::mt19937 random(4);
  ThreadPool pool(2);
  const Context context{pool, *KernelsFor(BestKernelLevel())};
  for (const Types& types : kTypes) {
    Layer layer(types.gate, types.up, types.down, pool, random);
    const Floats x = RandomFloats(3 * kHidden, random);
    const Choice choice(3, random);
    const Floats expected = Mix(context, layer, x.data(), 3, choice.Rows(0, 3));
    std::vector<Buffer> memory;
    std::vector<ExpertWeights> experts;
    for (std::int64_t e = 0; e < kExperts; ++e) {
      const auto slice = [e](const Stack& stack) {
        return stack.tensor
            .Reshape({kExperts * stack.tensor.dim(1), stack.tensor.dim(2)})
            .Slice(e * stack.tensor.dim(1), stack.tensor.dim(1));
      };
      const std::int64_t bytes = PackedExperts::ExpertBytes(
          slice(layer.gate), slice(layer.up), slice(layer.down));
      memory.push_back(
          Buffer::Allocate(static_cast<std::size_t>(bytes)).value());
      experts.push_back(PackedExperts::PackExpertInto(
          slice(layer.gate), slice(layer.up), slice(layer.down),
          std::span<std::byte>(memory.back().data(),
                               memory.back().size_bytes())));
    }
    for (std::size_t e = 0; e < experts.size(); ++e) {
      layer.experts[e] = &experts[e];
    }
    ExpectSameBits(Mix(context, layer, x.data(), 3, choice.Rows(0, 3)),
                   expected, std::string(Name(types.gate)));
  }
}

TEST(ExpertMixtureDeathTest, RefusesExpertsThatAreNotThere) {
  std::mt19937 random(5);
  ThreadPool pool(1);
  const Context context{pool, *KernelsFor(KernelLevel::kScalar)};
  Layer layer(DType::kF32, DType::kF32, DType::kF32, pool, random);
  const Floats x = RandomFloats(kHidden, random);
  const Floats weights = {1, 1, 1};
  std::vector<std::int32_t> experts = {0, 1, 6};
  const ExpertChoice choice{
      .num_used = kUsed, .experts = experts, .weights = weights};
  EXPECT_DEATH(Mix(context, layer, x.data(), 1, choice), "expert 6 of 6");
  experts[2] = 2;
  layer.experts[2] = nullptr;
  EXPECT_DEATH(Mix(context, layer, x.data(), 1, choice), "expert 2");
}

}  // namespace
}  // namespace fucina::ops
