// Registers the drafters suffix, recycling and cascade.

#include "drafter_kinds.h"
#include "fucina/diag/status_macros.h"
#include "fucina/plugin/manifest.h"

namespace fucina::spec {
namespace {

absl::Status Register(Registrar& registrar) {
  FUCINA_RETURN_IF_ERROR(registrar.Add(SuffixKind()));
  FUCINA_RETURN_IF_ERROR(registrar.Add(RecyclingKind()));
  return registrar.Add(CascadeKind());
}

}  // namespace
}  // namespace fucina::spec

FUCINA_PLUGIN(spec, "0.1.0", "MIT", &fucina::spec::Register)
