// Registers the family glm4moe and the drafter glm4moe_mtp.

#include "fucina/diag/status_macros.h"
#include "fucina/plugin/manifest.h"
#include "glm4moe_family.h"
#include "mtp_drafter.h"

namespace fucina::glm4moe {
namespace {

absl::Status Register(Registrar& registrar) {
  FUCINA_RETURN_IF_ERROR(registrar.Add(Glm4MoeFamily()));
  return registrar.Add(MtpDrafterKind());
}

}  // namespace
}  // namespace fucina::glm4moe

FUCINA_PLUGIN(glm4moe, "0.1.0", "MIT", &fucina::glm4moe::Register)
