#include "fucina/tensor/tensor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "fucina/diag/check.h"

namespace fucina {

Tensor::Tensor(DType dtype, std::initializer_list<std::int64_t> shape,
               void* data)
    : data_(data), dtype_(dtype), rank_(static_cast<int>(shape.size())) {
  FUCINA_CHECK_GE(rank_, 1);
  FUCINA_CHECK_LE(rank_, kMaxRank);
  std::copy(shape.begin(), shape.end(), shape_.begin());
  for (int i = 0; i < rank_; ++i) FUCINA_CHECK_GE(shape_[i], 0);
  row_stride_bytes_ = RowBytes(dtype, shape_[rank_ - 1]);
}

Tensor::Tensor(DType dtype, std::initializer_list<std::int64_t> shape,
               const void* data)
    : Tensor(dtype, shape, const_cast<void*>(data)) {}

std::int64_t Tensor::dim(int i) const {
  FUCINA_CHECK(i >= 0 && i < rank_) << "dimension " << i << " of " << rank_;
  return shape_[i];
}

std::int64_t Tensor::num_elements() const {
  return rank_ == 0 ? 0 : num_rows() * row_size();
}

std::int64_t Tensor::num_rows() const {
  if (rank_ == 0) return 0;
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < rank_; ++i) rows *= shape_[i];
  return rows;
}

std::int64_t Tensor::row_size() const {
  return rank_ == 0 ? 0 : shape_[rank_ - 1];
}

bool Tensor::contiguous() const {
  return rank_ == 0 || num_rows() <= 1 ||
         row_stride_bytes_ == RowBytes(dtype_, row_size());
}

const std::byte* Tensor::row_bytes(std::int64_t row) const {
  return static_cast<const std::byte*>(data_) + row * row_stride_bytes_;
}

const float* Tensor::row_f32(std::int64_t row) const {
  return mutable_row_f32(row);
}

float* Tensor::mutable_row_f32(std::int64_t row) const {
  FUCINA_CHECK(dtype_ == DType::kF32) << DebugString();
  return reinterpret_cast<float*>(static_cast<std::byte*>(data_) +
                                  row * row_stride_bytes_);
}

Tensor Tensor::Slice(std::int64_t begin, std::int64_t count) const {
  FUCINA_CHECK_GE(rank_, 1);
  FUCINA_CHECK(begin >= 0 && count >= 0 && begin + count <= shape_[0])
      << "slice [" << begin << ", " << begin + count << ") of "
      << DebugString();
  FUCINA_CHECK(rank_ == 2 || contiguous()) << DebugString();
  Tensor slice = *this;
  slice.shape_[0] = count;
  const std::int64_t offset =
      rank_ == 1 ? RowBytes(dtype_, begin)
                 : begin * (shape_[0] == 0 ? 0 : num_rows() / shape_[0]) *
                       row_stride_bytes_;
  slice.data_ = static_cast<std::byte*>(data_) + offset;
  return slice;
}

Tensor Tensor::Reshape(std::initializer_list<std::int64_t> shape) const {
  FUCINA_CHECK(contiguous()) << DebugString();
  Tensor reshaped(dtype_, shape, data_);
  FUCINA_CHECK_EQ(reshaped.num_elements(), num_elements());
  return reshaped;
}

Tensor Tensor::Strided(DType dtype, std::int64_t rows, std::int64_t row_size,
                       std::int64_t row_stride_bytes, void* data) {
  Tensor tensor(dtype, {rows, row_size}, data);
  FUCINA_CHECK_GE(row_stride_bytes, tensor.row_stride_bytes_);
  tensor.row_stride_bytes_ = row_stride_bytes;
  return tensor;
}

std::string Tensor::DebugString() const {
  return absl::StrCat(Name(dtype_), " [",
                      absl::StrJoin(absl::MakeSpan(shape_.data(), rank_), ", "),
                      "]");
}

}  // namespace fucina
