#ifndef FUCINA_DECODE_ACCEPTANCE_TABLE_H_
#define FUCINA_DECODE_ACCEPTANCE_TABLE_H_

// How often drafted tokens were right lately, by the class of the draft and the
// place in it: the probability that a token is right when all before it in the
// draft were. A place that was seldom tried is believed to be as good as the
// one before it.

#include <array>
#include <vector>

#include "fucina/contract/drafter.h"
#include "fucina/export.h"

namespace fucina {

class FUCINA_API AcceptanceTable {
 public:
  AcceptanceTable() : places_(kMaxDraftClasses) {}

  // Of a draft, the fate of the first `decided` tokens is known and the first
  // `right` of them were right. REQUIRES: 0 <= right <= decided <= right + 1.
  void Record(int draft_class, int right, int decided);

  // P(token `place` is right | those before it were), in (0, 1).
  double Chance(int draft_class, int place) const;

 private:
  struct Place {
    double right = 0;
    double tried = 0;
  };
  static constexpr int kPlaces = 32;  // later ones count as the last

  std::vector<std::array<Place, kPlaces>> places_;  // by class
};

}  // namespace fucina

#endif  // FUCINA_DECODE_ACCEPTANCE_TABLE_H_
