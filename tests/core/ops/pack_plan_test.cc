#include "fucina/ops/pack_plan.h"

#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "fucina/kernels/kernels.h"
#include "fucina/kernels/quantize.h"
#include "gtest/gtest.h"

namespace fucina::ops {
namespace {

// Rows of a type as they are in a file.
struct Stack {
  std::vector<std::byte> bytes;
  Tensor tensor;

  Stack(DType dtype, std::vector<std::int64_t> shape, std::mt19937& random) {
    std::int64_t rows = 1;
    for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
    const std::int64_t columns = shape.back();
    const auto row_bytes = static_cast<std::size_t>(RowBytes(dtype, columns));
    bytes.resize(row_bytes * static_cast<std::size_t>(rows));
    std::normal_distribution<float> normal;
    std::vector<float> row(static_cast<std::size_t>(columns));
    for (std::int64_t r = 0; r < rows; ++r) {
      for (float& v : row) v = normal(random);
      QuantizeRow(dtype, row.data(),
                  bytes.data() + static_cast<std::size_t>(r) * row_bytes,
                  columns);
    }
    tensor = shape.size() == 2
                 ? Tensor(dtype, {shape[0], shape[1]}, bytes.data())
                 : Tensor(dtype, {shape[0], shape[1], shape[2]}, bytes.data());
  }
};

void ExpectSame(const PackedLinear& planned, const PackedLinear& alone,
                const std::string& what) {
  ASSERT_EQ(planned.size_bytes(), alone.size_bytes()) << what;
  ASSERT_EQ(planned.num_strips(), alone.num_strips()) << what;
  ASSERT_EQ(planned.out_features(), alone.out_features()) << what;
  ASSERT_EQ(planned.bias() == nullptr, alone.bias() == nullptr) << what;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(planned.strip(0)) % 64, 0U)
      << what;
  // Codes and bias lie one after the other.
  EXPECT_EQ(std::memcmp(planned.strip(0), alone.strip(0), alone.size_bytes()),
            0)
      << what;
}

// Every byte that was reported read, and how often.
class ReadLog {
 public:
  explicit ReadLog(const Stack& stack)
      : begin_(stack.bytes.data()), counts_(stack.bytes.size()) {}

  void Add(const void* data, std::size_t size_bytes) {
    const auto* first = static_cast<const std::byte*>(data);
    if (first < begin_ || first >= begin_ + counts_.size()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto offset = static_cast<std::size_t>(first - begin_);
    ASSERT_LE(offset + size_bytes, counts_.size());
    for (std::size_t i = 0; i < size_bytes; ++i) ++counts_[offset + i];
  }
  void ExpectAllOnce(const std::string& what) const {
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      ASSERT_EQ(counts_[i], 1) << what << ", byte " << i;
    }
  }

 private:
  const std::byte* begin_;
  std::mutex mutex_;
  std::vector<int> counts_;
};

TEST(PackPlan, PacksLikeEachMatrixAlone) {
  std::mt19937 random(1);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (const auto& [dtype, in] :
         {std::pair(DType::kQ8_0, 96), std::pair(DType::kQ4_K, 512),
          std::pair(DType::kBF16, 40)}) {
      const Stack a(dtype, {70, in}, random);
      const Stack b(dtype, {33, in}, random);
      const Stack gate(dtype, {50, in}, random);
      const Stack up(dtype, {50, in}, random);
      std::vector<float> bias_values(33, 0.5F);
      const Tensor bias(DType::kF32, {33}, bias_values.data());
      const LinearPart parts[] = {{.weight = a.tensor},
                                  {.weight = b.tensor, .bias = bias}};
      const LinearPart only[] = {{.weight = a.tensor}};
      const std::string what =
          std::string(Name(dtype)) + " " + std::to_string(threads);

      PackPlan plan;
      PackedLinear fused, pair, single;
      plan.Pack(parts, fused);
      plan.PackGated({.weight = gate.tensor}, {.weight = up.tensor}, pair);
      EXPECT_EQ(plan.size_bytes(), fused.size_bytes() + pair.size_bytes());
      ReadLog of_b(b), of_up(up);
      absl::StatusOr<Buffer> memory =
          plan.Run(pool, [&](const void* data, std::size_t size_bytes) {
            of_b.Add(data, size_bytes);
            of_up.Add(data, size_bytes);
          });
      ASSERT_TRUE(memory.ok()) << memory.status();
      EXPECT_EQ(memory->size_bytes(), plan.size_bytes());
      of_b.ExpectAllOnce(what);
      of_up.ExpectAllOnce(what);
      ExpectSame(fused, PackedLinear::Pack(parts, pool).value(), what);
      ExpectSame(pair,
                 PackedLinear::PackGated({.weight = gate.tensor},
                                         {.weight = up.tensor}, pool)
                     .value(),
                 what);

      PackPlan second;
      second.Pack(only, single);
      const Buffer other =
          second.Run(pool, [](const void*, std::size_t) {}).value();
      ExpectSame(single, PackedLinear::Pack(a.tensor, pool).value(), what);
    }
  }
}

TEST(PackPlan, PacksExpertsLikeTheirOwnPack) {
  constexpr std::int64_t kExperts = 5;
  constexpr std::int64_t kFfn = 64;
  constexpr std::int64_t kHidden = 256;
  std::mt19937 random(2);
  ThreadPool pool(2);
  for (const DType up_type : {DType::kQ4_K, DType::kQ6_K}) {
    const Stack gate(DType::kQ4_K, {kExperts, kFfn, kHidden}, random);
    const Stack up(up_type, {kExperts, kFfn, kHidden}, random);
    const Stack down(DType::kQ8_0, {kExperts, kHidden, kFfn}, random);
    const PackedExperts alone =
        PackedExperts::Pack(gate.tensor, up.tensor, down.tensor, pool).value();

    PackPlan plan;
    PackedExperts planned;
    plan.PackExperts(gate.tensor, up.tensor, down.tensor, planned);
    EXPECT_EQ(planned.size_bytes(), plan.size_bytes());
    EXPECT_EQ(planned.size_bytes(), alone.size_bytes());
    ReadLog of_gate(gate);
    const Buffer memory =
        plan.Run(pool,
                 [&](const void* data, std::size_t size_bytes) {
                   of_gate.Add(data, size_bytes);
                 })
            .value();
    of_gate.ExpectAllOnce("gate");
    ASSERT_EQ(planned.experts().size(), alone.experts().size());
    for (std::size_t e = 0; e < alone.experts().size(); ++e) {
      const ExpertWeights& a = alone.experts()[e];
      const ExpertWeights& p = planned.experts()[e];
      const std::string what = "expert " + std::to_string(e);
      ASSERT_EQ(p.gate_up.empty(), up_type != DType::kQ4_K);
      if (a.gate_up.empty()) {
        ExpectSame(p.gate, a.gate, what);
        ExpectSame(p.up, a.up, what);
      } else {
        ExpectSame(p.gate_up, a.gate_up, what);
      }
      ExpectSame(p.down, a.down, what);
    }
  }
}

TEST(PackPlan, TakesGateAndUpOfOneTensor) {
  constexpr std::int64_t kExperts = 3;
  constexpr std::int64_t kFfn = 96;
  constexpr std::int64_t kHidden = 64;
  std::mt19937 random(3);
  ThreadPool pool(2);
  const Stack both(DType::kQ5_1, {kExperts, 2 * kFfn, kHidden}, random);
  const Stack down(DType::kQ4_0, {kExperts, kHidden, kFfn}, random);
  PackPlan plan;
  PackedExperts planned;
  plan.PackMergedExperts(both.tensor, down.tensor, planned);
  const Buffer memory = plan.Run(pool, [](const void*, std::size_t) {}).value();
  const Tensor pairs = both.tensor.Reshape({kExperts * 2 * kFfn, kHidden});
  const Tensor downs = down.tensor.Reshape({kExperts * kHidden, kFfn});
  for (std::int64_t e = 0; e < kExperts; ++e) {
    const std::string what = "expert " + std::to_string(e);
    const ExpertWeights& expert =
        planned.experts()[static_cast<std::size_t>(e)];
    ExpectSame(expert.gate_up,
               PackedLinear::PackGated(
                   {.weight = pairs.Slice(2 * e * kFfn, kFfn)},
                   {.weight = pairs.Slice(2 * e * kFfn + kFfn, kFfn)}, pool)
                   .value(),
               what);
    ExpectSame(
        expert.down,
        PackedLinear::Pack(downs.Slice(e * kHidden, kHidden), pool).value(),
        what);
  }
}

TEST(PackPlan, NothingToPackIsNoError) {
  ThreadPool pool(2);
  PackPlan plan;
  const absl::StatusOr<Buffer> memory =
      plan.Run(pool, [](const void*, std::size_t) { FAIL(); });
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(memory->size_bytes(), 0U);
}

TEST(PackPlan, NamesTheSizeThatTheSystemRefuses) {
  ThreadPool pool(1);
  // Never read: the memory is refused before.
  static const std::byte kNowhere[64] = {};
  const std::int64_t rows = std::int64_t{1} << 40;
  const LinearPart parts[] = {
      {.weight = Tensor(DType::kF32, {rows, 32}, kNowhere)}};
  PackPlan plan;
  PackedLinear packed;
  plan.Pack(parts, packed);
  const absl::StatusOr<Buffer> memory =
      plan.Run(pool, [](const void*, std::size_t) {});
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(memory.status().message(), "cannot allocate 140737488355328 bytes");
}

}  // namespace
}  // namespace fucina::ops
