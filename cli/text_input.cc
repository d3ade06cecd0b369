#include "cli/text_input.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "registry/plugin_calls.h"
#include "registry/text_file.h"

namespace fucina::cli {

absl::StatusOr<std::string> ReadTextFile(const std::string& path,
                                         absl::string_view flag,
                                         std::size_t limit) {
  auto text = fucina::ReadTextFile(path, limit);
  if (text.ok()) return text;
  return Prefixed(absl::StrCat(flag, ": "), text.status());
}

absl::StatusOr<std::string> ReadStandardInput(absl::string_view flag,
                                              std::size_t limit) {
  return ReadOpenFile(STDIN_FILENO, absl::StrCat(flag, ": standard input"),
                      limit);
}

}  // namespace fucina::cli
