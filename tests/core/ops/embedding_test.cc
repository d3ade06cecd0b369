#include "fucina/ops/embedding.h"

#include "fucina/kernels/quantize.h"
#include "gtest/gtest.h"
#include "tests/core/ops/ops_testing.h"

namespace fucina::ops {
namespace {

using ops_testing::Floats;
using ops_testing::Normal;
using ops_testing::Rig;
using ops_testing::Rigs;
using ops_testing::Rows;
using ops_testing::SameBits;

TEST(Embedding, CopiesRowsOfAnyType) {
  std::mt19937 random(1);
  const int vocab_size = 11;
  const int size = 256;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16,
                            DType::kQ8_0, DType::kQ4_K, DType::kQ6_K}) {
    const Floats rows = Normal(random, vocab_size * size);
    const std::int64_t row_bytes = RowBytes(dtype, size);
    std::vector<std::byte> table(vocab_size * row_bytes);
    Floats decoded(rows.size());
    for (int row = 0; row < vocab_size; ++row) {
      QuantizeRow(dtype, rows.data() + row * size,
                  table.data() + row * row_bytes, size);
      DequantizeRow(dtype, table.data() + row * row_bytes,
                    decoded.data() + row * size, size);
    }
    std::vector<std::int32_t> tokens = {10, 0, 3, 3};
    for (int i = 0; i < 200; ++i) tokens.push_back(i % vocab_size);
    for (const Rig& rig : Rigs()) {
      Floats out(tokens.size() * size);
      Embedding(rig.context, Tensor(dtype, {vocab_size, size}, table.data()),
                tokens, Rows(out, size));
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        const auto at = decoded.begin() + tokens[i] * size;
        ASSERT_TRUE(SameBits(
            Floats(out.begin() + i * size, out.begin() + (i + 1) * size),
            Floats(at, at + size)))
            << Name(dtype) << " " << rig.name;
      }
    }
  }
}

TEST(EmbeddingDeathTest, RefusesATokenOutsideTheTable) {
  const Floats table(8);
  Floats out(4);
  const std::vector<std::int32_t> tokens = {2};
  EXPECT_DEATH(
      Embedding(Rigs()[0].context, Rows(table, 4), tokens, Rows(out, 4)),
      "token 2 of 2");
}

}  // namespace
}  // namespace fucina::ops
