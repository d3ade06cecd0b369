#include "registry/draft_costs.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "fucina/diag/printable.h"

namespace fucina {

absl::StatusOr<VerifyCostTable> ParseDraftCosts(absl::string_view text) {
  constexpr int kMostDrafted = 1024;
  constexpr double kMostCost = 1000;
  VerifyCostTable table;
  int before = 0;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(part, absl::MaxSplits(':', 1));
    int drafted = 0;
    double cost = 0;
    // Not a number fails every comparison.
    if (!absl::SimpleAtoi(sides.first, &drafted) || drafted <= before ||
        drafted > kMostDrafted || !absl::SimpleAtod(sides.second, &cost) ||
        !(cost >= 1 && cost <= kMostCost)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "expected DRAFTED:COST,… with DRAFTED ascending from 1 to ",
          kMostDrafted, " and COST from 1 to ", kMostCost,
          ", such as 1:1.05,4:1.3; found '", Printable(part), "'"));
    }
    table.emplace_back(drafted, cost);
    before = drafted;
  }
  return table;
}

}  // namespace fucina
