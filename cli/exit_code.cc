#include "cli/exit_code.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fucina::cli {
namespace {

constexpr char kPayload[] = "fucina.dev/exit-code";

}  // namespace

absl::Status WithExitCode(absl::Status status, ExitCode code) {
  if (status.ok() || status.GetPayload(kPayload).has_value()) return status;
  // Lack of memory says more than the place where it was noticed.
  if (status.code() == absl::StatusCode::kResourceExhausted) {
    code = ExitCode::kMemory;
  }
  status.SetPayload(kPayload, absl::Cord(absl::StrCat(static_cast<int>(code))));
  return status;
}

ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return ExitCode::kSuccess;
  if (const auto payload = status.GetPayload(kPayload); payload.has_value()) {
    int code = 1;
    if (absl::SimpleAtoi(std::string(*payload), &code)) {
      return static_cast<ExitCode>(code);
    }
  }
  switch (status.code()) {
    case absl::StatusCode::kResourceExhausted:
      return ExitCode::kMemory;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kAlreadyExists:
    // A plugin that was named and that others can write to, or that was built
    // for another fucina.
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
      return ExitCode::kUsage;
    default:
      return ExitCode::kFailure;
  }
}

}  // namespace fucina::cli
