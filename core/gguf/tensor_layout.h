#ifndef FUCINA_CORE_GGUF_TENSOR_LAYOUT_H_
#define FUCINA_CORE_GGUF_TENSOR_LAYOUT_H_

// Where tensors lie in the data section, and how many bytes they have.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "fucina/gguf/gguf_file.h"

namespace fucina::gguf {

// The largest power of two the format's readers agree on; 8 is the smallest.
inline constexpr std::int64_t kMinAlignment = 8;
inline constexpr std::int64_t kMaxAlignment = std::int64_t{1} << 20;
inline constexpr std::uint64_t kDefaultAlignment = 32;
inline constexpr int kMaxDims = 4;

// `position` rounded up. REQUIRES: alignment is a power of two and position is
// at least that much below 2^64.
constexpr std::uint64_t PadTo(std::uint64_t position, std::uint64_t alignment) {
  return (position + alignment - 1) & ~(alignment - 1);
}

// OK when every one of `rank` dimensions is in [1, 2^63) and so is their
// product. Messages begin with "tensor 'name'".
absl::Status CheckDims(absl::string_view name, const std::uint64_t* ne,
                       int rank);

// Bytes of a tensor of a known type whose dimensions passed CheckDims.
absl::StatusOr<std::uint64_t> TensorBytes(absl::string_view name, DType dtype,
                                          const std::uint64_t* ne);

// A tensor as the directory places it, before the position is trusted.
struct Placement {
  absl::string_view name;
  std::uint64_t offset = 0;  // from the start of the data section
  std::uint64_t size_bytes = 0;
};

// OK when all placements are aligned, inside `data_bytes`, and disjoint. What
// is unusual but harmless is appended to `notes`.
absl::Status CheckLayout(std::span<const Placement> placements,
                         std::uint64_t alignment, std::uint64_t data_bytes,
                         std::vector<std::string>* notes);

}  // namespace fucina::gguf

#endif  // FUCINA_CORE_GGUF_TENSOR_LAYOUT_H_
