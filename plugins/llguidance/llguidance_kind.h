#ifndef FUCINA_PLUGINS_LLGUIDANCE_LLGUIDANCE_KIND_H_
#define FUCINA_PLUGINS_LLGUIDANCE_LLGUIDANCE_KIND_H_

// The constraint llguidance and its options.

#include "fucina/plugin/registrar.h"

namespace fucina::llguidance {

const ConstraintKind& LlguidanceKind();

}  // namespace fucina::llguidance

#endif  // FUCINA_PLUGINS_LLGUIDANCE_LLGUIDANCE_KIND_H_
