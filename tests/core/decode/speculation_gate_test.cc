#include "fucina/decode/speculation_gate.h"

#include <algorithm>
#include <cstdint>
#include <random>

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
  options.cheap_share = -1;  // as for a drafter that takes time
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

// A drafter of one token that costs no time to ask.
SpeculationGateOptions AtCost(double cost) {
  SpeculationGateOptions options;
  options.cost_table = {{1, cost}, {2, 2 * cost - 1}};
  return options;
}

TEST(SpeculationGate, ChoosesWhatBringsMostTokensPerTime) {
  SpeculationGateOptions options;
  options.cost_table = {{1, 1.1}, {2, 1.2}, {4, 1.4}, {8, 1.8}, {16, 4}};
  options.loss_allowance = 100;
  SpeculationGate gate(options);
  // Nothing is known: even chances. 1.75 / 1.2 is the best of them.
  EXPECT_EQ(gate.Choose(0, 16), 2);
  EXPECT_EQ(gate.Choose(0, 1), 1);
  for (int i = 0; i < 50; ++i) gate.RecordUnverified(0, 16, 16);
  // Nearly all right: 8.7 / 1.8 against 16 / 4.
  EXPECT_EQ(gate.Choose(0, 16), 8);
  EXPECT_EQ(gate.Choose(0, 5), 5);
  // Always wrong at the third place.
  for (int i = 0; i < 200; ++i) gate.RecordUnverified(1, 2, 3);
  EXPECT_EQ(gate.Choose(1, 16), 2);
  // Always wrong at once; the other classes stand as they were.
  for (int i = 0; i < 200; ++i) gate.RecordUnverified(2, 0, 1);
  EXPECT_EQ(gate.Choose(2, 16), 0);
  EXPECT_EQ(gate.Choose(0, 16), 8);
  // A class out of range is one of them.
  EXPECT_EQ(gate.Choose(-1, 16), 8);
}

TEST(SpeculationGate, TheAccountBoundsOneTry) {
  SpeculationGateOptions options;
  options.cost_table = {{1, 1.2}, {8, 4}};
  options.loss_allowance = 1.5;
  options.loss_share = 0;
  SpeculationGate gate(options);
  for (int i = 0; i < 50; ++i) gate.RecordUnverified(0, 8, 8);
  // 8 would bring more, but lose 3 steps.
  EXPECT_EQ(gate.Choose(0, 8), 4);
  gate.RecordCost(4, 4, 2.4);
  EXPECT_EQ(gate.Choose(0, 8), 8);
}

TEST(SpeculationGate, CountsWhatItSaved) {
  SpeculationGate gate{SpeculationGateOptions{}};
  EXPECT_EQ(gate.saved(), 0);
  gate.RecordCost(4, 3, 1.5);
  gate.RecordCost(4, 0, 1.5);
  EXPECT_DOUBLE_EQ(gate.saved(), 2);
}

struct Simulated {
  double time = 0;
  double tokens = 0;
  double Speed() const { return tokens / time; }
};

// Drafts of two tokens; `right` says how many of them come at a step.
template <typename Right>
Simulated Simulate(SpeculationGate& gate, double cost1, double cost2,
                   double ask, int steps, Right right) {
  Simulated all;
  gate.RecordPlain(kMs);
  for (int step = 0; step < steps; ++step) {
    all.time += 1;
    all.tokens += 1;
    if (!gate.Allows()) continue;
    all.time += ask;
    gate.RecordAsked(static_cast<std::int64_t>(ask * kMs));
    const int will_be_right = right(step);
    const int chosen = gate.Choose(0, 2);
    if (chosen == 0) {
      gate.RecordUnverified(0, will_be_right, std::min(will_be_right + 1, 2));
      continue;
    }
    const int accepted = std::min(will_be_right, chosen);
    const double cost = chosen == 1 ? cost1 : cost2;
    all.time += cost - 1;
    all.tokens += accepted;
    gate.RecordVerify(0, chosen, accepted, std::min(accepted + 1, chosen),
                      static_cast<std::int64_t>(cost * kMs));
  }
  return all;
}

// Whatever drafts cost and bring and whatever the table says of it, what is
// lost stays inside the account, also when asking takes time.
TEST(SpeculationGate, NeverLosesMoreThanItsAccount) {
  std::mt19937 random(5);
  for (const double cost : {1.05, 1.2, 2.0, 5.0, 40.0}) {
    for (const double believed : {1.05, 2.0}) {
      for (const double ask : {0.0, 0.001, 0.1, 2.0}) {
        for (const double chance : {0.0, 0.1, 0.3, 0.5}) {
          for (const int steps : {160, 20000}) {
            SpeculationGate gate(AtCost(believed));
            std::bernoulli_distribution hit(chance);
            const Simulated all =
                Simulate(gate, cost, 2 * cost - 1, ask, steps, [&](int) {
                  return !hit(random) ? 0 : !hit(random) ? 1 : 2;
                });
            // The first samples of a cost that nobody expected come on top.
            const double surprise = 2 * (2 * cost - 1) + 3 * ask;
            EXPECT_LE(all.time - all.tokens, 1.5 + 0.01 * steps + surprise)
                << cost << " " << believed << " " << ask << " " << chance << " "
                << steps;
            if (cost < 2 && ask < 0.5) {
              EXPECT_GE(all.Speed(), 0.98)
                  << cost << " " << believed << " " << ask << " " << chance
                  << " " << steps;
            }
          }
        }
      }
    }
  }
}

TEST(SpeculationGate, FindsOutThatDraftsBecameRight) {
  SpeculationGate gate(AtCost(1.2));
  // 400 steps of nonsense, then all are right.
  const Simulated bad = Simulate(gate, 1.2, 1.4, 0, 400, [](int) { return 0; });
  EXPECT_GE(bad.Speed(), 0.99);
  int first = -1;
  const Simulated good = Simulate(gate, 1.2, 1.4, 0, 100, [&](int step) {
    if (first < 0 && gate.Choose(0, 2) > 0) first = step;
    return 2;
  });
  EXPECT_GE(good.Speed(), 1.9);
  EXPECT_LE(first, 12);
  EXPECT_GT(gate.saved(), 90);
}

// A slow drafter is tried again after a pause.
TEST(SpeculationGate, FindsOutThatASlowDrafterBecameRight) {
  SpeculationGate gate(AtCost(1.2));
  Simulate(gate, 1.2, 1.4, 0.1, 300, [](int) { return 0; });
  const Simulated good =
      Simulate(gate, 1.2, 1.4, 0.1, 3000, [](int) { return 2; });
  EXPECT_GE(good.Speed(), 1.7);
}

// A drafter that is slow to say nothing is left alone, too.
TEST(SpeculationGate, SilenceCosts) {
  SpeculationGate gate{SpeculationGateOptions{}};
  gate.RecordPlain(kMs);
  int asked = 0;
  for (int step = 0; step < 1000; ++step) {
    if (!gate.Allows()) continue;
    ++asked;
    gate.RecordAsked(kMs / 2);
  }
  EXPECT_LT(asked, 30);
}

// Several sequences wait for the rows of one.
TEST(SpeculationGate, DraftsLessInCompany) {
  SpeculationGateOptions options;
  options.loss_allowance = 100;
  SpeculationGate gate(options);
  for (int i = 0; i < 50; ++i) gate.RecordUnverified(0, 16, 16);
  const int alone = gate.Choose(0, 16);
  gate.set_together(4);
  const int four = gate.Choose(0, 16);
  EXPECT_GT(alone, 8);
  EXPECT_LE(four, alone);
  for (int i = 0; i < 50; ++i) gate.RecordUnverified(1, 0, 1);
  gate.set_together(32);
  EXPECT_EQ(gate.Choose(1, 16), 0);
}

TEST(SpeculationGate, AlwaysOnIsAlwaysOn) {
  SpeculationGateOptions options;
  options.always_on = true;
  SpeculationGate gate(options);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(gate.Allows());
    gate.RecordCost(8, 0, 10);
    EXPECT_EQ(gate.Choose(0, 8), 8);
  }
}

}  // namespace
}  // namespace fucina
