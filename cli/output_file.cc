#include "cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "fucina/diag/printable.h"

namespace fucina::cli {
namespace {

absl::Status Unwritable(absl::string_view flag, const std::string& path,
                        int error) {
  const std::string message =
      absl::StrCat(flag, ": '", Printable(path),
                   "' cannot be written: ", std::strerror(error));
  return error == ENOSPC || error == EDQUOT
             ? absl::ResourceExhaustedError(message)
             : absl::InvalidArgumentError(message);
}

// What `path` leads to. A link stays, its target is replaced.
std::string Target(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) != nullptr ? resolved : path;
}

// No file that a new one could take the place of: a device, a pipe, or a link
// whose target is yet to be made.
bool IsSpecial(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0) return !S_ISREG(info.st_mode);
  return lstat(path.c_str(), &info) == 0;
}

// Errno, or 0.
int WriteTo(const std::string& path, int flags, absl::string_view bytes) {
  const int file = open(path.c_str(), flags | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0) return errno;
  int error = 0;
  while (!bytes.empty() && error == 0) {
    const ssize_t count = write(file, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  // Some file systems tell only now.
  if (close(file) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace

absl::Status CheckOutputFile(absl::string_view flag, const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return Unwritable(flag, path, EISDIR);
    if (access(path.c_str(), W_OK) != 0) return Unwritable(flag, path, errno);
    if (!S_ISREG(info.st_mode)) return absl::OkStatus();
  } else if (errno != ENOENT) {
    return Unwritable(flag, path, errno);
  }
  const std::string temporary = absl::StrCat(Target(path), ".tmp");
  // Of a link without a target this checks the folder of the link.
  const int error = WriteTo(temporary, O_CREAT | O_EXCL, "");
  // What a run that was killed left there.
  if (error == EEXIST) return absl::OkStatus();
  if (error != 0) return Unwritable(flag, path, error);
  std::remove(temporary.c_str());
  return absl::OkStatus();
}

absl::Status WriteOutputFile(absl::string_view flag, const std::string& path,
                             absl::string_view bytes) {
  if (IsSpecial(path)) {
    const int error = WriteTo(path, O_CREAT, bytes);
    return error == 0 ? absl::OkStatus() : Unwritable(flag, path, error);
  }
  const std::string target = Target(path);
  const std::string temporary = absl::StrCat(target, ".tmp");
  int error = WriteTo(temporary, O_CREAT | O_TRUNC, bytes);
  if (error == 0 && std::rename(temporary.c_str(), target.c_str()) != 0) {
    error = errno;
  }
  if (error == 0) return absl::OkStatus();
  std::remove(temporary.c_str());
  return Unwritable(flag, path, error);
}

}  // namespace fucina::cli
