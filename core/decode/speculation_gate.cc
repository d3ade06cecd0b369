#include "fucina/decode/speculation_gate.h"

#include <algorithm>
#include <limits>

#include "fucina/diag/check.h"

namespace fucina {
namespace {

constexpr double kAskWeight = 0.25;  // of a new sample
// Gains of the past do not buy a long loss: the account holds no more.
constexpr double kMostCredit = 4;

// A verification that takes so many times as long as believed is a stall.
constexpr double kStall = 4;

}  // namespace

SpeculationGate::SpeculationGate(const SpeculationGateOptions& options)
    : options_(options), cost_(options.cost_table) {
  FUCINA_CHECK_GE(options_.window, 2);
  FUCINA_CHECK_GE(options_.reprobe_after, 1);
  FUCINA_CHECK_GE(options_.reprobe_max, 1);
  FUCINA_CHECK_GE(options_.probe_steps, 1);
  entries_.resize(static_cast<std::size_t>(options_.window));
}

// --- the account ------------------------------------------------------------

double SpeculationGate::Reserve() const {
  return credit_ + options_.loss_allowance +
         options_.loss_share * static_cast<double>(steps_);
}

void SpeculationGate::Book(double gain) {
  saved_ += gain;
  credit_ = std::min(credit_ + gain, kMostCredit);
}

// --- how far ----------------------------------------------------------------

int SpeculationGate::Choose(int draft_class, int offered) const {
  if (options_.always_on) return offered;
  const double reserve = Reserve();
  double best = options_.min_speedup + options_.margin;
  int chosen = 0;
  double tokens = 1;
  double chance = 1;
  for (int drafted = 1; drafted <= offered; ++drafted) {
    chance *= chances_.Chance(draft_class, drafted - 1);
    tokens += chance;
    const double cost = cost_.Of(drafted, together_);
    // Even when all of it is wrong the account can bear it.
    if (cost - 1 > reserve) continue;
    if (tokens / cost > best) {
      best = tokens / cost;
      chosen = drafted;
    }
  }
  return chosen;
}

// --- drafters that take time ------------------------------------------------

bool SpeculationGate::Evaluable() const {
  int drafted = 0;
  for (int i = 0; i < count_; ++i) drafted += entries_[i].drafted;
  return count_ >= 2 && drafted >= options_.min_window_drafted;
}

double SpeculationGate::Estimate() const {
  double committed = 0;
  double cost = 0;
  for (int i = 0; i < count_; ++i) {
    committed += entries_[i].committed;
    cost += entries_[i].cost;
  }
  return count_ == 0 ? std::numeric_limits<double>::infinity()
                     : committed / cost;
}

void SpeculationGate::Clear() {
  next_ = 0;
  count_ = 0;
}

void SpeculationGate::TurnOff(int backoff) {
  state_ = State::kOff;
  backoff_ = std::min(backoff, options_.reprobe_max);
  off_steps_ = 0;
  Clear();
}

bool SpeculationGate::Allows() {
  ++steps_;
  if (options_.always_on || ask_share_ <= options_.cheap_share) return true;
  const bool affordable = ask_share_ <= Reserve();
  if (state_ == State::kOff) {
    if (++off_steps_ < backoff_ || !affordable) return false;
    state_ = State::kProbing;
    probe_left_ = options_.probe_steps;
    Clear();
    return true;
  }
  if (!affordable) {
    TurnOff(state_ == State::kProbing ? 2 * backoff_ : options_.reprobe_after);
  }
  return affordable;
}

void SpeculationGate::RecordAsked(std::int64_t ns) {
  // Everybody who shares the forwards waits.
  const double share = cost_.InSteps(ns) * together_;
  ask_share_ += kAskWeight * (share - ask_share_);
  Book(-share);
}

void SpeculationGate::RecordVerify(int draft_class, int drafted, int accepted,
                                   int decided, std::int64_t ns) {
  chances_.Record(draft_class, accepted, decided);
  const double believed = cost_.Of(drafted, together_);
  cost_.RecordVerify(drafted, ns);
  // One that took far longer than believed is booked so, within reason: more
  // is a stall of the machine.
  const double measured = std::min(cost_.InSteps(ns), kStall * believed);
  RecordCost(drafted, accepted,
             std::max(measured, cost_.Of(drafted, together_)));
}

void SpeculationGate::RecordCost(int drafted, int accepted, double cost) {
  entries_[next_] = {.committed = accepted + 1,
                     .accepted = accepted,
                     .drafted = drafted,
                     .cost = cost + ask_share_};
  next_ = (next_ + 1) % entries_.size();
  count_ = std::min(count_ + 1, options_.window);
  Book(accepted + 1 - cost);
  if (options_.always_on) return;

  const bool loses = Evaluable() && Estimate() < options_.min_speedup;
  if (state_ == State::kOn) {
    if (loses) TurnOff(options_.reprobe_after);
    return;
  }
  if (state_ != State::kProbing) return;
  --probe_left_;
  if (loses) {
    TurnOff(2 * backoff_);
  } else if (probe_left_ <= 0) {
    if (Estimate() >= options_.min_speedup + options_.probe_margin) {
      state_ = State::kOn;
    } else {
      TurnOff(2 * backoff_);
    }
  }
}

}  // namespace fucina
