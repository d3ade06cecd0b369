#include "fucina/decode/speculation_gate.h"

#include <algorithm>
#include <limits>

#include "fucina/diag/check.h"

namespace fucina {
namespace {

constexpr int kMinBudget = 2;
// Weights of a new sample; one stall of the machine moves a cost by a fifth.
constexpr double kPlainWeight = 0.25;
constexpr double kScaleWeight = 0.2;
constexpr double kMinScale = 0.25;
constexpr double kMaxScale = 4;

}  // namespace

SpeculationGate::SpeculationGate(const SpeculationGateOptions& options)
    : options_(options) {
  FUCINA_CHECK(!options_.cost_table.empty());
  FUCINA_CHECK_GE(options_.window, 2);
  FUCINA_CHECK_GE(options_.reprobe_after, 1);
  FUCINA_CHECK_GE(options_.reprobe_max, 1);
  FUCINA_CHECK_GE(options_.probe_steps, 1);
  entries_.resize(static_cast<std::size_t>(options_.window));
}

double SpeculationGate::TableCost(int drafted) const {
  const auto& table = options_.cost_table;
  const auto above =
      std::find_if(table.begin(), table.end(),
                   [&](const auto& point) { return point.first >= drafted; });
  if (above == table.end()) return table.back().second;
  if (above == table.begin() || above->first == drafted) return above->second;
  const auto below = above - 1;
  const double share = static_cast<double>(drafted - below->first) /
                       (above->first - below->first);
  return below->second + share * (above->second - below->second);
}

double SpeculationGate::Cost(int drafted) const {
  return std::max(scale_ * TableCost(drafted), 1.0);
}

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

bool SpeculationGate::Overdrawn() const {
  return credit_ < -(options_.loss_allowance +
                     options_.loss_share * static_cast<double>(steps_));
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
  if (options_.always_on || state_ != State::kOff) return true;
  if (++off_steps_ < backoff_ || Overdrawn()) return false;
  state_ = State::kProbing;
  probe_left_ = options_.probe_steps;
  Clear();
  return true;
}

int SpeculationGate::Budget(int max_draft) const {
  int accepted = 0;
  int drafted = 0;
  for (int i = 0; i < count_; ++i) {
    accepted += entries_[i].accepted;
    drafted += entries_[i].drafted;
  }
  if (drafted == 0 || options_.always_on) return max_draft;
  const int worth = kMinBudget + (accepted * max_draft + drafted - 1) / drafted;
  return std::min(max_draft, worth);
}

void SpeculationGate::RecordPlain(std::int64_t ns) {
  if (ns <= 0) return;
  const double sample = static_cast<double>(ns);
  plain_ns_ = plain_ns_ == 0
                  ? sample
                  : kPlainWeight * sample + (1 - kPlainWeight) * plain_ns_;
}

void SpeculationGate::RecordNothing(std::int64_t ns) {
  if (plain_ns_ > 0) credit_ -= static_cast<double>(ns) / plain_ns_;
  if (state_ != State::kOff && Overdrawn() && !options_.always_on) {
    TurnOff(options_.reprobe_after);
  }
}

void SpeculationGate::RecordVerify(int drafted, int accepted, std::int64_t ns) {
  if (ns > 0 && plain_ns_ > 0) {
    const double measured = std::max(static_cast<double>(ns) / plain_ns_, 1.0);
    const double sample =
        std::clamp(measured / TableCost(drafted), kMinScale, kMaxScale);
    scale_ = std::clamp(kScaleWeight * sample + (1 - kScaleWeight) * scale_,
                        kMinScale, kMaxScale);
  }
  RecordCost(drafted, accepted, Cost(drafted));
}

void SpeculationGate::RecordCost(int drafted, int accepted, double cost) {
  const Entry entry = {.committed = accepted + 1,
                       .accepted = accepted,
                       .drafted = drafted,
                       .cost = cost};
  entries_[next_] = entry;
  next_ = (next_ + 1) % entries_.size();
  count_ = std::min(count_ + 1, options_.window);
  // Gains of the past do not buy a long loss.
  credit_ =
      std::min(credit_ + entry.committed - entry.cost, options_.loss_allowance);
  if (options_.always_on) return;

  const bool loses = Evaluable() && Estimate() < options_.min_speedup;
  if (state_ == State::kOn) {
    if (loses || Overdrawn()) TurnOff(options_.reprobe_after);
    return;
  }
  if (state_ != State::kProbing) return;
  --probe_left_;
  if (loses || Overdrawn()) {
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
