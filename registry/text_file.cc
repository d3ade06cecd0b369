#include "registry/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "fucina/diag/printable.h"

namespace fucina {
namespace {

absl::Status Unreadable(absl::string_view where, int error) {
  return absl::NotFoundError(
      absl::StrCat(where, " cannot be read: ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<std::string> ReadOpenFile(int file, absl::string_view where,
                                         std::size_t max_bytes) {
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  std::string text;
  while (true) {
    const std::size_t size = text.size();
    text.resize(size + kBlock);
    const ssize_t count = read(file, text.data() + size, kBlock);
    if (count < 0 && errno != EINTR) return Unreadable(where, errno);
    text.resize(size + static_cast<std::size_t>(count < 0 ? 0 : count));
    if (count == 0) return text;
    if (text.size() > max_bytes) return TooLong(where, max_bytes);
  }
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path,
                                         std::size_t max_bytes) {
  const std::string where = absl::StrCat("'", Printable(path), "'");
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Unreadable(where, errno);
  auto text = ReadOpenFile(file, where, max_bytes);
  close(file);
  return text;
}

absl::Status TooLong(absl::string_view where, std::size_t max_bytes) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, " has more than ", max_bytes >> 20, " MiB"));
}

}  // namespace fucina
