#include "fucina/model/kv_cache.h"

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "fucina/kernels/kernels.h"
#include "fucina/ops/attention.h"
#include "fucina/parallel/thread_pool.h"
#include "gtest/gtest.h"

namespace fucina {
namespace {

constexpr KvGeometry kGeometry = {
    .num_layers = 3, .num_kv_heads = 2, .head_dim = 24};
constexpr int kRowSize = 48;

// Appends `n` rows made from `seed` and the position to every layer.
void Append(KvCache& cache, int n, unsigned seed) {
  static ThreadPool* const pool = new ThreadPool(1);
  const ops::Context context = {*pool, *KernelsFor(KernelLevel::kScalar)};
  for (int layer = 0; layer < cache.geometry().num_layers; ++layer) {
    std::vector<float> k, v;
    for (int i = 0; i < n; ++i) {
      std::mt19937 random(seed * 1000003u + cache.length() + i +
                          77777u * layer);
      std::uniform_real_distribution<float> uniform(-2, 2);
      for (int c = 0; c < kRowSize; ++c) k.push_back(uniform(random));
      for (int c = 0; c < kRowSize; ++c) v.push_back(uniform(random));
    }
    const ops::AttentionItem item = {
        .kv = cache.layer(layer), .position = cache.length(), .num_rows = n};
    ops::AppendKv(context, Tensor(DType::kF32, {n, kRowSize}, k.data()),
                  Tensor(DType::kF32, {n, kRowSize}, v.data()), {&item, 1});
  }
  cache.Advance(n);
}

// The stored elements of all positions below the length, in plain order.
std::vector<std::byte> Contents(const KvCache& cache) {
  std::vector<std::byte> contents;
  for (int layer = 0; layer < cache.geometry().num_layers; ++layer) {
    const ops::KvRows rows = cache.layer(layer);
    const int run_positions = rows.shape.run_positions();
    const std::size_t bytes = rows.shape.element_bytes();
    for (int position = 0; position < cache.length(); ++position) {
      const int run = position / run_positions;
      const int slot = position % run_positions;
      for (int head = 0; head < rows.shape.num_kv_heads; ++head) {
        for (int c = 0; c < rows.shape.head_dim; ++c) {
          const std::byte* key =
              rows.keys(run, head) +
              bytes * ((slot / 16 * rows.shape.head_dim + c) * 16 + slot % 16);
          const std::byte* value =
              rows.values(run, head) +
              bytes * (slot * rows.shape.value_stride() + c);
          contents.insert(contents.end(), key, key + bytes);
          contents.insert(contents.end(), value, value + bytes);
        }
      }
    }
  }
  return contents;
}

TEST(KvCache, StartsEmptyAndCountsTokens) {
  auto cache = KvCache::Create(kGeometry, 100).value();
  EXPECT_EQ(cache->length(), 0);
  EXPECT_EQ(cache->capacity(), 100);
  Append(*cache, 7, 1);
  EXPECT_EQ(cache->length(), 7);
  Append(*cache, 93, 1);
  EXPECT_EQ(cache->length(), 100);
}

TEST(KvCache, TruncateThenAppendEqualsFresh) {
  for (const DType dtype : {DType::kF16, DType::kF32}) {
    KvGeometry geometry = kGeometry;
    geometry.dtype = dtype;
    auto fresh = KvCache::Create(geometry, 600).value();
    Append(*fresh, 530, 1);
    auto astray = KvCache::Create(geometry, 600).value();
    Append(*astray, 515, 1);
    Append(*astray, 80, 2);
    ASSERT_TRUE(astray->Truncate(510).ok());
    Append(*astray, 3, 3);
    ASSERT_TRUE(astray->Truncate(510).ok());
    EXPECT_EQ(astray->length(), 510);
    Append(*astray, 20, 1);
    EXPECT_EQ(Contents(*astray), Contents(*fresh));
  }
}

TEST(KvCache, TruncateToMoreThanItHoldsDoesNothing) {
  auto cache = KvCache::Create(kGeometry, 10).value();
  Append(*cache, 4, 1);
  const auto before = Contents(*cache);
  ASSERT_TRUE(cache->Truncate(4).ok());
  ASSERT_TRUE(cache->Truncate(1000).ok());
  EXPECT_EQ(cache->length(), 4);
  EXPECT_EQ(Contents(*cache), before);
  ASSERT_TRUE(cache->Truncate(0).ok());
  EXPECT_EQ(cache->length(), 0);
}

TEST(KvCache, TruncateRefusesANegativeLength) {
  auto cache = KvCache::Create(kGeometry, 10).value();
  Append(*cache, 4, 1);
  const absl::Status status = cache->Truncate(-1);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "cannot truncate to -1 tokens: it must not be negative");
  EXPECT_EQ(cache->length(), 4);
}

TEST(KvCache, CopyRowsEqualsComputingThem) {
  auto source = KvCache::Create(kGeometry, 600).value();
  Append(*source, 590, 1);
  for (const int capacity : {37, 512, 2000}) {  // runs of other sizes
    const int end = std::min(capacity, 555);
    auto fresh = KvCache::Create(kGeometry, capacity).value();
    Append(*fresh, end, 1);
    auto copy = KvCache::Create(kGeometry, capacity).value();
    Append(*copy, 9, 1);
    ASSERT_TRUE(copy->CopyRows(*source, end).ok());
    EXPECT_EQ(copy->length(), end);
    EXPECT_EQ(Contents(*copy), Contents(*fresh)) << capacity;
  }
}

TEST(KvCache, CopyRowsRefusesWhatDoesNotFit) {
  auto source = KvCache::Create(kGeometry, 30).value();
  Append(*source, 20, 1);
  auto copy = KvCache::Create(kGeometry, 15).value();
  EXPECT_EQ(copy->CopyRows(*source, 21).message(),
            "kv cache: cannot copy 21 tokens: the source holds 20, here is "
            "room for 15");
  EXPECT_EQ(copy->CopyRows(*source, 16).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(copy->length(), 0);
  KvGeometry other = kGeometry;
  other.dtype = DType::kF32;
  auto stranger = KvCache::Create(other, 30).value();
  EXPECT_EQ(stranger->CopyRows(*source, 5).message(),
            "kv cache: cannot copy from a cache of another geometry");
}

TEST(KvCache, SizesAreThoseOfTheModel) {
  // Qwen3-0.6B: 114,688 bytes per token in f16.
  auto cache = KvCache::Create(
                   {.num_layers = 28, .num_kv_heads = 8, .head_dim = 128}, 4096)
                   .value();
  EXPECT_EQ(cache->bytes_per_token(), 114688);
  EXPECT_EQ(cache->bytes(), 114688u * 4096);
  EXPECT_EQ(cache->saturated_values(), 0);
}

TEST(KvCache, ReservesALargeCapacityWithoutUsingIt) {
  // 4.7 GB by the book; nothing is written, so nothing is used.
  auto cache = KvCache::Create(
      {.num_layers = 28, .num_kv_heads = 8, .head_dim = 128}, 40960);
  EXPECT_TRUE(cache.ok()) << cache.status();
}

TEST(KvCache, CreateNamesWhatIsWrong) {
  const auto message = [](const KvGeometry& geometry, int capacity) {
    const auto cache = KvCache::Create(geometry, capacity);
    EXPECT_EQ(cache.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(cache.status().message());
  };
  EXPECT_EQ(message(kGeometry, 0),
            "kv cache: the number of tokens must be positive, found 0");
  EXPECT_EQ(message({.num_layers = -1, .num_kv_heads = 1, .head_dim = 1}, 1),
            "kv cache: num_layers must be positive, found -1");
  EXPECT_EQ(message({.num_layers = 1, .num_kv_heads = 0, .head_dim = 1}, 1),
            "kv cache: num_kv_heads must be positive, found 0");
  EXPECT_EQ(message({.num_layers = 1, .num_kv_heads = 1, .head_dim = 0}, 1),
            "kv cache: head_dim must be positive, found 0");
  EXPECT_EQ(message({.num_layers = 1, .num_kv_heads = 1, .head_dim = 65537}, 1),
            "kv cache: head_dim must be at most 65536, found 65537");
  KvGeometry quantized = kGeometry;
  quantized.dtype = DType::kQ4_0;
  EXPECT_EQ(message(quantized, 1),
            "kv cache: expected type f16 or f32, found q4_0");
}

TEST(KvCache, CreateRefusesWhatNoMachineHas) {
  const int most = std::numeric_limits<int>::max();
  for (const KvGeometry& geometry :
       {KvGeometry{.num_layers = 512, .num_kv_heads = 1024, .head_dim = 1024},
        KvGeometry{
            .num_layers = most, .num_kv_heads = most, .head_dim = 65536}}) {
    const auto cache = KvCache::Create(geometry, most);
    EXPECT_EQ(cache.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_NE(cache.status().message().find("ask for a smaller context"),
              absl::string_view::npos);
  }
}

TEST(KvCacheDeathTest, AdvanceStopsAtTheCapacity) {
  auto cache = KvCache::Create(kGeometry, 10).value();
  cache->Advance(9);
  EXPECT_DEATH(cache->Advance(2), "2 tokens after 9 of 10");
}

}  // namespace
}  // namespace fucina
