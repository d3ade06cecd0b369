#include "registry/text_file.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fucina/diag/printable.h"
#include "registry/memory_plan.h"

namespace fucina {

absl::StatusOr<std::string> ReadAll(std::istream& in, std::size_t max_bytes) {
  std::string text;
  std::vector<char> block(std::size_t{1} << 16);
  // Unlike an iterator over the buffer, read() keeps the exceptions in that
  // the buffer throws where the system cannot read.
  while (in.good() && text.size() <= max_bytes) {
    errno = 0;
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot be read", errno == 0 ? "" : ": ",
                     errno == 0 ? "" : std::strerror(errno)));
  }
  if (text.size() > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has more than ", HumanBytes(static_cast<std::int64_t>(max_bytes))));
  }
  return text;
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path,
                                         std::size_t max_bytes) {
  const std::string shown = absl::StrCat("'", Printable(path), "' ");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in.is_open()) {
    return absl::NotFoundError(
        absl::StrCat(shown, "cannot be read: ", std::strerror(errno)));
  }
  auto text = ReadAll(in, max_bytes);
  if (text.ok()) return text;
  return absl::InvalidArgumentError(
      absl::StrCat(shown, text.status().message()));
}

}  // namespace fucina
