#ifndef FUCINA_REGISTRY_DRAFT_COSTS_H_
#define FUCINA_REGISTRY_DRAFT_COSTS_H_

// The text form of a cost table, as --spec-bench prints it: "1:1.05,4:1.3".

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/decode/verify_cost.h"

namespace fucina {

// InvalidArgument, naming the part that is wrong, unless `text` is a list of
// DRAFTED:COST with DRAFTED ascending from 1 on and COST from 1 to 1000.
absl::StatusOr<VerifyCostTable> ParseDraftCosts(absl::string_view text);

}  // namespace fucina

#endif  // FUCINA_REGISTRY_DRAFT_COSTS_H_
