#include "fucina/tensor/buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fucina {
namespace {

// Huge pages are 2 MiB on x86-64; a mapping that starts on such a boundary can
// use them from its first byte.
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr std::size_t kPageBytes = 4096;
// Below this size the allocator's own pages serve better than a mapping.
constexpr std::size_t kMappedFromBytes = std::size_t{1} << 20;

std::size_t RoundUp(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Mapped for a buffer. One that fills a huge page ends on one as well, or its
// last 2 MiB would lie on small pages.
std::size_t MappedBytes(std::size_t size_bytes) {
  return RoundUp(size_bytes,
                 size_bytes >= kHugePageBytes ? kHugePageBytes : kPageBytes);
}

std::byte* MapAligned(std::size_t size_bytes) {
  const std::size_t mapped_bytes = size_bytes + kHugePageBytes;
  if (mapped_bytes < size_bytes) return nullptr;
  void* raw = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto* base = static_cast<std::byte*>(raw);
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  const std::size_t head = RoundUp(address, kHugePageBytes) - address;
  std::byte* data = base + head;
  if (head > 0) munmap(base, head);
  const std::size_t tail = mapped_bytes - head - size_bytes;
  if (tail > 0) munmap(data + size_bytes, tail);
  madvise(data, size_bytes, MADV_HUGEPAGE);
  return data;
}

}  // namespace

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      mapped_(other.mapped_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    Release();
    data_ = std::exchange(other.data_, nullptr);
    size_bytes_ = std::exchange(other.size_bytes_, 0);
    mapped_ = other.mapped_;
  }
  return *this;
}

Buffer::~Buffer() { Release(); }

void Buffer::Release() {
  if (data_ == nullptr) return;
  if (mapped_) {
    munmap(data_, MappedBytes(size_bytes_));
  } else {
    std::free(data_);
  }
  data_ = nullptr;
}

absl::StatusOr<Buffer> Buffer::Allocate(std::size_t size_bytes) {
  if (size_bytes == 0) return Buffer();
  const auto exhausted = [size_bytes] {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", size_bytes, " bytes"));
  };
  if (size_bytes > SIZE_MAX / 2) return exhausted();
  if (size_bytes >= kMappedFromBytes) {
    std::byte* data = MapAligned(MappedBytes(size_bytes));
    if (data == nullptr) return exhausted();
    return Buffer(data, size_bytes, /*mapped=*/true);
  }
  const std::size_t rounded = RoundUp(size_bytes, kAlignment);
  void* data = std::aligned_alloc(kAlignment, rounded);
  if (data == nullptr) return exhausted();
  std::memset(data, 0, rounded);
  return Buffer(static_cast<std::byte*>(data), size_bytes, /*mapped=*/false);
}

}  // namespace fucina
