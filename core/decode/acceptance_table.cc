#include "fucina/decode/acceptance_table.h"

#include <algorithm>

#include "fucina/diag/check.h"

namespace fucina {
namespace {

// A class nobody has seen yet: an even chance, of the weight of so many trials.
constexpr double kFirstChance = 0.5;
constexpr double kPriorTrials = 2;
// An old trial counts less with every new one, about this many are remembered.
constexpr double kMemory = 24;

}  // namespace

void AcceptanceTable::Record(int draft_class, int right, int decided) {
  FUCINA_CHECK(right >= 0 && right <= decided && decided <= right + 1)
      << right << " of " << decided;
  auto& places = places_[static_cast<std::size_t>(
      std::clamp(draft_class, 0, kMaxDraftClasses - 1))];
  for (int i = 0; i < std::min(decided, kPlaces); ++i) {
    Place& place = places[static_cast<std::size_t>(i)];
    place.tried += 1 - place.tried / kMemory;
    place.right += (i < right ? 1 : 0) - place.right / kMemory;
  }
}

double AcceptanceTable::Chance(int draft_class, int place) const {
  const auto& places = places_[static_cast<std::size_t>(
      std::clamp(draft_class, 0, kMaxDraftClasses - 1))];
  double chance = kFirstChance;
  for (int i = 0; i <= std::min(place, kPlaces - 1); ++i) {
    const Place& tried = places[static_cast<std::size_t>(i)];
    chance =
        (tried.right + kPriorTrials * chance) / (tried.tried + kPriorTrials);
  }
  return chance;
}

}  // namespace fucina
