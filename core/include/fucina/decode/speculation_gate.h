#ifndef FUCINA_DECODE_SPECULATION_GATE_H_
#define FUCINA_DECODE_SPECULATION_GATE_H_

// Is drafting worth it now, and how far? A forward over 1 + d rows costs more
// than one over a single row. The gate knows what it costs, C(d), and how often
// drafts of each class were right, and has so many of them verified as bring
// the most tokens per plain step's worth of time; none where plain steps bring
// more. One gate serves one sequence. It decides about time and never about
// tokens.
//
// A draft that is not verified is compared with the tokens that come anyway,
// which costs nothing: that is how the gate finds out that drafting would pay
// again. A drafter that itself takes a noticeable part of a step cannot be
// watched for free; it is asked only while the last verifications gained,
// and tried again after a pause that doubles with every failure.
//
// Besides, an account bounds what may be lost in all, whatever was believed.

#include <cstdint>
#include <vector>

#include "fucina/decode/acceptance_table.h"
#include "fucina/decode/verify_cost.h"
#include "fucina/export.h"

namespace fucina {

struct SpeculationGateOptions {
  int max_draft = 16;  // drafted tokens per forward, >= 1
  // Until this run has measured its own: a dense model of a few hundred
  // megabytes on two cores (docs/drafting.md).
  VerifyCostTable cost_table = {{1, 1.05}, {2, 1.1},  {3, 1.15}, {4, 1.4},
                                {6, 1.65}, {8, 1.85}, {12, 2.2}, {16, 2.5}};
  // A draft must promise so much more than plain steps.
  double margin = 0.03;
  // The account: what drafting may have lost at any time, in plain steps, is
  // loss_allowance + loss_share * steps taken.
  double loss_allowance = 1;
  double loss_share = 0.005;
  // A drafter that takes less than this share of a step is always asked.
  double cheap_share = 0.005;

  // For drafters that take more:
  int window = 16;             // verifications that the estimate looks at, >= 2
  int min_window_drafted = 8;  // drafted tokens in it before it is believed
  double min_speedup = 1.0;
  double probe_margin = 0.10;  // a probe must beat min_speedup by this
  int reprobe_after = 128;     // steps off before the first probe, >= 1
  int reprobe_max = 1024;      // and before any
  int probe_steps = 4;         // verifications of a probe, >= 1

  // Drafts whatever it costs; for measurements and tests.
  bool always_on = false;
};

class FUCINA_API SpeculationGate {
 public:
  // REQUIRES: the table as VerifyCost wants it; window and step counts as
  // above.
  explicit SpeculationGate(const SpeculationGateOptions& options);

  // How many sequences share the forwards, this one included; 1 at first.
  void set_together(int together) { together_ = together; }

  // Whether the drafter is asked at this step. Call it once a step.
  bool Allows();
  // Of `offered` drafted tokens of that class, how many to verify; 0 for none.
  int Choose(int draft_class, int offered) const;

  // A forward over one row took `ns`; 0 when nobody measured.
  void RecordPlain(std::int64_t ns) { cost_.RecordPlain(ns); }
  // Asking the drafter took `ns`.
  void RecordAsked(std::int64_t ns);
  // The forward over 1 + drafted rows took `ns` (0: nobody measured) and
  // committed 1 + accepted tokens; the fate of `decided` drafted tokens is
  // known. REQUIRES: accepted <= decided <= accepted + 1.
  void RecordVerify(int draft_class, int drafted, int accepted, int decided,
                    std::int64_t ns);
  // A draft that nobody verified: `right` of its first `decided` tokens came.
  void RecordUnverified(int draft_class, int right, int decided) {
    chances_.Record(draft_class, right, decided);
  }
  // What RecordVerify makes of a verification, at a cost in plain steps.
  void RecordCost(int drafted, int accepted, double cost);

  const VerifyCost& cost() const { return cost_; }
  bool always_on() const { return options_.always_on; }
  bool is_on() const { return state_ == State::kOn; }
  // Plain steps gained by drafting so far; below 0 for a loss.
  double saved() const { return saved_; }

 private:
  enum class State { kOn, kOff, kProbing };
  struct Entry {
    int committed = 0;
    int accepted = 0;
    int drafted = 0;
    double cost = 0;
  };

  // Plain steps that the account can still lose.
  double Reserve() const;
  void Book(double gain);
  // Committed tokens per plain step over the window.
  double Estimate() const;
  bool Evaluable() const;
  void TurnOff(int backoff);
  void Clear();

  SpeculationGateOptions options_;
  VerifyCost cost_;
  AcceptanceTable chances_;
  int together_ = 1;
  double ask_share_ = 0;  // of a plain step, to ask the drafter
  double credit_ = 0;     // plain steps gained, less those lost
  double saved_ = 0;
  std::int64_t steps_ = 0;

  State state_ = State::kOn;
  std::vector<Entry> entries_;  // ring of the last `window`
  std::size_t next_ = 0;
  int count_ = 0;
  int off_steps_ = 0;
  int backoff_ = 0;
  int probe_left_ = 0;
};

}  // namespace fucina

#endif  // FUCINA_DECODE_SPECULATION_GATE_H_
