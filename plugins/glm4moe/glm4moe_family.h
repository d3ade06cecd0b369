#ifndef FUCINA_PLUGINS_GLM4MOE_GLM4MOE_FAMILY_H_
#define FUCINA_PLUGINS_GLM4MOE_GLM4MOE_FAMILY_H_

// What is particular to GLM-4.5, GLM-4.5-Air and GLM-4.6 (architecture
// glm4moe), said as data and run by the descriptor runner. Source: GLM-4.5
// technical report, arXiv 2508.06471, and the published configurations.

#include "fucina/plugin/registrar.h"

namespace fucina::glm4moe {

// A descriptor with static storage.
const Family& Glm4MoeFamily();

}  // namespace fucina::glm4moe

#endif  // FUCINA_PLUGINS_GLM4MOE_GLM4MOE_FAMILY_H_
