#ifndef FUCINA_CLI_CONSTRAINT_FIGURES_H_
#define FUCINA_CLI_CONSTRAINT_FIGURES_H_

// What a constraint did for a reply and what it cost.

#include <string>

#include "fucina/decode/generator.h"

namespace fucina::cli {

// "42 masks, 31 us each (p99 180 us, max 210 us), 12 tokens forced, complete".
// `complete`: whether the reply satisfies it.
std::string ConstraintFigures(const GenerationStats& stats, bool complete);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_CONSTRAINT_FIGURES_H_
