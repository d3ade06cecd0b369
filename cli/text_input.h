#ifndef FUCINA_CLI_TEXT_INPUT_H_
#define FUCINA_CLI_TEXT_INPUT_H_

// Texts that a flag asks for, from files and from standard input, never more
// than a bound: a device or a mistaken file must not fill the memory.

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fucina::cli {

// A message: more tokens than any context holds.
inline constexpr std::size_t kMaxMessageBytes = std::size_t{8} << 20;
// A text to cut into tokens.
inline constexpr std::size_t kMaxTextBytes = std::size_t{256} << 20;
// Ten million token ids of six digits.
inline constexpr std::size_t kMaxIdsBytes = std::size_t{64} << 20;

// The bytes of the file. Errors are those of fucina::ReadTextFile, `flag` in
// front.
absl::StatusOr<std::string> ReadTextFile(const std::string& path,
                                         absl::string_view flag,
                                         std::size_t limit);

// The same of standard input, to its end.
absl::StatusOr<std::string> ReadStandardInput(absl::string_view flag,
                                              std::size_t limit);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_TEXT_INPUT_H_
