#ifndef FUCINA_CORE_GGUF_BYTE_CURSOR_H_
#define FUCINA_CORE_GGUF_BYTE_CURSOR_H_

// The only way the reader looks at a file: a position that cannot pass the end.
// Lengths are compared with what is left, never added to the position first, so
// no number from a file can wrap.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "absl/strings/string_view.h"

namespace fucina::gguf {

static_assert(std::endian::native == std::endian::little,
              "values are copied from little-endian files as they are");

class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t position() const { return position_; }
  std::uint64_t remaining() const { return bytes_.size() - position_; }

  // Reads one little-endian number. False, without moving, at the end.
  template <typename T>
  bool Read(T* value) {
    if (sizeof(T) > remaining()) return false;
    std::memcpy(value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return true;
  }

  // Views the next `size` bytes. False, without moving, when fewer are left.
  bool Take(std::uint64_t size, absl::string_view* view) {
    if (size > remaining()) return false;
    *view = absl::string_view(
        reinterpret_cast<const char*>(bytes_.data()) + position_,
        static_cast<std::size_t>(size));
    position_ += size;
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t position_ = 0;
};

}  // namespace fucina::gguf

#endif  // FUCINA_CORE_GGUF_BYTE_CURSOR_H_
