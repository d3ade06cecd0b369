#include "cli/text_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "fucina/diag/printable.h"

namespace fucina::cli {
namespace {

absl::Status Unreadable(absl::string_view where, int error) {
  return absl::NotFoundError(
      absl::StrCat(where, " cannot be read: ", std::strerror(error)));
}

absl::StatusOr<std::string> ReadAll(int file, absl::string_view where,
                                    std::size_t limit) {
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  std::string text;
  while (true) {
    const std::size_t size = text.size();
    text.resize(size + kBlock);
    const ssize_t count = read(file, text.data() + size, kBlock);
    if (count < 0 && errno != EINTR) return Unreadable(where, errno);
    text.resize(size + static_cast<std::size_t>(count < 0 ? 0 : count));
    if (count == 0) return text;
    if (text.size() > limit) return TooLong(where, limit);
  }
}

}  // namespace

absl::Status TooLong(absl::string_view where, std::size_t limit) {
  return absl::InvalidArgumentError(absl::StrCat(
      where, " has more than ", limit >> 20, " MiB; no prompt needs that"));
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path,
                                         absl::string_view flag,
                                         std::size_t limit) {
  const std::string where = absl::StrCat(flag, ": '", Printable(path), "'");
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Unreadable(where, errno);
  auto text = ReadAll(file, where, limit);
  close(file);
  return text;
}

absl::StatusOr<std::string> ReadStandardInput(absl::string_view flag,
                                              std::size_t limit) {
  return ReadAll(STDIN_FILENO, absl::StrCat(flag, ": standard input"), limit);
}

}  // namespace fucina::cli
