#include "fucina/model/weights.h"

#include <span>
#include <string>
#include <vector>

#include "fucina/gguf/gguf_writer.h"
#include "fucina/kernels/f16.h"
#include "fucina/tensor/dtype.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fucina {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WeightsTest : public ::testing::Test {
 protected:
  WeightsTest() {
    GgufWriter writer;
    writer.AddString("general.architecture", "t");
    for (int i = 0; i < 6; ++i) values_.push_back(static_cast<float>(i));
    const std::uint64_t matrix[] = {3, 2};
    writer.AddF32Tensor("matrix", matrix, values_);
    const std::uint64_t vector[] = {6};
    writer.AddF32Tensor("vector", vector, values_);
    for (float value : values_) {
      half_.push_back(FloatToF16(value));
      brain_.push_back(FloatToBF16(value));
    }
    writer.AddTensor("half", DType::kF16, vector,
                     std::as_bytes(std::span(half_)));
    writer.AddTensor("brain", DType::kBF16, vector,
                     std::as_bytes(std::span(brain_)));
    const std::int32_t numbers[] = {1, 2, 3, 4, 5, 6};
    writer.AddTensor("numbers", DType::kI32, vector,
                     std::as_bytes(std::span(numbers)));
    for (int i = 0; i < 7; ++i) {
      writer.AddF32Tensor("extra." + std::to_string(i), vector, values_);
    }
    bytes_ = writer.Serialize().value();
    file_ =
        GgufFile::Parse("t.gguf",
                        std::as_bytes(std::span(bytes_.data(), bytes_.size())))
            .value();
  }

  std::vector<float> values_;
  std::vector<std::uint16_t> half_, brain_;
  std::string bytes_;
  std::unique_ptr<GgufFile> file_;
};

TEST_F(WeightsTest, NamesATensorWithOrWithoutItsSuffix) {
  const Weights weights(*file_);
  EXPECT_EQ(weights.NameOf("matrix.weight"), "matrix");
  EXPECT_EQ(weights.NameOf("vector.bias"), "vector");
  EXPECT_EQ(weights.NameOf("matrix"), "matrix");
  EXPECT_EQ(weights.NameOf("extra.1"), "extra.1");
  EXPECT_EQ(weights.NameOf("none.weight"), "none.weight");
  EXPECT_EQ(weights.NameOf("none"), "none");
  EXPECT_EQ(weights.NameOf(""), "");
}

TEST_F(WeightsTest, FindsAMatrixByNameAndShape) {
  const Weights weights(*file_);
  const auto found = weights.Matrix("matrix", {2, 3});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->name, "matrix");
  EXPECT_EQ(GgufFile::View(**found).row_f32(1)[2], 5);
}

TEST_F(WeightsTest, WidensVectorsOfEveryFloatType) {
  const Weights weights(*file_);
  for (const char* name : {"vector", "half", "brain"}) {
    const auto values = weights.Vector(name, 6);
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_THAT(*values, ElementsAre(0, 1, 2, 3, 4, 5)) << name;
  }
}

TEST_F(WeightsTest, AMissingTensorIsNamedWithItsShape) {
  const Weights weights(*file_);
  const absl::Status status = weights.Matrix("absent", {4, 8}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(),
            "t.gguf: tensor 'absent' is missing; expected a weight of any type "
            "[4, 8]");
}

TEST_F(WeightsTest, AnotherShapeIsRefusedWithBoth) {
  const Weights weights(*file_);
  const absl::Status status = weights.Matrix("matrix", {3, 2}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "t.gguf: tensor 'matrix': expected a weight of any type [3, 2], "
            "file has f32 [2, 3]");
  EXPECT_FALSE(weights.Matrix("matrix", {6}).ok());
  EXPECT_FALSE(weights.Matrix("matrix", {1, 2, 3}).ok() &&
               weights.Matrix("matrix", {2, 1, 3}).ok());
  // A leading 1 is no difference.
  EXPECT_TRUE(weights.Matrix("matrix", {1, 2, 3}).ok());
}

TEST_F(WeightsTest, AnotherTypeIsRefusedWithBoth) {
  const Weights weights(*file_);
  const absl::Status matrix = weights.Matrix("numbers", {6}).status();
  EXPECT_EQ(matrix.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(matrix.message(),
              AllOf(HasSubstr("'numbers'"), HasSubstr("i32 [6]")));
  const absl::Status vector = weights.Vector("numbers", 6).status();
  EXPECT_EQ(vector.message(),
            "t.gguf: tensor 'numbers': expected f32, f16 or bf16 [6], file has "
            "i32 [6]");
}

TEST_F(WeightsTest, LeftoversAreListedOnceAndRefusedWhenStrict) {
  const Weights weights(*file_);
  ASSERT_TRUE(weights.Matrix("matrix", {2, 3}).ok());
  ASSERT_TRUE(weights.Vector("vector", 6).ok());
  ASSERT_TRUE(weights.Vector("half", 6).ok());
  ASSERT_TRUE(weights.Vector("brain", 6).ok());
  ASSERT_FALSE(weights.Matrix("numbers", {6}).ok());  // refused: not used
  EXPECT_EQ(weights.Leftovers().size(), 8U);
  EXPECT_TRUE(weights.Finish(/*strict=*/false).ok());
  const absl::Status status = weights.Finish(/*strict=*/true);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("8 tensors"), HasSubstr("'numbers'"),
                    HasSubstr("'extra.3'"), HasSubstr("and 3 more"),
                    ::testing::Not(HasSubstr("extra.4"))));
  EXPECT_EQ(weights.Ignore("extra."), 7);
  EXPECT_THAT(weights.Leftovers(), ElementsAre("numbers"));
  EXPECT_EQ(weights.Ignore("numbers"), 1);
  EXPECT_TRUE(weights.Finish(/*strict=*/true).ok());
}

}  // namespace
}  // namespace fucina
