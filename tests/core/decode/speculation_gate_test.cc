#include "fucina/decode/speculation_gate.h"

#include "gtest/gtest.h"

namespace fucina {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// The options of the published sequence, without the account.
SpeculationGateOptions Published() {
  SpeculationGateOptions options;
  options.window = 8;
  options.min_window_drafted = 4;
  options.reprobe_after = 4;
  options.reprobe_max = 16;
  options.probe_steps = 2;
  options.loss_allowance = 1e9;
  return options;
}

// Refusals until the gate allows again.
int RefusalsUntilProbe(SpeculationGate& gate) {
  int refusals = 0;
  while (!gate.Allows()) ++refusals;
  return refusals;
}

TEST(SpeculationGate, FollowsThePublishedSequence) {
  SpeculationGate gate(Published());
  gate.RecordCost(8, 0, 2.84);
  EXPECT_TRUE(gate.is_on());
  gate.RecordCost(8, 0, 2.84);
  EXPECT_FALSE(gate.is_on());
  EXPECT_EQ(RefusalsUntilProbe(gate), 3);
  gate.RecordCost(8, 0, 2.84);
  gate.RecordCost(8, 0, 2.84);
  EXPECT_EQ(RefusalsUntilProbe(gate), 7);
  gate.RecordCost(2, 1, 1.9);
  gate.RecordCost(2, 1, 1.9);  // 1.05: a gain, but no convincing one
  EXPECT_FALSE(gate.is_on());
  EXPECT_EQ(RefusalsUntilProbe(gate), 15);
  gate.RecordCost(8, 0, 2.84);
  gate.RecordCost(8, 0, 2.84);
  EXPECT_EQ(RefusalsUntilProbe(gate), 15);  // the longest pause
  gate.RecordCost(8, 5, 2.84);
  gate.RecordCost(8, 5, 2.84);
  EXPECT_TRUE(gate.is_on());
  // Once on, a small gain is enough, and the next trip starts from the front.
  for (int i = 0; i < 8; ++i) gate.RecordCost(2, 1, 1.9);
  EXPECT_TRUE(gate.is_on());
  for (int i = 0; i < 8 && gate.is_on(); ++i) gate.RecordCost(8, 0, 4.5);
  EXPECT_FALSE(gate.is_on());
  EXPECT_EQ(RefusalsUntilProbe(gate), 3);
}

TEST(SpeculationGate, InterpolatesItsTable) {
  const SpeculationGate gate{SpeculationGateOptions{}};
  EXPECT_DOUBLE_EQ(gate.Cost(1), 1.65);
  EXPECT_DOUBLE_EQ(gate.Cost(2), 1.65);
  EXPECT_DOUBLE_EQ(gate.Cost(3), 1.535);
  EXPECT_DOUBLE_EQ(gate.Cost(6), 2.13);
  EXPECT_DOUBLE_EQ(gate.Cost(12), 3.67);
  EXPECT_DOUBLE_EQ(gate.Cost(32), 4.5);
}

TEST(SpeculationGate, LearnsWhatVerifyingCostsHere) {
  const auto scale = [](std::initializer_list<std::int64_t> verifies) {
    SpeculationGateOptions options;
    options.always_on = true;
    SpeculationGate gate(options);
    gate.RecordPlain(kMs);
    for (const std::int64_t ns : verifies) gate.RecordVerify(8, 0, ns);
    return gate.Cost(8) / 2.84;
  };
  EXPECT_NEAR(scale({2'840'000}), 1, 1e-12);
  EXPECT_NEAR(scale({5'680'000}), 1.2, 1e-12);
  EXPECT_NEAR(scale({1000 * kMs}), 1.6, 1e-12);  // one stall counts little
  EXPECT_NEAR(scale({0}), 1, 1e-12);             // nobody measured
  SpeculationGateOptions options;
  options.always_on = true;
  SpeculationGate gate(options);
  gate.RecordPlain(kMs);
  for (int i = 0; i < 41; ++i) gate.RecordVerify(8, 0, 5'680'000);
  EXPECT_NEAR(gate.Cost(8) / 2.84, 2, 1e-3);
  // A verification is never cheaper than a plain step.
  SpeculationGate cheap(options);
  cheap.RecordPlain(kMs);
  for (int i = 0; i < 60; ++i) cheap.RecordVerify(2, 0, kMs / 10);
  EXPECT_NEAR(cheap.Cost(2), 1, 1e-5);
  EXPECT_GE(cheap.Cost(2), 1);
}

TEST(SpeculationGate, BudgetFollowsAcceptance) {
  SpeculationGateOptions options;
  options.loss_allowance = 1e9;
  SpeculationGate gate(options);
  EXPECT_EQ(gate.Budget(16), 16);
  gate.RecordCost(4, 1, 1);
  EXPECT_EQ(gate.Budget(16), 6);
  SpeculationGate none(options);
  none.RecordCost(4, 0, 1);
  EXPECT_EQ(none.Budget(16), 2);
  EXPECT_EQ(none.Budget(1), 1);
  SpeculationGate all(options);
  all.RecordCost(4, 4, 1);
  EXPECT_EQ(all.Budget(16), 16);
}

// Whatever drafts cost and bring, what is lost stays inside the account.
TEST(SpeculationGate, NeverLosesMoreThanItsAccount) {
  for (const double cost : {1.2, 2.0, 5.0, 40.0}) {
    for (const int accepted_every : {0, 3, 7}) {
      SpeculationGateOptions options;
      options.cost_table = {{1, cost}};
      SpeculationGate gate(options);
      double time = 0;
      int tokens = 0;
      constexpr int kSteps = 20000;
      for (int step = 0; step < kSteps; ++step) {
        if (!gate.Allows()) {
          time += 1;
          tokens += 1;
          continue;
        }
        const int accepted =
            accepted_every > 0 && step % accepted_every == 0 ? 1 : 0;
        gate.RecordVerify(2, accepted, 0);
        time += cost;
        tokens += 1 + accepted;
      }
      EXPECT_LE(time, tokens + 4 + 0.01 * kSteps + 2 * cost)
          << cost << " " << accepted_every;
      EXPECT_GE(tokens / time, 0.98) << cost << " " << accepted_every;
    }
  }
}

// A drafter that is slow to say nothing is left alone, too.
TEST(SpeculationGate, SilenceCosts) {
  SpeculationGate gate{SpeculationGateOptions{}};
  gate.RecordPlain(kMs);
  int asked = 0;
  for (int step = 0; step < 1000; ++step) {
    if (!gate.Allows()) continue;
    ++asked;
    gate.RecordNothing(kMs / 2);
  }
  EXPECT_LT(asked, 50);
}

TEST(SpeculationGate, AlwaysOnIsAlwaysOn) {
  SpeculationGateOptions options;
  options.always_on = true;
  SpeculationGate gate(options);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(gate.Allows());
    gate.RecordCost(8, 0, 10);
    EXPECT_EQ(gate.Budget(8), 8);
  }
}

}  // namespace
}  // namespace fucina
