// Registers the constraint llguidance: JSON schemas, Lark grammars and regular
// expressions.

#include "fucina/plugin/manifest.h"
#include "llguidance_kind.h"

namespace fucina::llguidance {
namespace {

absl::Status Register(Registrar& registrar) {
  return registrar.Add(LlguidanceKind());
}

}  // namespace
}  // namespace fucina::llguidance

FUCINA_PLUGIN(llguidance, "0.1.0", "MIT", &fucina::llguidance::Register)
