#include "tests/conformance/report.h"

#include "absl/strings/str_cat.h"

namespace fucina::conformance {

absl::Status Broken(absl::string_view what) {
  return absl::InternalError(what);
}

void Report::Property(absl::string_view property, const absl::Status& result) {
  ++num_checked_;
  const bool not_offered = absl::IsUnimplemented(result);
  if (!result.ok() && !not_offered) ++num_failed_;
  absl::StrAppend(&text_,
                  result.ok()   ? "ok    "
                  : not_offered ? "n/a   "
                                : "FAIL  ",
                  subject_, ": ", property);
  if (!result.ok()) absl::StrAppend(&text_, ": ", result.message());
  absl::StrAppend(&text_, "\n");
}

}  // namespace fucina::conformance
