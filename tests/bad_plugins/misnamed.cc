// Built as libfucina_misnamed.so, calls itself 'bar'.

#include "fucina/plugin/manifest.h"

namespace {

absl::Status Register(fucina::Registrar&) { return absl::OkStatus(); }

}  // namespace

FUCINA_PLUGIN(bar, "1.0.0", "Apache-2.0", &Register)
