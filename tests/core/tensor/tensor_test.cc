#include "fucina/tensor/tensor.h"

#include <cstdint>
#include <numeric>
#include <vector>

#include "fucina/tensor/buffer.h"
#include "fucina/tensor/dtype.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fucina {
namespace {

using ::testing::HasSubstr;

TEST(Tensor, EmptyHasNoElements) {
  const Tensor tensor;
  EXPECT_EQ(tensor.rank(), 0);
  EXPECT_EQ(tensor.num_elements(), 0);
  EXPECT_EQ(tensor.num_rows(), 0);
  EXPECT_TRUE(tensor.empty());
}

TEST(Tensor, ShapeIsOutermostFirstAndRowsAreContiguous) {
  std::vector<float> data(24);
  std::iota(data.begin(), data.end(), 0.0F);
  const Tensor tensor(DType::kF32, {2, 3, 4}, data.data());
  EXPECT_EQ(tensor.dim(0), 2);
  EXPECT_EQ(tensor.row_size(), 4);
  EXPECT_EQ(tensor.num_rows(), 6);
  EXPECT_EQ(tensor.row_f32(5)[3], 23.0F);
  EXPECT_EQ(tensor.DebugString(), "f32 [2, 3, 4]");
  EXPECT_TRUE(tensor.contiguous());
}

TEST(Tensor, SliceAndReshapeViewTheSameMemory) {
  std::vector<float> data(24);
  std::iota(data.begin(), data.end(), 0.0F);
  const Tensor tensor(DType::kF32, {2, 3, 4}, data.data());
  const Tensor second = tensor.Slice(1, 1);
  EXPECT_EQ(second.num_rows(), 3);
  EXPECT_EQ(second.row_f32(0)[0], 12.0F);
  const Tensor matrix = tensor.Reshape({6, 4}).Slice(2, 3);
  EXPECT_EQ(matrix.row_f32(0)[0], 8.0F);
  matrix.mutable_row_f32(0)[0] = -1;
  EXPECT_EQ(data[8], -1.0F);
  const Tensor vector(DType::kF32, {24}, data.data());
  EXPECT_EQ(vector.Slice(10, 4).row_f32(0)[0], 10.0F);
}

TEST(Tensor, StridedRowsSkipTheGap) {
  std::vector<float> data(20);
  std::iota(data.begin(), data.end(), 0.0F);
  const Tensor tensor =
      Tensor::Strided(DType::kF32, 4, 3, 5 * sizeof(float), data.data());
  EXPECT_FALSE(tensor.contiguous());
  EXPECT_EQ(tensor.row_f32(2)[1], 11.0F);
  EXPECT_EQ(tensor.Slice(3, 1).row_f32(0)[0], 15.0F);
}

TEST(Tensor, BlockTypesCountBytesByBlocks) {
  std::vector<std::byte> data(2 * 8 * 34);
  const Tensor tensor(DType::kQ8_0, {2, 256}, data.data());
  EXPECT_EQ(tensor.row_stride_bytes(), 8 * 34);
  EXPECT_EQ(tensor.row_bytes(1) - tensor.row_bytes(0), 8 * 34);
}

using TensorDeathTest = ::testing::Test;

TEST(TensorDeathTest, WrongUseStopsWithPlaceAndValues) {
  std::vector<float> data(8);
  const Tensor tensor(DType::kF32, {2, 4}, data.data());
  EXPECT_DEATH(tensor.dim(2), "dimension 2 of 2");
  EXPECT_DEATH(tensor.Slice(1, 2), "slice \\[1, 3\\) of f32 \\[2, 4\\]");
  EXPECT_DEATH(tensor.Reshape({3, 3}), "check failed");
  EXPECT_DEATH(Tensor(DType::kQ4_0, {2, 31}, data.data()), "check failed");
  EXPECT_DEATH(Tensor(DType::kF16, {2, 4}, data.data()).row_f32(0),
               "f16 \\[2, 4\\]");
}

TEST(Buffer, IsZeroAlignedAndMovable) {
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{1000}, std::size_t{3} << 20}) {
    absl::StatusOr<Buffer> buffer = Buffer::Allocate(size);
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    EXPECT_EQ(buffer->size_bytes(), size);
    EXPECT_EQ(
        reinterpret_cast<std::uintptr_t>(buffer->data()) % Buffer::kAlignment,
        0U);
    for (std::size_t i = 0; i < size; i += 997) {
      ASSERT_EQ(buffer->data()[i], std::byte{0});
    }
    buffer->data()[size - 1] = std::byte{7};
    Buffer moved = *std::move(buffer);
    EXPECT_EQ(moved.data()[size - 1], std::byte{7});
    Buffer assigned;
    assigned = std::move(moved);
    EXPECT_EQ(assigned.data()[size - 1], std::byte{7});
  }
  EXPECT_EQ(Buffer::Allocate(0)->data(), nullptr);
}

TEST(Buffer, RefusesWhatTheSystemCannotGive) {
  for (const std::size_t size : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4}) {
    const absl::StatusOr<Buffer> buffer = Buffer::Allocate(size);
    EXPECT_TRUE(absl::IsResourceExhausted(buffer.status()));
    EXPECT_THAT(std::string(buffer.status().message()),
                HasSubstr("cannot allocate"));
  }
}

TEST(DType, TableHoldsTheFormatsOfTheFiles) {
  // Id, elements and bytes per block as the GGUF format document lists them.
  struct Row {
    std::uint32_t id;
    const char* name;
    int block_size;
    int block_bytes;
  };
  for (const Row& row :
       {Row{0, "f32", 1, 4}, Row{2, "q4_0", 32, 18}, Row{3, "q4_1", 32, 20},
        Row{6, "q5_0", 32, 22}, Row{8, "q8_0", 32, 34},
        Row{10, "q2_k", 256, 84}, Row{12, "q4_k", 256, 144},
        Row{14, "q6_k", 256, 210}, Row{23, "iq4_xs", 256, 136},
        Row{30, "bf16", 1, 2}, Row{39, "mxfp4", 32, 17}}) {
    const DTypeTraits* traits = FindDType(row.id);
    ASSERT_NE(traits, nullptr) << row.name;
    EXPECT_EQ(traits->name, row.name);
    EXPECT_EQ(traits->block_size, row.block_size) << row.name;
    EXPECT_EQ(traits->block_bytes, row.block_bytes) << row.name;
    EXPECT_EQ(RowBytes(traits->dtype, 512),
              512 / row.block_size * row.block_bytes);
  }
  EXPECT_EQ(AllDTypes().size(), 32U);
  for (const std::uint32_t id : {4U, 5U, 31U, 36U, 40U, 43U, 4096U}) {
    EXPECT_EQ(FindDType(id), nullptr) << id;
  }
}

TEST(DType, RemovedFormatsAreKnownByName) {
  EXPECT_EQ(FindUnsupportedDType(31).name, "q4_0_4_4");
  EXPECT_TRUE(FindUnsupportedDType(31).removed);
  EXPECT_THAT(std::string(FindUnsupportedDType(31).reason),
              HasSubstr("download the plain file"));
  EXPECT_FALSE(FindUnsupportedDType(42).removed);
  EXPECT_EQ(FindUnsupportedDType(1000).name, "");
}

}  // namespace
}  // namespace fucina
