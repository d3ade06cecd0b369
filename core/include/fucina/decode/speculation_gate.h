#ifndef FUCINA_DECODE_SPECULATION_GATE_H_
#define FUCINA_DECODE_SPECULATION_GATE_H_

// Is drafting worth it now? A forward over 1 + d rows costs more than one over
// a single row; the gate compares what it costs with the tokens it brings, and
// turns drafting off where it loses, to try again later. One gate serves one
// sequence. It decides about time and never about tokens.
//
// Costs are in plain steps: C(d) from a table, scaled by what verifications of
// this run took. Over the last verifications the gate estimates committed
// tokens per plain step's worth of time; below one it closes, and probes again
// after a pause that doubles with every failure. Besides, an account bounds
// what may be lost in all.

#include <cstdint>
#include <utility>
#include <vector>

#include "fucina/export.h"

namespace fucina {

struct SpeculationGateOptions {
  // Cost of verifying d drafted tokens, in plain steps, ascending in d; linear
  // between the points and constant beyond them.
  std::vector<std::pair<int, double>> cost_table = {
      {2, 1.65}, {4, 1.42}, {8, 2.84}, {16, 4.5}};
  int window = 16;             // verifications that the estimate looks at, >= 2
  int min_window_drafted = 8;  // drafted tokens in it before it is believed
  double min_speedup = 1.0;
  double probe_margin = 0.10;  // a probe must beat min_speedup by this
  int reprobe_after = 128;     // steps off before the first probe, >= 1
  int reprobe_max = 1024;      // and before any
  int probe_steps = 4;         // verifications of a probe, >= 1
  // The account: what drafting may have lost at any time, in plain steps, is
  // loss_allowance + loss_share * steps taken.
  double loss_allowance = 4;
  double loss_share = 0.01;
  // Drafts whatever it costs; for measurements and tests.
  bool always_on = false;
};

class FUCINA_API SpeculationGate {
 public:
  // REQUIRES: the table is not empty; window and step counts as above.
  explicit SpeculationGate(const SpeculationGateOptions& options);

  // Whether this step may draft. Call it once a step: steps that were refused
  // are what leads to the next probe.
  bool Allows();
  // How many tokens are worth drafting, by how many were accepted lately: at
  // least 2 and at most `max_draft`.
  int Budget(int max_draft) const;

  // A forward over one row took `ns`; 0 when nobody measured.
  void RecordPlain(std::int64_t ns);
  // Asking the drafter took `ns` and brought nothing.
  void RecordNothing(std::int64_t ns);
  // Drafting and the forward over 1 + drafted rows took `ns` (0: nobody
  // measured) and committed 1 + accepted tokens.
  void RecordVerify(int drafted, int accepted, std::int64_t ns);
  // The same with a cost in plain steps that somebody else knows.
  void RecordCost(int drafted, int accepted, double cost);

  // C(drafted) as it is believed now, in plain steps.
  double Cost(int drafted) const;
  bool is_on() const { return state_ == State::kOn; }

 private:
  enum class State { kOn, kOff, kProbing };
  struct Entry {
    int committed = 0;
    int accepted = 0;
    int drafted = 0;
    double cost = 0;
  };

  double TableCost(int drafted) const;
  // Committed tokens per plain step over the window.
  double Estimate() const;
  bool Evaluable() const;
  bool Overdrawn() const;
  void TurnOff(int backoff);
  void Clear();

  SpeculationGateOptions options_;
  State state_ = State::kOn;
  std::vector<Entry> entries_;  // ring of the last `window`
  std::size_t next_ = 0;
  int count_ = 0;
  int off_steps_ = 0;
  int backoff_ = 0;
  int probe_left_ = 0;
  double plain_ns_ = 0;
  double scale_ = 1;
  double credit_ = 0;  // plain steps gained, less those lost
  std::int64_t steps_ = 0;
};

}  // namespace fucina

#endif  // FUCINA_DECODE_SPECULATION_GATE_H_
