#ifndef FUCINA_TENSOR_TENSOR_H_
#define FUCINA_TENSOR_TENSOR_H_

// A view of numbers: type, shape, row stride, pointer. It owns nothing; whoever
// made it says how long the memory lives.
//
// Shapes are written outermost first, so a weight of GGUF ne {in, out} is
// [out, in] here. Elements of a row (the last dimension) are contiguous; rows
// of a matrix may be further apart than their size. Thread-compatible.

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "fucina/export.h"
#include "fucina/tensor/dtype.h"

namespace fucina {

class FUCINA_API Tensor {
 public:
  static constexpr int kMaxRank = 4;

  // An empty tensor: rank 0, no elements, null data.
  Tensor() = default;

  // A contiguous view of `data`.
  // REQUIRES: 1 to kMaxRank dimensions, none negative; the last dimension is a
  // multiple of the type's block size.
  Tensor(DType dtype, std::initializer_list<std::int64_t> shape, void* data);
  Tensor(DType dtype, std::initializer_list<std::int64_t> shape,
         const void* data);

  DType dtype() const { return dtype_; }
  int rank() const { return rank_; }
  // Size of dimension `i`, outermost first. REQUIRES: 0 <= i < rank().
  std::int64_t dim(int i) const;
  std::int64_t num_elements() const;
  bool empty() const { return num_elements() == 0; }

  // All dimensions but the last, multiplied: the number of rows.
  std::int64_t num_rows() const;
  // The last dimension.
  std::int64_t row_size() const;
  // Bytes from one row to the next.
  std::int64_t row_stride_bytes() const { return row_stride_bytes_; }
  bool contiguous() const;

  const void* data() const { return data_; }
  void* mutable_data() const { return data_; }

  // Row pointers. The f32 forms REQUIRE dtype() == kF32.
  const std::byte* row_bytes(std::int64_t row) const;
  const float* row_f32(std::int64_t row) const;
  float* mutable_row_f32(std::int64_t row) const;

  // Rows [begin, begin + count) of a rank-2 tensor, or of the outermost
  // dimension of a contiguous one.
  Tensor Slice(std::int64_t begin, std::int64_t count) const;
  // The same elements under another shape. REQUIRES: contiguous(), equal count.
  Tensor Reshape(std::initializer_list<std::int64_t> shape) const;
  // A rank-2 view whose rows are `row_stride_bytes` apart.
  static Tensor Strided(DType dtype, std::int64_t rows, std::int64_t row_size,
                        std::int64_t row_stride_bytes, void* data);

  // "f32 [2, 1024]".
  std::string DebugString() const;

 private:
  void* data_ = nullptr;
  std::array<std::int64_t, kMaxRank> shape_ = {};
  std::int64_t row_stride_bytes_ = 0;
  DType dtype_ = DType::kF32;
  int rank_ = 0;
};

}  // namespace fucina

#endif  // FUCINA_TENSOR_TENSOR_H_
