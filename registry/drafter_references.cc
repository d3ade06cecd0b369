#include "registry/drafter_references.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "registry/text_file.h"

namespace fucina {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 30;

}  // namespace

absl::Status CheckReference(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    const int reason = errno;
    return absl::NotFoundError(
        reason == ENOENT
            ? absl::StrCat("no file '", Printable(path), "'")
            : absl::StrCat("'", Printable(path),
                           "' cannot be read: ", std::strerror(reason)));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", Printable(path), "' is not a regular file"));
  }
  if (info.st_size == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", Printable(path), "' is empty"));
  }
  if (info.st_size > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", Printable(path), "' has ", HumanBytes(info.st_size),
                     "; at most ", HumanBytes(kMaxBytes), " can be used"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadReference(const std::string& path) {
  FUCINA_RETURN_IF_ERROR(CheckReference(path));
  auto text = ReadTextFile(path, static_cast<std::size_t>(kMaxBytes));
  if (text.ok() && text->empty()) {  // it has shrunk
    return absl::InvalidArgumentError(
        absl::StrCat("'", Printable(path), "' is empty"));
  }
  return text;
}

absl::Status CheckReferenceMemory(const Pipeline& pipeline) {
  // An index takes 48 to 60 of them.
  constexpr std::int64_t kBytesPerToken = 64;
  if (!pipeline.config.memory_check || pipeline.drafter_references.empty()) {
    return absl::OkStatus();
  }
  std::int64_t tokens = 0;
  for (const auto& reference : pipeline.drafter_references) {
    tokens += static_cast<std::int64_t>(reference.second.size());
  }
  const std::int64_t bytes = tokens * kBytesPerToken;
  const AvailableMemory available = ReadAvailableMemory(pipeline.memory);
  if (bytes <= available.bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      pipeline.config.Blame("drafter.references"), "an index of the ", tokens,
      " tokens up to '", Printable(pipeline.drafter_references.back().first),
      "' needs ", HumanBytes(bytes), ", ", HumanBytes(available.bytes),
      " are available (", available.reason,
      "); --no-memory-check tries all the same"));
}

}  // namespace fucina
