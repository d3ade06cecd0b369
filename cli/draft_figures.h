#ifndef FUCINA_CLI_DRAFT_FIGURES_H_
#define FUCINA_CLI_DRAFT_FIGURES_H_

// How well drafting went, in one line.

#include <string>

#include "fucina/contract/drafter.h"
#include "fucina/decode/generator.h"

namespace fucina::cli {

// "5/8 accepted (62 %), 1.83 tokens per forward", then what verifying cost,
// what the gate refused and what the drafter says of itself.
std::string DraftFigures(const GenerationStats& stats, const Drafter& drafter);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_DRAFT_FIGURES_H_
