#ifndef FUCINA_CORE_GGUF_FILE_MAPPING_H_
#define FUCINA_CORE_GGUF_FILE_MAPPING_H_

// A regular file mapped read-only, with its descriptor kept for positioned
// reads. Pages are read by the system when they are first touched.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fucina::gguf {

class FileMapping {
 public:
  // The errors do not name the file; the caller does.
  static absl::StatusOr<FileMapping> Open(const std::string& path);

  FileMapping(FileMapping&& other) noexcept;
  FileMapping& operator=(FileMapping&& other) noexcept;
  ~FileMapping();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // DataLoss when the file is no longer as long as it was when mapped: touching
  // the lost part of the mapping would end the process.
  absl::Status CheckSize() const;
  // Copies from the file, not from the mapping, so that a file cut meanwhile is
  // an error. Thread-safe.
  absl::Status ReadAt(std::uint64_t offset, std::span<std::byte> out) const;
  // Drops the whole pages inside the range from this process.
  void Release(std::uint64_t offset, std::uint64_t size) const;

 private:
  FileMapping(int fd, const std::byte* data, std::size_t size)
      : fd_(fd), data_(data), size_(size) {}
  void Close();

  int fd_ = -1;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace fucina::gguf

#endif  // FUCINA_CORE_GGUF_FILE_MAPPING_H_
