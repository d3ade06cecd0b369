#include "fucina/ops/routing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "fucina/diag/check.h"

namespace fucina::ops {
namespace {

constexpr int kMaxExperts = 4096;
constexpr int kMaxUsed = 64;
// The least sum that weights are divided by.
constexpr float kMinSum = 0x1p-14F;

// p[e] of every expert; in f64 up to the last rounding.
void Gate(const RoutingRule& rule, const float* logits, float* p) {
  const int n = rule.num_experts;
  if (rule.gate == RoutingGate::kSigmoid) {
    for (int e = 0; e < n; ++e) {
      p[e] = static_cast<float>(1.0 / (1.0 + std::exp(-double{logits[e]})));
    }
    return;
  }
  const float max = *std::max_element(logits, logits + n);
  float sum = 0;
  for (int e = 0; e < n; ++e) {
    p[e] = static_cast<float>(std::exp(double{logits[e]} - double{max}));
    sum += p[e];
  }
  for (int e = 0; e < n; ++e) p[e] /= sum;
}

void KeepTopP(float top_p, int used, std::int32_t* experts, float* weights) {
  std::array<int, kMaxUsed> order;
  float total = 0;
  for (int j = 0; j < used; ++j) {
    order[static_cast<std::size_t>(j)] = j;
    total += weights[j];
  }
  std::sort(order.begin(), order.begin() + used, [weights](int a, int b) {
    return weights[a] != weights[b] ? weights[a] > weights[b] : a < b;
  });
  float kept = 0;
  int count = 0;
  while (count < used) {
    kept += weights[order[static_cast<std::size_t>(count)]];
    ++count;
    if (kept >= top_p * total) break;
  }
  if (count == used || !(kept > 0)) return;
  const float factor = total / kept;
  const std::int32_t first = experts[order[0]];
  for (int i = 0; i < used; ++i) {
    const int j = order[static_cast<std::size_t>(i)];
    if (i < count) {
      weights[j] *= factor;
    } else {
      experts[j] = first;
      weights[j] = 0;
    }
  }
}

void RouteRow(const RoutingRule& rule, const float* logits,
              std::span<const float> bias, std::int32_t* experts,
              float* weights) {
  const int n = rule.num_experts;
  const int used = rule.num_experts_used;
  std::array<float, kMaxExperts> p;
  std::array<float, kMaxExperts> chosen_by;
  Gate(rule, logits, p.data());
  bool any_nan = false;
  for (int e = 0; e < n; ++e) {
    const auto at = static_cast<std::size_t>(e);
    chosen_by[at] = bias.empty() ? p[at] : p[at] + bias[at];
    any_nan = any_nan || std::isnan(chosen_by[at]) || std::isnan(p[at]);
  }
  if (any_nan) {  // no order to speak of; the NaN must not get lost
    for (int j = 0; j < used; ++j) {
      experts[j] = j;
      weights[j] = std::numeric_limits<float>::quiet_NaN();
    }
    return;
  }
  std::array<std::int32_t, kMaxExperts> order;
  for (int e = 0; e < n; ++e) order[static_cast<std::size_t>(e)] = e;
  std::partial_sort(order.begin(), order.begin() + used, order.begin() + n,
                    [&chosen_by](std::int32_t a, std::int32_t b) {
                      const float va = chosen_by[static_cast<std::size_t>(a)];
                      const float vb = chosen_by[static_cast<std::size_t>(b)];
                      return va != vb ? va > vb : a < b;
                    });
  float sum = 0;
  for (int j = 0; j < used; ++j) {
    experts[j] = order[static_cast<std::size_t>(j)];
    weights[j] = p[static_cast<std::size_t>(experts[j])];
    sum += weights[j];
  }
  if (rule.normalize) {
    const float divisor = std::max(sum, kMinSum);
    for (int j = 0; j < used; ++j) weights[j] /= divisor;
  }
  for (int j = 0; j < used; ++j) weights[j] *= rule.scale;
  if (rule.top_p < 1.0F) KeepTopP(rule.top_p, used, experts, weights);
}

}  // namespace

void Route(const RoutingRule& rule, const Tensor& logits,
           std::span<const float> bias, std::span<std::int32_t> experts,
           std::span<float> weights) {
  FUCINA_CHECK_GE(rule.num_experts_used, 1);
  FUCINA_CHECK_LE(rule.num_experts_used, std::min(rule.num_experts, kMaxUsed));
  FUCINA_CHECK_LE(rule.num_experts, kMaxExperts);
  FUCINA_CHECK(logits.dtype() == DType::kF32);
  FUCINA_CHECK_EQ(logits.row_size(), rule.num_experts);
  if (!bias.empty()) {
    FUCINA_CHECK_EQ(bias.size(), static_cast<std::size_t>(rule.num_experts));
  }
  const auto used = static_cast<std::size_t>(rule.num_experts_used);
  const auto rows = static_cast<std::size_t>(logits.num_rows());
  FUCINA_CHECK_EQ(experts.size(), rows * used);
  FUCINA_CHECK_EQ(weights.size(), rows * used);
  for (std::size_t i = 0; i < rows; ++i) {
    RouteRow(rule, logits.row_f32(static_cast<std::int64_t>(i)), bias,
             experts.data() + i * used, weights.data() + i * used);
  }
}

}  // namespace fucina::ops
