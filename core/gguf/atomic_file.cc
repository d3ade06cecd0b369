#include "core/gguf/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/gguf/gguf_status.h"

namespace fucina::gguf {
namespace {

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

AtomicFile::AtomicFile(int fd, std::string path, std::string temporary_path)
    : fd_(fd),
      path_(std::move(path)),
      temporary_path_(std::move(temporary_path)) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      temporary_path_(std::exchange(other.temporary_path_, {})) {}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_path_.empty()) unlink(temporary_path_.c_str());
}

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path) {
  struct stat existing = {};
  if (stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode)) {
    return BadFile(GgufError::kIo,
                   "exists and is no regular file; will not replace it");
  }
  // The same folder, because a rename does not cross disks. A name of our own,
  // because that of the target may already be as long as the system allows.
  const std::string folder = FolderOf(path);
  constexpr int kMaxTries = 1000;
  for (int i = 0; i < kMaxTries; ++i) {
    std::string temporary =
        absl::StrCat(folder, "/.fucina-", getpid(), "-", i, ".tmp");
    // The mode is cut by the user's umask, as for any new file.
    const int fd =
        open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return AtomicFile(fd, path, std::move(temporary));
    if (errno != EEXIST) return SystemError(errno, "cannot create");
  }
  return SystemError(EEXIST, "cannot create a temporary file beside it");
}

absl::Status AtomicFile::Append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd_, bytes.data(), bytes.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return SystemError(errno, "cannot write");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  if (fsync(fd_) != 0) return SystemError(errno, "cannot flush to disk");
  const int closed = close(std::exchange(fd_, -1));
  if (closed != 0) return SystemError(errno, "cannot close");
  if (rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    return SystemError(errno, "cannot rename to it");
  }
  temporary_path_.clear();
  // The new name is in the folder's own data; without this a power cut could
  // bring the old file back. Some file systems cannot do it, and that is fine.
  const int folder = open(FolderOf(path_).c_str(), O_RDONLY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
  return absl::OkStatus();
}

}  // namespace fucina::gguf
