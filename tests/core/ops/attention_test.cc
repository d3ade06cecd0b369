#include "fucina/ops/attention.h"

#include <cmath>
#include <cstring>

#include "gtest/gtest.h"
#include "tests/core/ops/attention_testing.h"

namespace fucina::ops {
namespace {

using ops_testing::Between;
using ops_testing::Floats;
using ops_testing::HeadShape;
using ops_testing::NewCache;
using ops_testing::NewScratch;
using ops_testing::Normal;
using ops_testing::Rig;
using ops_testing::Rigs;
using ops_testing::Rows;
using ops_testing::SameBits;
using ops_testing::Sequence;

void ExpectNearReference(const Sequence& sequence, const Floats& out,
                         int position, double tolerance) {
  const std::vector<double> expected = sequence.Reference(position);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(out[static_cast<std::size_t>(position) * expected.size() + i],
                expected[i], tolerance)
        << "position " << position << ", element " << i;
  }
}

TEST(Attention, AgreesWithDoubleReference) {
  std::mt19937 random(1);
  const std::vector<HeadShape> shapes = {
      {.num_heads = 2, .num_kv_heads = 1, .head_dim = 16},
      {.num_heads = 4, .num_kv_heads = 2, .head_dim = 32},
      {.num_heads = 3, .num_kv_heads = 3, .head_dim = 64},
      {.num_heads = 8, .num_kv_heads = 1, .head_dim = 80},
      {.num_heads = 4, .num_kv_heads = 1, .head_dim = 128},
      {.num_heads = 2, .num_kv_heads = 1, .head_dim = 256},
      {.num_heads = 2, .num_kv_heads = 2, .head_dim = 18},  // padded values
  };
  for (HeadShape shape : shapes) {
    for (const DType dtype : {DType::kF16, DType::kF32}) {
      shape.dtype = dtype;
      Sequence sequence(shape, 1100, random);
      const Floats out =
          sequence.RunInPieces(Rigs().back(), {700, 1, 399}, 1100);
      for (const int position :
           {0, 1, 15, 16, 17, 63, 64, 65, 511, 512, 513, 700, 1023, 1099}) {
        ExpectNearReference(sequence, out, position, 2e-6);
      }
    }
  }
}

// The oracle is the scalar level, one thread, one token at a time.
TEST(Attention, BitsDoNotDependOnChunksThreadsOrLevel) {
  for (const unsigned seed : {1u, 2u}) {
    std::mt19937 random(seed);
    const std::vector<HeadShape> shapes = {
        {.num_heads = 4, .num_kv_heads = 2, .head_dim = 16},
        {.num_heads = 7, .num_kv_heads = 1, .head_dim = 32},
        {.num_heads = 2, .num_kv_heads = 1, .head_dim = 48},
        {.num_heads = 1,
         .num_kv_heads = 1,
         .head_dim = 128,
         .dtype = DType::kF32},
        {.num_heads = 3, .num_kv_heads = 1, .head_dim = 20},
    };
    const HeadShape& shape = shapes[(2 * seed) % shapes.size()];
    const HeadShape& other = shapes[(2 * seed + 1) % shapes.size()];
    for (const HeadShape& s : {shape, other}) {
      const int length = Between(random, 514, 600);
      Sequence sequence(s, length, random, 2);
      const Floats oracle = sequence.RunInPieces(Rigs()[0], {1}, length);
      for (const Rig& rig : Rigs()) {
        std::vector<std::vector<int>> cuts = {
            {length}, {Between(random, 1, 100), Between(random, 1, 300)}};
        if (rig.context.kernels.level != KernelLevel::kScalar) {
          cuts.insert(cuts.end(), {{1}, {2, 3, 5}, {63, 1, 65}, {512, 8}});
        }
        for (const std::vector<int>& pieces : cuts) {
          ASSERT_TRUE(
              SameBits(sequence.RunInPieces(rig, pieces, length), oracle))
              << rig.name << ", seed " << seed << ", head_dim " << s.head_dim
              << ", pieces of " << pieces[0];
        }
      }
    }
  }
}

TEST(Attention, BitsDoNotDependOnTheCapacity) {
  std::mt19937 random(4);
  Sequence sequence({.head_dim = 32}, 70, random);
  const Rig& rig = Rigs().back();
  const Floats oracle = sequence.RunInPieces(rig, {7}, 70);
  for (const int capacity : {71, 128, 511, 512, 513, 5000, 40960}) {
    EXPECT_TRUE(SameBits(sequence.RunInPieces(rig, {7}, capacity), oracle))
        << capacity;
  }
}

TEST(Attention, RaggedBatchesGiveEachRowItsOwnBits) {
  std::mt19937 random(5);
  const HeadShape shape = {.num_heads = 4, .num_kv_heads = 2, .head_dim = 64};
  const int row_size = shape.q_size();
  const std::vector<int> lengths = {1, 40, 64, 300, 513, 700, 1030};
  std::vector<Sequence> sequences;
  std::vector<Floats> oracles;
  for (const int length : lengths) {
    sequences.emplace_back(shape, length, random);
    oracles.push_back(
        sequences.back().RunInPieces(Rigs().back(), {length}, 1100));
  }
  for (const Rig& rig : Rigs()) {
    for (int round = 0; round < 2; ++round) {
      // Each sequence arrives with some rows at once, in a random order.
      std::vector<int> order = {0, 1, 2, 3, 4, 5, 6};
      std::shuffle(order.begin(), order.end(), random);
      AttentionScratch scratch = NewScratch(shape, rig, 1100, 2);
      std::vector<std::unique_ptr<KvCache>> caches;
      std::vector<AttentionItem> items;
      Floats q, k, v;
      int rows = 0;
      for (const int i : order) {
        Sequence& sequence = sequences[i];
        caches.push_back(NewCache(shape, 1100));
        const int fresh = std::min(sequence.length, Between(random, 1, 90));
        const int position = sequence.length - fresh;
        const AttentionItem before = {.kv = caches.back()->layer(0),
                                      .num_rows = position};
        AppendKv(rig.context, Rows(sequence.k, shape.kv_size()),
                 Rows(sequence.v, shape.kv_size()), {&before, 1});
        items.push_back({.kv = caches.back()->layer(0),
                         .position = position,
                         .first_row = rows,
                         .num_rows = fresh});
        rows += fresh;
        q.insert(q.end(), sequence.q.end() - fresh * row_size,
                 sequence.q.end());
        k.insert(k.end(), sequence.k.end() - fresh * shape.kv_size(),
                 sequence.k.end());
        v.insert(v.end(), sequence.v.end() - fresh * shape.kv_size(),
                 sequence.v.end());
      }
      Floats out(q.size());
      AppendKv(rig.context, Rows(k, shape.kv_size()), Rows(v, shape.kv_size()),
               items);
      Attention(rig.context, Rows(q, row_size), items, shape.scale(), scratch,
                Rows(out, row_size));
      for (std::size_t n = 0; n < items.size(); ++n) {
        const Floats found(
            out.begin() + items[n].first_row * row_size,
            out.begin() + (items[n].first_row + items[n].num_rows) * row_size);
        const Floats& oracle = oracles[order[n]];
        const Floats expected(
            oracle.end() - static_cast<std::ptrdiff_t>(found.size()),
            oracle.end());
        ASSERT_TRUE(SameBits(found, expected))
            << rig.name << ", length " << sequences[order[n]].length;
      }
    }
  }
}

TEST(Attention, ForgottenAndLaterRowsAreNotFeltEvenIfNotFinite) {
  std::mt19937 random(6);
  const HeadShape shape = {.num_heads = 4, .num_kv_heads = 2, .head_dim = 32};
  for (const Rig& rig : Rigs()) {
    Sequence sequence(shape, 160, random);
    const Floats oracle = sequence.RunInPieces(rig, {1}, 200);

    // Rows 100 and on are poison for those before, in one prefill.
    Sequence poisoned = sequence;
    const float poison[] = {std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()};
    for (std::size_t i = 100 * shape.kv_size(); i < poisoned.k.size(); ++i) {
      poisoned.k[i] = poison[i % 3];
      poisoned.v[i] = poison[(i + 1) % 3];
    }
    const std::unique_ptr<KvCache> cache = NewCache(shape, 200);
    AttentionScratch scratch = NewScratch(shape, rig, 200);
    Floats out(sequence.q.size());
    poisoned.Run(rig, *cache, scratch, 0, 160, out);
    const std::ptrdiff_t good = 100 * shape.q_size();
    EXPECT_TRUE(SameBits(Floats(out.begin(), out.begin() + good),
                         Floats(oracle.begin(), oracle.begin() + good)))
        << rig.name;

    // Truncated away, they are as if they had never been.
    ASSERT_TRUE(cache->Truncate(100).ok());
    for (const int begin : {100, 101, 110}) {
      sequence.Run(rig, *cache, scratch, begin,
                   begin == 100   ? 101
                   : begin == 101 ? 110
                                  : 160,
                   out);
    }
    EXPECT_TRUE(SameBits(Floats(out.begin() + good, out.end()),
                         Floats(oracle.begin() + good, oracle.end())))
        << rig.name;
  }
}

TEST(Attention, EqualScoresGiveTheMean) {
  std::mt19937 random(7);
  const HeadShape shape = {
      .num_heads = 2, .num_kv_heads = 1, .head_dim = 16, .dtype = DType::kF32};
  Sequence sequence(shape, 600, random);
  std::fill(sequence.q.begin(), sequence.q.end(), 0.0f);
  for (const Rig& rig : Rigs()) {
    const Floats out = sequence.RunInPieces(rig, {600}, 600);
    ExpectNearReference(sequence, out, 599, 1e-6);
  }
}

TEST(Attention, HugeScoresPickTheLargest) {
  // Scores of about ±1e4: all weights but one are exact zeros.
  std::mt19937 random(8);
  const HeadShape shape = {
      .num_heads = 2, .num_kv_heads = 1, .head_dim = 64, .dtype = DType::kF32};
  Sequence sequence(shape, 600, random, 40);
  Floats oracle;
  for (const Rig& rig : Rigs()) {
    const Floats out = sequence.RunInPieces(rig, {600}, 600);
    if (oracle.empty()) {
      oracle = out;
      for (const int position : {0, 63, 511, 512, 599}) {
        ExpectNearReference(sequence, out, position, 2e-1);
      }
    }
    EXPECT_TRUE(SameBits(out, oracle)) << rig.name;
  }
}

TEST(Attention, ManyHeadsPerKvHead) {
  std::mt19937 random(9);
  const HeadShape shape = {.num_heads = 130, .num_kv_heads = 1, .head_dim = 16};
  Sequence sequence(shape, 70, random);
  const Floats oracle = sequence.RunInPieces(Rigs()[0], {1}, 70);
  ExpectNearReference(sequence, oracle, 69, 2e-6);
  for (const Rig& rig : Rigs()) {
    EXPECT_TRUE(SameBits(sequence.RunInPieces(rig, {3, 30}, 70), oracle))
        << rig.name;
  }
}

TEST(Attention, ReadsStridedRows) {
  std::mt19937 random(10);
  const HeadShape shape = {.num_heads = 4, .num_kv_heads = 2, .head_dim = 32};
  Sequence sequence(shape, 50, random);
  const Rig& rig = Rigs().back();
  const Floats oracle = sequence.RunInPieces(rig, {50}, 50);
  // As a merged projection leaves them: q, k and v side by side.
  const int width = shape.q_size() + 2 * shape.kv_size() + 3;
  Floats merged(50 * width);
  for (int row = 0; row < 50; ++row) {
    float* to = merged.data() + row * width;
    const auto copy = [&](const Floats& from, int size) {
      to = std::copy_n(from.begin() + row * size, size, to);
    };
    copy(sequence.q, shape.q_size());
    copy(sequence.k, shape.kv_size());
    copy(sequence.v, shape.kv_size());
  }
  const auto view = [&](int offset, int size) {
    return Tensor::Strided(DType::kF32, 50, size, width * 4,
                           merged.data() + offset);
  };
  const std::unique_ptr<KvCache> cache = NewCache(shape, 50);
  AttentionScratch scratch = NewScratch(shape, rig, 50);
  const AttentionItem item = {.kv = cache->layer(0), .num_rows = 50};
  AppendKv(rig.context, view(shape.q_size(), shape.kv_size()),
           view(shape.q_size() + shape.kv_size(), shape.kv_size()), {&item, 1});
  Floats out(oracle.size());
  Attention(rig.context, view(0, shape.q_size()), {&item, 1}, shape.scale(),
            scratch, Rows(out, shape.q_size()));
  EXPECT_TRUE(SameBits(out, oracle));
}

TEST(AppendKv, RoundsToNearestEvenAndCountsClippedValues) {
  const HeadShape shape = {.num_heads = 1, .num_kv_heads = 1, .head_dim = 16};
  Floats k(16, 1.0f);
  Floats v(16, 0.0f);
  k[0] = 1e6f;
  k[1] = -70000.0f;
  k[2] = 65504.0f;  // the largest f16
  k[3] = 65519.0f;  // would round to it, and is beyond it
  v[0] = -std::numeric_limits<float>::infinity();
  v[1] = 2049.0f;  // halfway between 2048 and 2050
  v[2] = 2051.0f;  // halfway between 2050 and 2052
  v[3] = 6e-8f;    // the smallest subnormal f16, nearly
  v[4] = std::numeric_limits<float>::quiet_NaN();
  for (const Rig& rig : Rigs()) {
    const std::unique_ptr<KvCache> cache = NewCache(shape, 64);
    const AttentionItem item = {
        .kv = cache->layer(0), .position = 3, .num_rows = 1};
    AppendKv(rig.context, Rows(k, 16), Rows(v, 16), {&item, 1});
    EXPECT_EQ(cache->saturated_values(), 4) << rig.name;
    const auto* keys =
        reinterpret_cast<const std::uint16_t*>(item.kv.keys(0, 0));
    const auto* values =
        reinterpret_cast<const std::uint16_t*>(item.kv.values(0, 0)) + 3 * 16;
    EXPECT_EQ(keys[0 * 16 + 3], 0x7bff);
    EXPECT_EQ(keys[1 * 16 + 3], 0xfbff);
    EXPECT_EQ(keys[2 * 16 + 3], 0x7bff);
    EXPECT_EQ(keys[3 * 16 + 3], 0x7bff);
    EXPECT_EQ(keys[4 * 16 + 3], 0x3c00);
    EXPECT_EQ(keys[4 * 16 + 2], 0) << "another position was written";
    EXPECT_EQ(values[0], 0xfbff);
    EXPECT_EQ(values[1], FloatToF16(2048.0f));
    EXPECT_EQ(values[2], FloatToF16(2052.0f));
    EXPECT_EQ(values[3], 0x0001);
    EXPECT_GT(values[4] & 0x7fff, 0x7c00) << "a NaN must stay visible";
    EXPECT_EQ(values[5], 0);
  }
}

TEST(AppendKv, StoresManyRowsAsOneByOne) {
  std::mt19937 random(31);
  for (const int dim : {16, 40, 80, 128}) {
    const HeadShape shape = {
        .num_heads = 2, .num_kv_heads = 2, .head_dim = dim};
    constexpr int kRows = 70;
    constexpr int kFirst = 5;  // so that vectors of keys are cut at both ends
    Floats k = Normal(random, kRows * shape.kv_size());
    Floats v = Normal(random, kRows * shape.kv_size());
    for (int i = 0; i < 20; ++i) {
      k[Between(random, 0, static_cast<int>(k.size()) - 1)] = 1e9f;
      v[Between(random, 0, static_cast<int>(v.size()) - 1)] = -1e9f;
    }
    for (const Rig& rig : Rigs()) {
      const std::unique_ptr<KvCache> one = NewCache(shape, 128);
      const std::unique_ptr<KvCache> many = NewCache(shape, 128);
      for (int row = 0; row < kRows; ++row) {
        const AttentionItem item = {.kv = one->layer(0),
                                    .position = kFirst + row,
                                    .first_row = row,
                                    .num_rows = 1};
        AppendKv(rig.context, Rows(k, shape.kv_size()),
                 Rows(v, shape.kv_size()), {&item, 1});
      }
      const AttentionItem item = {
          .kv = many->layer(0), .position = kFirst, .num_rows = kRows};
      AppendKv(rig.context, Rows(k, shape.kv_size()), Rows(v, shape.kv_size()),
               {&item, 1});
      EXPECT_EQ(std::memcmp(one->layer(0).keys(0, 0), many->layer(0).keys(0, 0),
                            item.kv.shape.run_bytes()),
                0)
          << rig.name << ", heads of " << dim;
      EXPECT_GE(one->saturated_values(), 20);
      EXPECT_EQ(many->saturated_values(), one->saturated_values());
    }
  }
}

TEST(AttentionDeathTest, RefusesRowsPastTheCapacity) {
  std::mt19937 random(11);
  const HeadShape shape;
  Sequence sequence(shape, 5, random);
  const std::unique_ptr<KvCache> cache = NewCache(shape, 4);
  AttentionScratch scratch = NewScratch(shape, Rigs()[0], 4);
  Floats out(sequence.q.size());
  EXPECT_DEATH(sequence.Run(Rigs()[0], *cache, scratch, 0, 5, out),
               "5 rows at 0 of 4");
}

}  // namespace
}  // namespace fucina::ops
