// Claims a family of its own and one that sample has as well.

#include "fucina/diag/status_macros.h"
#include "fucina/plugin/manifest.h"

namespace {

absl::StatusOr<std::unique_ptr<fucina::Decoder>> Load(const fucina::GgufFile&,
                                                      fucina::ThreadPool&,
                                                      const fucina::Options&) {
  return absl::InternalError("must not be called");
}

absl::Status Register(fucina::Registrar& registrar) {
  FUCINA_RETURN_IF_ERROR(registrar.Add(
      fucina::Family{.name = "other", .summary = "its own", .load = &Load}));
  return registrar.Add(fucina::Family{
      .name = "sample", .summary = "somebody else's", .load = &Load});
}

}  // namespace

FUCINA_PLUGIN(clash, "1.0.0", "Apache-2.0", &Register)
