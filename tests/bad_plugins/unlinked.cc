// Calls a core function that this core does not have. Linked without
// --no-undefined, as another build system might.

#include "fucina/plugin/manifest.h"

namespace fucina {
void FunctionOfAnotherCore();
}

namespace {

absl::Status Register(fucina::Registrar&) {
  fucina::FunctionOfAnotherCore();
  return absl::OkStatus();
}

}  // namespace

FUCINA_PLUGIN(unlinked, "1.0.0", "Apache-2.0", &Register)
