// Registers the families qwen3 and qwen3moe.

#include "fucina/diag/status_macros.h"
#include "fucina/plugin/manifest.h"
#include "qwen3_family.h"

namespace fucina::qwen3 {
namespace {

absl::Status Register(Registrar& registrar) {
  FUCINA_RETURN_IF_ERROR(registrar.Add(DenseFamily()));
  return registrar.Add(ExpertsFamily());
}

}  // namespace
}  // namespace fucina::qwen3

FUCINA_PLUGIN(qwen3, "0.1.0", "MIT", &fucina::qwen3::Register)
