#ifndef FUCINA_TENSOR_BUFFER_H_
#define FUCINA_TENSOR_BUFFER_H_

// Owned, aligned memory behind a Tensor. Large buffers are anonymous mappings
// advised for huge pages and commit lazily; the bytes start as zero.
// Thread-compatible.

#include <cstddef>

#include "absl/status/statusor.h"
#include "fucina/export.h"

namespace fucina {

class FUCINA_API Buffer {
 public:
  // Cache line and widest vector register.
  static constexpr std::size_t kAlignment = 64;

  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  // `size_bytes` zero bytes, aligned to kAlignment. ResourceExhausted, naming
  // the size, when the system refuses.
  static absl::StatusOr<Buffer> Allocate(std::size_t size_bytes);

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }

  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  Buffer(std::byte* data, std::size_t size_bytes, bool mapped)
      : data_(data), size_bytes_(size_bytes), mapped_(mapped) {}
  void Release();

  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
  bool mapped_ = false;
};

}  // namespace fucina

#endif  // FUCINA_TENSOR_BUFFER_H_
