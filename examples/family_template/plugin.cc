// Registers the families llama and qwen2.

#include "fucina/diag/status_macros.h"
#include "fucina/plugin/manifest.h"
#include "llama_family.h"

namespace {

absl::Status Register(fucina::Registrar& registrar) {
  FUCINA_RETURN_IF_ERROR(registrar.Add(llama_family::Llama()));
  return registrar.Add(llama_family::Qwen2());
}

}  // namespace

// Name as in libfucina_<name>.so, version and licence of the plugin.
FUCINA_PLUGIN(llama, "0.1.0", "MIT", &Register)
