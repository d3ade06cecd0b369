#include "core/gguf/gguf_status.h"

#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include "absl/strings/cord.h"

namespace fucina {
namespace {

constexpr char kPayloadUrl[] = "fucina/gguf_error";

// In the order of the enumeration.
constexpr std::array<absl::string_view, 31> kNames = {
    "io",
    "truncated",
    "bad_magic",
    "unsupported_version",
    "wrong_endian",
    "count_limit",
    "bad_key",
    "string_limit",
    "array_limit",
    "nested_array",
    "bad_value_type",
    "bad_bool",
    "duplicate_key",
    "bad_alignment",
    "value_range",
    "bad_tensor_name",
    "duplicate_tensor",
    "bad_n_dims",
    "zero_dim",
    "dim_overflow",
    "unknown_tensor_type",
    "removed_tensor_type",
    "row_not_block_multiple",
    "offset_unaligned",
    "offset_out_of_range",
    "offset_overflow",
    "tensor_overlap",
    "split_mismatch",
    "split_missing_part",
    "split_count",
    "split_name",
};
static_assert(static_cast<std::size_t>(GgufError::kSplitName) + 1 ==
              kNames.size());

}  // namespace

absl::string_view Name(GgufError error) {
  return kNames[static_cast<std::size_t>(error)];
}

std::optional<GgufError> FindGgufError(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value()) return std::nullopt;
  const std::string name(*payload);
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<GgufError>(i);
  }
  return std::nullopt;
}

namespace gguf {

absl::Status MakeError(absl::StatusCode code, GgufError error,
                       absl::string_view message) {
  absl::Status status(code, message);
  status.SetPayload(kPayloadUrl, absl::Cord(Name(error)));
  return status;
}

absl::Status SystemError(int error_number, absl::string_view what) {
  absl::StatusCode code = absl::StatusCode::kUnknown;
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      code = absl::StatusCode::kNotFound;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = absl::StatusCode::kPermissionDenied;
      break;
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
      code = absl::StatusCode::kResourceExhausted;
      break;
    case ENAMETOOLONG:
    case ELOOP:
    case EISDIR:
    case EINVAL:
      code = absl::StatusCode::kInvalidArgument;
      break;
    default:
      break;
  }
  // Not strerror: its buffer is shared between threads.
  const std::string reason =
      std::error_code(error_number, std::generic_category()).message();
  return MakeError(code, GgufError::kIo, absl::StrCat(what, ": ", reason));
}

absl::Status WithPrefix(absl::string_view prefix, const absl::Status& status) {
  absl::Status result(status.code(),
                      absl::StrCat(prefix, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    result.SetPayload(url, payload);
  });
  return result;
}

}  // namespace gguf
}  // namespace fucina
