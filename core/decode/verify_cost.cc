#include "fucina/decode/verify_cost.h"

#include <algorithm>
#include <cstddef>

#include "fucina/diag/check.h"

namespace fucina {
namespace {

// Weights of a new sample; one stall of the machine moves a cost by a fifth.
constexpr double kPlainWeight = 0.25;
constexpr double kScaleWeight = 0.2;
constexpr double kMinScale = 0.25;
constexpr double kMaxScale = 4;
// So many samples of one d say more than the table.
constexpr int kEnoughSamples = 4;
constexpr std::size_t kMeasuredDrafts = 65;

}  // namespace

VerifyCost::VerifyCost(VerifyCostTable table)
    : table_(std::move(table)), measured_(kMeasuredDrafts) {
  FUCINA_CHECK(!table_.empty());
  int before = 0;
  for (const auto& [drafted, cost] : table_) {
    FUCINA_CHECK(drafted > before && cost >= 1) << drafted << ": " << cost;
    before = drafted;
  }
}

double VerifyCost::FromTable(double drafted) const {
  std::pair<int, double> below = {0, 1.0};
  std::pair<int, double> above = table_.front();
  for (std::size_t i = 1; i < table_.size() && above.first < drafted; ++i) {
    below = above;
    above = table_[i];
  }
  const double slope =
      (above.second - below.second) / (above.first - below.first);
  return std::max(below.second + slope * (drafted - below.first), 1.0);
}

void VerifyCost::RecordPlain(std::int64_t ns) {
  if (ns <= 0) return;
  const double sample = static_cast<double>(ns);
  plain_ns_ = plain_ns_ == 0
                  ? sample
                  : kPlainWeight * sample + (1 - kPlainWeight) * plain_ns_;
}

void VerifyCost::RecordVerify(int drafted, std::int64_t ns) {
  if (ns <= 0 || plain_ns_ == 0) return;
  const double cost = std::max(InSteps(ns), 1.0);
  const double sample =
      std::clamp(cost / FromTable(drafted), kMinScale, kMaxScale);
  scale_ = std::clamp(kScaleWeight * sample + (1 - kScaleWeight) * scale_,
                      kMinScale, kMaxScale);
  if (static_cast<std::size_t>(drafted) >= measured_.size()) return;
  Measured& own = measured_[static_cast<std::size_t>(drafted)];
  ++own.count;
  const double weight = std::max(1.0 / own.count, kScaleWeight);
  const double most = kMaxScale * (own.count > 1 ? own.cost : Of(drafted));
  own.cost += weight * (std::min(cost, most) - own.cost);
}

double VerifyCost::Of(int drafted, int together) const {
  if (together > 1) {
    const double rows = together - 1;
    const double before = FromTable(rows);
    const double longer =
        std::max(FromTable(rows + drafted) - before, 0.0) / before;
    return 1 + scale_ * together * longer;
  }
  const auto place = static_cast<std::size_t>(drafted);
  if (place < measured_.size() && measured_[place].count >= kEnoughSamples) {
    return std::max(measured_[place].cost, 1.0);
  }
  return std::max(scale_ * FromTable(drafted), 1.0);
}

double VerifyCost::InSteps(std::int64_t ns) const {
  return plain_ns_ == 0 ? 0 : static_cast<double>(ns) / plain_ns_;
}

}  // namespace fucina
