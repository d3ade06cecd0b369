#ifndef FUCINA_CORE_GGUF_ATOMIC_FILE_H_
#define FUCINA_CORE_GGUF_ATOMIC_FILE_H_

// A file that appears under its name only when it is complete and on disk.

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fucina::gguf {

// Thread-compatible. Destroyed without Commit, it leaves nothing behind. The
// errors do not name the path; the caller does.
class AtomicFile {
 public:
  static absl::StatusOr<AtomicFile> Create(const std::string& path);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  absl::Status Append(std::span<const std::byte> bytes);
  // Flushes to disk and gives the file its name. Call once, last.
  absl::Status Commit();

 private:
  AtomicFile(int fd, std::string path, std::string temporary_path);

  int fd_ = -1;
  std::string path_;
  std::string temporary_path_;  // empty once renamed
};

}  // namespace fucina::gguf

#endif  // FUCINA_CORE_GGUF_ATOMIC_FILE_H_
