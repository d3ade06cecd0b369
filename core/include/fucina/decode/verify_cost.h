#ifndef FUCINA_DECODE_VERIFY_COST_H_
#define FUCINA_DECODE_VERIFY_COST_H_

// What a forward over the carried token and d drafted ones costs, in plain
// steps: C(d). A table is believed until this run has measured the same d
// itself; until then the whole table is scaled by what other verifications
// took.

#include <cstdint>
#include <utility>
#include <vector>

#include "fucina/export.h"

namespace fucina {

// (d, C(d)), ascending in d.
using VerifyCostTable = std::vector<std::pair<int, double>>;

class FUCINA_API VerifyCost {
 public:
  // REQUIRES: the table is not empty; d >= 1 and C >= 1, d strictly ascending.
  explicit VerifyCost(VerifyCostTable table);

  // A plain step took `ns`; 0 when nobody measured.
  void RecordPlain(std::int64_t ns);
  // A forward that verified `drafted` tokens of one sequence took `ns`.
  void RecordVerify(int drafted, std::int64_t ns);

  // C(drafted) as it is believed now, at least 1. Among `together` sequences
  // in lockstep all wait for the rows that one of them adds; the cost is then
  // that of all their waiting, in steps of one.
  double Of(int drafted, int together = 1) const;
  // `ns` in plain steps; 0 while no plain step was measured.
  double InSteps(std::int64_t ns) const;
  bool knows_plain() const { return plain_ns_ > 0; }

 private:
  struct Measured {
    double cost = 0;
    int count = 0;
  };

  // Linear between the points, from C(0) = 1 on and beyond the last.
  double FromTable(double drafted) const;

  VerifyCostTable table_;
  std::vector<Measured> measured_;  // by d
  double plain_ns_ = 0;
  double scale_ = 1;
};

}  // namespace fucina

#endif  // FUCINA_DECODE_VERIFY_COST_H_
