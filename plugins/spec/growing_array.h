#ifndef FUCINA_PLUGINS_SPEC_GROWING_ARRAY_H_
#define FUCINA_PLUGINS_SPEC_GROWING_ARRAY_H_

// A list that grows to hundreds of megabytes without moving and without a
// second copy of itself. Beyond a mebibyte its memory is a mapping that commits
// as it fills, so room ahead costs addresses only, and lies on huge pages: the
// automaton jumps all over it. Growing fails with false instead of throwing.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "fucina/tensor/buffer.h"

namespace fucina::spec {

// REQUIRES: all bytes zero is a value of T.
template <typename T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  GrowingArray() = default;
  GrowingArray(GrowingArray&& other) noexcept { *this = std::move(other); }
  GrowingArray& operator=(GrowingArray&& other) noexcept {
    buffer_ = std::move(other.buffer_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }
  std::span<const T> span() const { return {data(), size_}; }

  // False, and nothing changed, when memory lacks.
  bool Append(const T& value) {
    if (size_ == capacity_ && !Grow()) return false;
    data()[size_++] = value;
    return true;
  }
  // Room for `count` in all, as one mapping where that is large.
  bool Reserve(std::size_t count) { return count <= capacity_ || Move(count); }
  // `count` values, all zero, in the place of what was held.
  bool AssignZeros(std::size_t count) {
    GrowingArray fresh;
    if (!fresh.Reserve(count)) return false;
    fresh.size_ = count;
    *this = std::move(fresh);
    return true;
  }
  void Clear() { *this = GrowingArray(); }

  // Held, as far as it was ever written to.
  std::size_t bytes() const {
    const std::size_t all = capacity_ * sizeof(T);
    if (all < kMappedBytes) return all;
    const std::size_t used = size_ * sizeof(T) + kHugePageBytes - 1;
    return std::min(all, used - used % kHugePageBytes);
  }

 private:
  // From here on a Buffer is a mapping; see tensor/buffer.h.
  static constexpr std::size_t kMappedBytes = std::size_t{1} << 20;
  static constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

  T* data() const { return buffer_.template as<T>(); }

  bool Grow() {
    // A system that counts addresses may refuse the large step.
    if (size_ * sizeof(T) >= kMappedBytes && Move(size_ * 4)) return true;
    return Move(size_ + size_ / 4 + 64);
  }

  bool Move(std::size_t capacity) {
    auto buffer = Buffer::Allocate(capacity * sizeof(T));
    if (!buffer.ok()) return false;
    if (size_ > 0) {
      std::memcpy(buffer->data(), buffer_.data(), size_ * sizeof(T));
    }
    buffer_ = *std::move(buffer);
    capacity_ = capacity;
    return true;
  }

  Buffer buffer_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace fucina::spec

#endif  // FUCINA_PLUGINS_SPEC_GROWING_ARRAY_H_
