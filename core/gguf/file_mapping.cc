#include "core/gguf/file_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/gguf/gguf_status.h"

namespace fucina::gguf {
namespace {

absl::Status NoRegularFile(mode_t mode) {
  absl::string_view kind = "a special file";
  if (S_ISDIR(mode)) kind = "a folder";
  if (S_ISFIFO(mode)) kind = "a pipe";
  if (S_ISSOCK(mode)) kind = "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) kind = "a device";
  return BadFile(GgufError::kIo, "is ", kind, ", expected a regular file");
}

absl::Status Shrunk(std::uint64_t size, std::uint64_t expected) {
  return MakeError(absl::StatusCode::kDataLoss, GgufError::kTruncated,
                   absl::StrCat("the file had ", expected,
                                " bytes when it was opened and has ", size,
                                " now; something is writing to it"));
}

}  // namespace

absl::StatusOr<FileMapping> FileMapping::Open(const std::string& path) {
  // Non-blocking, or a pipe without a writer would hang here.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int open_errno = errno;
    return SystemError(open_errno, "cannot open");
  }
  FileMapping mapping(fd, nullptr, 0);
  struct stat info = {};
  if (fstat(fd, &info) != 0) return SystemError(errno, "cannot stat");
  if (!S_ISREG(info.st_mode)) return NoRegularFile(info.st_mode);
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size > 0) {
    void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) return SystemError(errno, "cannot map");
    mapping.data_ = static_cast<const std::byte*>(data);
    mapping.size_ = size;
    absl::Status unchanged = mapping.CheckSize();
    if (!unchanged.ok()) return unchanged;
  }
  return mapping;
}

FileMapping::FileMapping(FileMapping&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

FileMapping& FileMapping::operator=(FileMapping&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = std::exchange(other.fd_, -1);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

FileMapping::~FileMapping() { Close(); }

void FileMapping::Close() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
  if (fd_ >= 0) close(fd_);
}

absl::Status FileMapping::CheckSize() const {
  struct stat info = {};
  if (fstat(fd_, &info) != 0) return SystemError(errno, "cannot stat");
  if (static_cast<std::uint64_t>(info.st_size) < size_) {
    return Shrunk(static_cast<std::uint64_t>(info.st_size), size_);
  }
  return absl::OkStatus();
}

absl::Status FileMapping::ReadAt(std::uint64_t offset,
                                 std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count =
        pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0) {
      if (errno == EINTR) continue;
      return SystemError(errno, "cannot read");
    }
    if (count == 0) return Shrunk(offset, size_);
    out = out.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return absl::OkStatus();
}

void FileMapping::Release(std::uint64_t offset, std::uint64_t size) const {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  // Only whole pages: the ones at the rim belong to neighbours as well.
  const std::uint64_t begin = (offset + page - 1) / page * page;
  const std::uint64_t end = (offset + size) / page * page;
  if (begin >= end) return;
  // Advice; nothing depends on whether the system takes it.
  madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace fucina::gguf
