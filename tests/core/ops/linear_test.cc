#include "fucina/ops/linear.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "fucina/kernels/kernels.h"
#include "fucina/kernels/quantize.h"
#include "fucina/parallel/flush_denormals.h"
#include "gtest/gtest.h"

namespace fucina::ops {
namespace {

using Floats = std::vector<float>;

Floats RandomFloats(std::int64_t n, std::mt19937& random) {
  std::normal_distribution<float> normal;
  Floats values(static_cast<std::size_t>(n));
  for (float& v : values) v = normal(random);
  return values;
}

// A weight as it is in a file.
struct Weight {
  std::vector<std::byte> bytes;
  Tensor tensor;

  Weight(DType dtype, std::int64_t out, std::int64_t in, std::mt19937& random) {
    const std::size_t row_bytes = static_cast<std::size_t>(RowBytes(dtype, in));
    bytes.resize(row_bytes * static_cast<std::size_t>(out));
    for (std::int64_t r = 0; r < out; ++r) {
      const Floats row = RandomFloats(in, random);
      QuantizeRow(dtype, row.data(),
                  bytes.data() + static_cast<std::size_t>(r) * row_bytes, in);
    }
    tensor = Tensor(dtype, {out, in}, bytes.data());
  }

  double Dot(std::int64_t row, const float* x) const {
    Floats w(static_cast<std::size_t>(tensor.row_size()));
    DequantizeRow(tensor.dtype(), tensor.row_bytes(row), w.data(),
                  tensor.row_size());
    double sum = 0;
    for (std::size_t i = 0; i < w.size(); ++i) sum += double{w[i]} * x[i];
    return sum;
  }
};

PackedLinear Pack(const Weight& weight, ThreadPool& pool) {
  absl::StatusOr<PackedLinear> packed = PackedLinear::Pack(weight.tensor, pool);
  EXPECT_TRUE(packed.ok()) << packed.status();
  return std::move(packed).value();
}

ActivationRows Rows(std::int64_t rows, std::int64_t features, int threads,
                    std::int64_t rank = 0) {
  absl::StatusOr<ActivationRows> result =
      ActivationRows::Create(rows, features, threads, rank);
  EXPECT_TRUE(result.ok()) << result.status();
  return std::move(result).value();
}

Floats Multiply(const Context& context, const PackedLinear& weight,
                const Floats& x, std::int64_t rows) {
  ActivationRows input =
      Rows(rows, weight.in_features(), context.pool.num_threads());
  input.Assign(Tensor(DType::kF32, {rows, weight.in_features()}, x.data()));
  Floats y(static_cast<std::size_t>(rows * weight.out_features()), -7.0F);
  Linear(context, input, weight,
         Tensor(DType::kF32, {rows, weight.out_features()}, y.data()));
  return y;
}

void ExpectSameBits(const Floats& a, const Floats& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(a[i]),
              std::bit_cast<std::uint32_t>(b[i]))
        << what << " element " << i << ": " << a[i] << " and " << b[i];
  }
}

constexpr DType kTypes[] = {DType::kF32,  DType::kF16,  DType::kBF16,
                            DType::kQ8_0, DType::kQ4_0, DType::kQ5_1,
                            DType::kQ4_K, DType::kQ6_K, DType::kIQ4_XS};

TEST(Linear, IsNearTheProductOfDecodedWeights) {
  std::mt19937 random(1);
  ThreadPool pool(2);
  const Context context{pool, *KernelsFor(BestKernelLevel())};
  for (DType dtype : kTypes) {
    const Weight weight(dtype, 45, 256, random);
    const PackedLinear packed = Pack(weight, pool);
    EXPECT_EQ(packed.in_features(), 256);
    EXPECT_EQ(packed.out_features(), 45);
    EXPECT_EQ(packed.dtype(), dtype);
    const Floats x = RandomFloats(3 * 256, random);
    const Floats y = Multiply(context, packed, x, 3);
    for (int t = 0; t < 3; ++t) {
      for (int r = 0; r < 45; ++r) {
        // 256 products of about 1, each activation rounded by up to
        // amax / 254 of its block.
        const double bound = dtype == DType::kF32 || dtype == DType::kF16 ||
                                     dtype == DType::kBF16
                                 ? 2e-4
                                 : 1.0;
        EXPECT_NEAR(y[static_cast<std::size_t>(t * 45 + r)],
                    weight.Dot(r, x.data() + t * 256), bound)
            << Name(dtype);
      }
    }
  }
}

// The promise that everything lossless rests on.
TEST(Linear, RowsDoNotDependOnBatchThreadsOrLevel) {
  std::mt19937 random(2);
  ThreadPool one(1);
  ThreadPool three(3);
  constexpr std::int64_t kMost = 67;
  for (DType dtype : kTypes) {
    const Weight weight(dtype, 75, 512, random);
    const PackedLinear packed = Pack(weight, three);
    const Floats x = RandomFloats(kMost * 512, random);
    const Context best{one, *KernelsFor(BestKernelLevel())};
    Floats alone;
    for (std::int64_t t = 0; t < kMost; ++t) {
      const Floats row =
          Multiply(best, packed,
                   Floats(x.begin() + t * 512, x.begin() + (t + 1) * 512), 1);
      alone.insert(alone.end(), row.begin(), row.end());
    }
    for (KernelLevel level : kAllKernelLevels) {
      const Kernels* kernels = KernelsFor(level);
      if (kernels == nullptr) continue;
      for (std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 33, 67}) {
        if (level == KernelLevel::kScalar && rows > 7) continue;  // slow
        for (ThreadPool* pool : {&one, &three}) {
          const Context context{*pool, *kernels};
          ExpectSameBits(
              Multiply(context, packed,
                       Floats(x.begin(), x.begin() + rows * 512), rows),
              Floats(alone.begin(), alone.begin() + rows * 75),
              std::string(Name(dtype)) + " " + std::string(Name(level)) +
                  " rows " + std::to_string(rows));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Linear, SeveralPartsAndJobsEqualSeparateProducts) {
  std::mt19937 random(3);
  ThreadPool pool(2);
  const Context context{pool, *KernelsFor(BestKernelLevel())};
  const Weight q(DType::kQ4_K, 50, 256, random);
  const Weight k(DType::kQ4_K, 20, 256, random);
  const Weight v(DType::kQ6_K, 33, 256, random);
  const Floats bias = RandomFloats(20, random);
  const LinearPart parts[2] = {
      {.weight = q.tensor},
      {.weight = k.tensor, .bias = Tensor(DType::kF32, {20}, bias.data())}};
  const PackedLinear qk = PackedLinear::Pack(parts, pool).value();
  const PackedLinear pv = Pack(v, pool);
  EXPECT_EQ(qk.out_features(), 70);
  ASSERT_EQ(qk.part_features().size(), 2);

  const std::int64_t rows = 11;
  const Floats x = RandomFloats(rows * 256, random);
  ActivationRows input = Rows(rows, 256, 2);
  input.Assign(Tensor(DType::kF32, {rows, 256}, x.data()));
  // One row-strided matrix for all: 50 + 20 + 33 columns and a gap.
  Floats y(static_cast<std::size_t>(rows * 110), -7.0F);
  const LinearJob jobs[2] = {
      {.weight = qk,
       .out = Tensor::Strided(DType::kF32, rows, 70, 440, y.data())},
      {.weight = pv,
       .out = Tensor::Strided(DType::kF32, rows, 33, 440, y.data() + 70)}};
  Linear(context, input, jobs);

  const Floats yq = Multiply(context, Pack(q, pool), x, rows);
  const Floats yk = Multiply(context, Pack(k, pool), x, rows);
  const Floats yv = Multiply(context, pv, x, rows);
  for (std::int64_t t = 0; t < rows; ++t) {
    const float* row = y.data() + t * 110;
    for (int i = 0; i < 50; ++i) EXPECT_EQ(row[i], yq[t * 50 + i]);
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(row[50 + i], yk[t * 20 + i] + bias[i]);
    }
    for (int i = 0; i < 33; ++i) EXPECT_EQ(row[70 + i], yv[t * 33 + i]);
    for (int i = 103; i < 110; ++i) EXPECT_EQ(row[i], -7.0F);
  }
}

TEST(Linear, GatedPairIsSiluOfGateTimesUp) {
  std::mt19937 random(4);
  ThreadPool pool(2);
  for (KernelLevel level : kAllKernelLevels) {
    const Kernels* kernels = KernelsFor(level);
    if (kernels == nullptr) continue;
    const Context context{pool, *kernels};
    for (std::int64_t ffn : {16, 40}) {
      const Weight gate(DType::kQ5_0, ffn, 96, random);
      const Weight up(DType::kQ5_0, ffn, 96, random);
      const PackedLinear pair =
          PackedLinear::PackGated({.weight = gate.tensor},
                                  {.weight = up.tensor}, pool)
              .value();
      EXPECT_TRUE(pair.gated());
      EXPECT_EQ(pair.out_features(), ffn);
      const Floats x = RandomFloats(9 * 96, random);
      const Floats y = Multiply(context, pair, x, 9);
      const Floats g = Multiply(context, Pack(gate, pool), x, 9);
      const Floats u = Multiply(context, Pack(up, pool), x, 9);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const double expected = g[i] / (1 + std::exp(-double{g[i]})) * u[i];
        EXPECT_NEAR(y[i], expected, 1e-6 * (1 + std::fabs(expected)));
      }
    }
  }
}

struct Pair {
  Floats a;
  Floats b;
  LowRank low_rank;

  Pair(std::int64_t out, std::int64_t in, std::int64_t rank, float scale,
       std::mt19937& random)
      : a(RandomFloats(out * rank, random)),
        b(RandomFloats(rank * in, random)),
        low_rank{.a = Tensor(DType::kF32, {out, rank}, a.data()),
                 .b = Tensor(DType::kF32, {rank, in}, b.data()),
                 .scale = scale} {}

  double Product(std::int64_t row, const float* x) const {
    const std::int64_t rank = low_rank.a.row_size();
    const std::int64_t in = low_rank.b.row_size();
    double sum = 0;
    for (std::int64_t j = 0; j < rank; ++j) {
      double bx = 0;
      for (std::int64_t i = 0; i < in; ++i) bx += double{b[j * in + i]} * x[i];
      sum += a[row * rank + j] * bx;
    }
    return low_rank.scale * sum;
  }
};

TEST(Linear, LowRankPairsAreAddedToTheirParts) {
  std::mt19937 random(5);
  ThreadPool pool(3);
  const Weight q(DType::kQ8_0, 40, 64, random);
  const Weight k(DType::kQ8_0, 24, 64, random);
  const LinearPart parts[2] = {{.weight = q.tensor}, {.weight = k.tensor}};
  const PackedLinear qk = PackedLinear::Pack(parts, pool).value();
  const Pair q_pair(40, 64, 5, 0.5F, random);
  const Pair k_pair(24, 64, 16, 2.0F, random);
  const Floats x = RandomFloats(13 * 64, random);
  Floats first;
  for (KernelLevel level : kAllKernelLevels) {
    const Kernels* kernels = KernelsFor(level);
    if (kernels == nullptr) continue;
    const Context context{pool, *kernels};
    const Floats plain = Multiply(context, qk, x, 13);
    for (int mask = 0; mask < 4; ++mask) {
      const LowRank* pairs[2] = {(mask & 1) != 0 ? &q_pair.low_rank : nullptr,
                                 (mask & 2) != 0 ? &k_pair.low_rank : nullptr};
      ActivationRows input = Rows(13, 64, 3, 21);
      input.Assign(Tensor(DType::kF32, {13, 64}, x.data()));
      Floats y(13 * 64);
      const LinearJob job{.weight = qk,
                          .out = Tensor(DType::kF32, {13, 64}, y.data()),
                          .low_rank = pairs};
      Linear(context, input, std::span<const LinearJob>(&job, 1));
      for (int t = 0; t < 13; ++t) {
        for (int i = 0; i < 64; ++i) {
          double expected = plain[static_cast<std::size_t>(t * 64 + i)];
          if (i < 40 && (mask & 1) != 0) {
            expected += q_pair.Product(i, x.data() + t * 64);
          }
          if (i >= 40 && (mask & 2) != 0) {
            expected += k_pair.Product(i - 40, x.data() + t * 64);
          }
          EXPECT_NEAR(y[static_cast<std::size_t>(t * 64 + i)], expected,
                      1e-4 * (1 + std::fabs(expected)));
        }
      }
      if (mask == 3) {
        if (first.empty()) first = y;
        ExpectSameBits(y, first, std::string(Name(level)));
      }
    }
  }
}

TEST(Linear, LowRankPairsComeBeforeTheGate) {
  std::mt19937 random(6);
  ThreadPool pool(2);
  const Context context{pool, *KernelsFor(BestKernelLevel())};
  const Weight gate(DType::kQ8_0, 24, 64, random);
  const Weight up(DType::kQ8_0, 24, 64, random);
  const PackedLinear pair = PackedLinear::PackGated({.weight = gate.tensor},
                                                    {.weight = up.tensor}, pool)
                                .value();
  const Pair gate_pair(24, 64, 4, 0.1F, random);
  const Pair up_pair(24, 64, 4, 0.1F, random);
  const LowRank* pairs[2] = {&gate_pair.low_rank, &up_pair.low_rank};
  const Floats x = RandomFloats(2 * 64, random);
  ActivationRows input = Rows(2, 64, 2, 8);
  input.Assign(Tensor(DType::kF32, {2, 64}, x.data()));
  Floats y(48);
  const LinearJob job{.weight = pair,
                      .out = Tensor(DType::kF32, {2, 24}, y.data()),
                      .low_rank = pairs};
  Linear(context, input, std::span<const LinearJob>(&job, 1));
  const Floats g = Multiply(context, Pack(gate, pool), x, 2);
  const Floats u = Multiply(context, Pack(up, pool), x, 2);
  for (int t = 0; t < 2; ++t) {
    for (int i = 0; i < 24; ++i) {
      const auto at = static_cast<std::size_t>(t * 24 + i);
      const double gated = g[at] + gate_pair.Product(i, x.data() + t * 64);
      const double upped = u[at] + up_pair.Product(i, x.data() + t * 64);
      const double expected = gated / (1 + std::exp(-gated)) * upped;
      EXPECT_NEAR(y[at], expected, 1e-4 * (1 + std::fabs(expected)));
    }
  }
}

TEST(PackedLinear, MemoryOfTheCallerGivesTheSameProduct) {
  std::mt19937 random(8);
  ThreadPool pool(2);
  const Context context{pool, *KernelsFor(BestKernelLevel())};
  const Weight gate(DType::kIQ4_NL, 40, 64, random);
  const Weight up(DType::kIQ4_NL, 40, 64, random);
  const Floats x = RandomFloats(4 * 64, random);

  Buffer memory =
      Buffer::Allocate(static_cast<std::size_t>(PackedLinear::PackedGatedBytes(
                           DType::kIQ4_NL, 40, 64)))
          .value();
  const std::span<std::byte> bytes(memory.data(), memory.size_bytes());
  ExpectSameBits(
      Multiply(context,
               PackedLinear::PackGatedInto(gate.tensor, up.tensor, bytes), x,
               4),
      Multiply(context,
               PackedLinear::PackGated({.weight = gate.tensor},
                                       {.weight = up.tensor}, pool)
                   .value(),
               x, 4),
      "gated");

  Buffer plain =
      Buffer::Allocate(static_cast<std::size_t>(
                           PackedLinear::PackedBytes(DType::kIQ4_NL, 40, 64)))
          .value();
  ExpectSameBits(
      Multiply(context,
               PackedLinear::PackInto(
                   gate.tensor,
                   std::span<std::byte>(plain.data(), plain.size_bytes())),
               x, 4),
      Multiply(context, Pack(gate, pool), x, 4), "plain");
}

TEST(PackedLinear, SizeIsNearThatOfTheFile) {
  std::mt19937 random(9);
  ThreadPool pool(1);
  for (const auto& [dtype, most] :
       {std::pair(DType::kQ8_0, 1.0), std::pair(DType::kQ4_0, 1.0),
        std::pair(DType::kQ4_K, 1.03), std::pair(DType::kQ5_K, 1.03),
        std::pair(DType::kQ6_K, 1.01), std::pair(DType::kIQ4_XS, 1.02),
        std::pair(DType::kF16, 1.0), std::pair(DType::kF32, 1.0)}) {
    const Weight weight(dtype, 64, 512, random);
    EXPECT_LE(Pack(weight, pool).size_bytes(),
              most * static_cast<double>(weight.bytes.size()))
        << Name(dtype);
  }
}

TEST(LinearDeathTest, RefusesShapesThatDoNotFit) {
  std::mt19937 random(10);
  ThreadPool pool(1);
  const Context context{pool, *KernelsFor(KernelLevel::kScalar)};
  const Weight weight(DType::kF32, 4, 8, random);
  const PackedLinear packed = Pack(weight, pool);
  const Floats x = RandomFloats(16, random);
  Floats y(8);
  ActivationRows input = Rows(2, 16, 1);
  EXPECT_DEATH(
      Linear(context, input, packed, Tensor(DType::kF32, {1, 4}, y.data())),
      "Assign comes first");
  input.Assign(Tensor(DType::kF32, {1, 16}, x.data()));
  EXPECT_DEATH(
      Linear(context, input, packed, Tensor(DType::kF32, {1, 4}, y.data())),
      "in_features");
  input.Assign(Tensor(DType::kF32, {2, 8}, x.data()));
  EXPECT_DEATH(
      Linear(context, input, packed, Tensor(DType::kF32, {1, 4}, y.data())),
      "num_rows");
  EXPECT_DEATH(input.Assign(Tensor(DType::kF32, {4, 4}, x.data())),
               "max_rows_");
}

}  // namespace
}  // namespace fucina::ops
