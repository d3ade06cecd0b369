#include "fucina/ops/routing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fucina::ops {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

struct Routed {
  std::vector<std::int32_t> experts;
  std::vector<float> weights;
};

Routed RouteOne(const RoutingRule& rule, std::vector<float> logits,
                std::vector<float> bias = {}) {
  Routed routed;
  const std::int64_t rows =
      static_cast<std::int64_t>(logits.size()) / rule.num_experts;
  routed.experts.resize(static_cast<std::size_t>(rows * rule.num_experts_used));
  routed.weights.resize(routed.experts.size());
  Route(rule, Tensor(DType::kF32, {rows, rule.num_experts}, logits.data()),
        bias, routed.experts, routed.weights);
  return routed;
}

TEST(Route, SoftmaxOverAllThenRenormalized) {
  const RoutingRule rule{.num_experts = 4, .num_experts_used = 2};
  // exp: 1, e, e^3, e^2
  const Routed routed = RouteOne(rule, {0, 1, 3, 2});
  EXPECT_THAT(routed.experts, ElementsAre(2, 3));
  const float share = 1.0F / (1.0F + std::exp(-1.0F));
  EXPECT_THAT(routed.weights, ElementsAre(FloatNear(share, 1e-6F),
                                          FloatNear(1 - share, 1e-6F)));
}

TEST(Route, WithoutNormalizingWeightsAreProbabilities) {
  const RoutingRule rule{
      .num_experts = 2, .num_experts_used = 1, .normalize = false};
  const Routed routed = RouteOne(rule, {std::log(3.0F), 0});
  EXPECT_THAT(routed.experts, ElementsAre(0));
  EXPECT_THAT(routed.weights, ElementsAre(FloatNear(0.75F, 1e-6F)));
}

TEST(Route, TiesGoToTheLowerIndex) {
  const RoutingRule rule{.num_experts = 6, .num_experts_used = 3};
  EXPECT_THAT(RouteOne(rule, {1, 2, 2, 1, 2, 2}).experts, ElementsAre(1, 2, 4));
  EXPECT_THAT(RouteOne(rule, {0, 0, 0, 0, 0, 0}).experts, ElementsAre(0, 1, 2));
}

TEST(Route, BiasChoosesButDoesNotWeigh) {
  const RoutingRule rule{.gate = RoutingGate::kSigmoid,
                         .num_experts = 3,
                         .num_experts_used = 2,
                         .normalize = false,
                         .scale = 2.0F};
  const Routed routed = RouteOne(rule, {0, 1, -1}, {0, 0, 5});
  EXPECT_THAT(routed.experts, ElementsAre(2, 1));
  const float p2 = 1.0F / (1.0F + std::exp(1.0F));
  const float p1 = 1.0F / (1.0F + std::exp(-1.0F));
  EXPECT_THAT(routed.weights,
              ElementsAre(FloatNear(2 * p2, 1e-6F), FloatNear(2 * p1, 1e-6F)));
}

TEST(Route, SumOfAlmostNothingIsNotBlownUp) {
  const RoutingRule rule{
      .gate = RoutingGate::kSigmoid, .num_experts = 2, .num_experts_used = 2};
  const Routed routed = RouteOne(rule, {-20, -20});
  const float p = 1.0F / (1.0F + std::exp(20.0F));
  EXPECT_THAT(routed.weights,
              Pointwise(FloatNear(1e-9F), {p * 16384, p * 16384}));
}

TEST(Route, TopPKeepsTheShortestPrefixAndItsTotal) {
  RoutingRule rule{.gate = RoutingGate::kSigmoid,
                   .num_experts = 4,
                   .num_experts_used = 4,
                   .top_p = 0.6F};
  const auto logit = [](float p) { return std::log(p / (1 - p)); };
  // Slots by biased choice: experts 3, 0, 1, 2 with weights .1, .4, .3, .2.
  const Routed routed = RouteOne(
      rule, {logit(0.4F), logit(0.3F), logit(0.2F), logit(0.1F)}, {0, 0, 0, 1});
  EXPECT_THAT(routed.experts, ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(routed.weights, ElementsAre(0.0F, FloatNear(4.0F / 7, 1e-5F),
                                          FloatNear(3.0F / 7, 1e-5F), 0.0F));
  rule.top_p = 1.0F;
  EXPECT_THAT(
      RouteOne(rule, {logit(0.4F), logit(0.3F), logit(0.2F), logit(0.1F)},
               {0, 0, 0, 1})
          .experts,
      ElementsAre(3, 0, 1, 2));
}

TEST(Route, NanGivesValidExpertsAndNanWeights) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (RoutingGate gate : {RoutingGate::kSoftmax, RoutingGate::kSigmoid}) {
    const RoutingRule rule{
        .gate = gate, .num_experts = 3, .num_experts_used = 2, .top_p = 0.5F};
    const Routed routed = RouteOne(rule, {0, nan, 1, 0, 1, 2});
    EXPECT_THAT(std::vector<std::int32_t>(routed.experts.begin(),
                                          routed.experts.begin() + 2),
                ElementsAre(0, 1));
    EXPECT_TRUE(std::isnan(routed.weights[0]));
    EXPECT_TRUE(std::isnan(routed.weights[1]));
    // The next row does not notice.
    EXPECT_EQ(routed.experts[2], 2);
    EXPECT_TRUE(std::isfinite(routed.weights[2]));
  }
  const RoutingRule softmax{.num_experts = 2, .num_experts_used = 1};
  EXPECT_TRUE(std::isnan(RouteOne(softmax, {inf, 0}).weights[0]));
}

// Against the definition, worked out in f64 by full sorting.
TEST(Route, MatchesFullSortOnRandomRows) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (int trial = 0; trial < 50; ++trial) {
    const int n = 8 + static_cast<int>(random() % 120);
    const int used = 1 + static_cast<int>(random() % 8);
    const RoutingRule rule{.num_experts = n, .num_experts_used = used};
    std::vector<float> logits(static_cast<std::size_t>(n));
    for (float& l : logits) l = normal(random);
    const Routed routed = RouteOne(rule, logits);
    std::vector<int> order(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) order[static_cast<std::size_t>(i)] = i;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return logits[static_cast<std::size_t>(a)] >
             logits[static_cast<std::size_t>(b)];
    });
    double sum = 0;
    for (int j = 0; j < used; ++j) {
      sum += std::exp(double{logits[static_cast<std::size_t>(
          order[static_cast<std::size_t>(j)])]});
    }
    for (int j = 0; j < used; ++j) {
      const auto at = static_cast<std::size_t>(j);
      EXPECT_EQ(routed.experts[at], order[at]);
      EXPECT_NEAR(
          routed.weights[at],
          std::exp(double{logits[static_cast<std::size_t>(order[at])]}) / sum,
          1e-6);
    }
  }
}

TEST(RouteDeathTest, RefusesNonsense) {
  RoutingRule rule{.num_experts = 3, .num_experts_used = 4};
  EXPECT_DEATH(RouteOne(rule, {1, 2, 3}), "num_experts_used");
  rule.num_experts_used = 2;
  EXPECT_DEATH(RouteOne(rule, {1, 2, 3}, {1}), "bias");
}

}  // namespace
}  // namespace fucina::ops
