#include "fucina/decode/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "fucina/decode/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fucina {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();

// The definition of text-and-chat section 3.1 with a full sort and no shortcut.
TokenId ReferenceSample(std::vector<float> logits, const SamplerConfig& config,
                        double uniform) {
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
  if (config.top_k > 0 && config.top_k < static_cast<int>(order.size())) {
    order.resize(config.top_k);
  }
  std::vector<double> p;
  const double max = logits[order[0]];
  for (const TokenId id : order) {
    p.push_back(std::exp((logits[id] - max) / config.temperature));
  }
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& value : p) value /= total;
  std::size_t kept = p.size();
  if (config.top_p < 1) {
    double cumulative = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      cumulative += p[i];
      if (cumulative >= config.top_p) {
        kept = i + 1;
        break;
      }
    }
  }
  for (std::size_t i = 1; i < kept; ++i) {
    if (config.min_p > 0 && p[i] < config.min_p * p[0]) kept = i;
  }
  const double sum = std::accumulate(p.begin(), p.begin() + kept, 0.0);
  double running = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    running += p[i];
    if (uniform * sum <= running) return order[i];
  }
  return order[kept - 1];
}

TEST(Random, MatchesPublishedVectors) {
  Random zero(0);
  EXPECT_EQ(zero.NextBits(), 0x53175d61490b23dfU);
  EXPECT_EQ(zero.NextBits(), 0x61da6f3dc380d507U);
  EXPECT_EQ(zero.NextBits(), 0x5c0fdf91ec9a7bfcU);
  EXPECT_EQ(zero.NextBits(), 0x02eebf8c3bbe5e1aU);
  Random other(42);
  EXPECT_EQ(other.NextBits(), 0xd0764d4f4476689fU);
  EXPECT_EQ(other.NextBits(), 0x519e4174576f3791U);
  EXPECT_EQ(other.NextBits(), 0xfbe07cfb0c24ed8cU);
  EXPECT_EQ(other.NextBits(), 0xb37d9f600cd835b8U);
}

TEST(Random, UniformMatchesVectorsAndStaysBelowOne) {
  Random random(0);
  EXPECT_NEAR(random.NextUniform(), 0.27175805, 5e-9);
  EXPECT_NEAR(random.NextUniform(), 0.25162527, 5e-9);
  EXPECT_NEAR(random.NextUniform(), 0.30172718, 5e-9);
  EXPECT_NEAR(random.NextUniform(), 0.01161912, 5e-9);
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    const float u = random.NextUniform();
    ASSERT_GE(u, 0.0F);
    ASSERT_LT(u, 1.0F);
    sum += u;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.005);
}

TEST(Sampler, GreedyTakesTheLowestIndexOfATieAndDrawsNothing) {
  Sampler sampler({}, 5);
  std::vector<float> logits = {1, 3, 2, 3, 3};
  EXPECT_EQ(sampler.Sample(logits, {}).value(), 1);
  EXPECT_EQ(ArgMax(logits), 1);
}

TEST(Sampler, ArgMaxIsTheFirstOfTheLargest) {
  std::mt19937 rng(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<float> logits(1 + rng() % 5000);
    // Few values, so that ties are the rule; rows of -inf but for one.
    const bool sparse = round % 3 == 0;
    for (float& logit : logits) {
      logit = sparse ? -kInf : static_cast<float>(rng() % 50);
    }
    if (sparse && round % 2 == 0) logits[rng() % logits.size()] = -5;
    EXPECT_EQ(ArgMax(logits),
              std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(ArgMax(std::vector<float>{nan, 1}), 0);
  EXPECT_EQ(ArgMax(std::vector<float>{1, nan, 2}), 2);
}

TEST(Sampler, PenaltiesMatchTheWorkedExample) {
  Sampler sampler({.frequency_penalty = 0.5, .presence_penalty = 0.3}, 2);
  std::vector<float> logits = {5, 4};
  const std::vector<TokenId> history = {0, 0, 0, 1};
  EXPECT_EQ(sampler.Sample(logits, history).value(), 0);
  EXPECT_FLOAT_EQ(logits[0], 3.2F);
  EXPECT_FLOAT_EQ(logits[1], 3.2F);
}

TEST(Sampler, RepeatPenaltyDividesPositiveAndMultipliesNegativeLogits) {
  Sampler sampler({.repeat_penalty = 2, .penalty_window = 2}, 4);
  std::vector<float> logits = {8, 6, -1, 1};
  // The window sees 1 and 2 only; 99 lies outside the row and 0 outside it.
  EXPECT_EQ(sampler.Sample(logits, std::vector<TokenId>{0, 99, 1, 2}).value(),
            0);
  EXPECT_THAT(logits, ElementsAre(8, 3, -2, 1));
}

TEST(Sampler, EqualsTheDefinitionOnRandomRows) {
  std::mt19937 rng(7);
  for (int round = 0; round < 400; ++round) {
    const int vocab = 1 + static_cast<int>(rng() % 3000);
    std::normal_distribution<float> normal(0, 1 + (rng() % 4));
    std::vector<float> logits(vocab);
    for (float& logit : logits) logit = normal(rng);
    if (rng() % 3 == 0) {  // ties
      for (float& logit : logits) logit = std::round(logit);
    }
    SamplerConfig config;
    config.temperature = 0.1 + (rng() % 30) / 10.0;
    config.top_k = rng() % 2 ? 0 : static_cast<int>(rng() % 400);
    config.top_p = rng() % 2 ? 1.0 : (rng() % 101) / 100.0;
    config.min_p = rng() % 2 ? 0.0 : (rng() % 100) / 200.0;
    config.seed = rng();
    Sampler sampler(config, vocab);
    Random random(config.seed);
    for (int draw = 0; draw < 5; ++draw) {
      std::vector<float> row = logits;
      const TokenId expected =
          ReferenceSample(logits, config, random.NextUniform());
      ASSERT_EQ(sampler.Sample(row, {}).value(), expected)
          << "round " << round << " draw " << draw;
    }
  }
}

TEST(Sampler, SixHundredEqualLogitsReachEveryRegion) {
  Sampler sampler({.temperature = 1, .top_p = 0.99}, 600);
  std::set<TokenId> seen;
  for (int i = 0; i < 4000; ++i) {
    std::vector<float> logits(600, 1.5F);
    seen.insert(sampler.Sample(logits, {}).value());
  }
  EXPECT_GT(*seen.rbegin(), 500);
  EXPECT_LE(*seen.rbegin(), 594);  // 0.99 of 600, the crossing token stays
  EXPECT_GT(seen.size(), 500U);
}

TEST(Sampler, TopPOfZeroKeepsOneToken) {
  Sampler sampler({.temperature = 5, .top_p = 0}, 3);
  for (int i = 0; i < 50; ++i) {
    std::vector<float> logits = {0, 1, 0.9F};
    EXPECT_EQ(sampler.Sample(logits, {}).value(), 1);
  }
}

TEST(Sampler, TinyTemperatureIsGreedyWithoutOverflow) {
  Sampler sampler({.temperature = 1e-300}, 3);
  std::vector<float> logits = {0, 1, -kInf};
  EXPECT_EQ(sampler.Sample(logits, {}).value(), 1);
}

TEST(Sampler, MaskedTokensAreNeverDrawn) {
  Sampler sampler({.temperature = 100}, 4);
  for (int i = 0; i < 200; ++i) {
    std::vector<float> logits = {-kInf, 0, -kInf, 0};
    const TokenId token = sampler.Sample(logits, {}).value();
    EXPECT_TRUE(token == 1 || token == 3);
  }
}

TEST(Sampler, AllMaskedIsAnError) {
  Sampler sampler({}, 2);
  std::vector<float> logits = {-kInf, -kInf};
  EXPECT_EQ(sampler.Sample(logits, {}).status().message(), "all tokens masked");
}

TEST(Sampler, ARowWithoutANumberIsAnErrorNotAToken) {
  const float nan = std::nanf("");
  for (const double temperature : {0.0, 1.0}) {
    Sampler sampler({.temperature = temperature}, 3);
    std::vector<float> logits = {nan, nan, nan};
    EXPECT_FALSE(sampler.Sample(logits, {}).ok());
    logits = {nan, 1, 2};
    EXPECT_FALSE(sampler.Sample(logits, {}).ok());
  }
}

TEST(Sampler, PenaltiesNeverLiftALogitToInfinityNorUnmaskOne) {
  Sampler sampler({.repeat_penalty = 1e-300, .penalty_window = 1 << 30}, 3);
  const std::vector<TokenId> history = {0, 1};
  std::vector<float> logits = {5, -kInf, 1};
  EXPECT_EQ(sampler.Sample(logits, history).value(), 0);
  EXPECT_EQ(logits[0], std::numeric_limits<float>::max());
  EXPECT_EQ(logits[1], -kInf);
}

TEST(Sampler, SeedsDecideAndRestartRepeats) {
  const auto run = [](std::uint64_t seed, Sampler* reused) {
    Sampler fresh({.temperature = 1, .seed = seed}, 50);
    Sampler& sampler = reused != nullptr ? *reused : fresh;
    std::vector<TokenId> ids;
    for (int i = 0; i < 20; ++i) {
      std::vector<float> logits(50, 0.0F);
      ids.push_back(sampler.Sample(logits, {}).value());
    }
    return ids;
  };
  EXPECT_EQ(run(1, nullptr), run(1, nullptr));
  EXPECT_NE(run(1, nullptr), run(2, nullptr));
  Sampler sampler({.temperature = 1, .seed = 1}, 50);
  const auto first = run(1, &sampler);
  sampler.Restart();
  EXPECT_EQ(run(1, &sampler), first);
}

TEST(SamplerConfig, RefusesValuesOutsideTheirRangeByName) {
  const double nan = std::nan("");
  const auto message = [](const SamplerConfig& config) {
    return std::string(Validate(config).message());
  };
  EXPECT_EQ(message({.temperature = -1}),
            "temperature: expected 0 to 1000 (0 is greedy), found -1");
  EXPECT_THAT(message({.temperature = nan}), HasSubstr("temperature"));
  EXPECT_THAT(message({.temperature = static_cast<double>(kInf)}),
              HasSubstr("temperature"));
  EXPECT_EQ(message({.top_k = -5}),
            "top_k: expected an integer of at least 0 (0 keeps all), found "
            "-5");
  EXPECT_EQ(message({.top_p = 2}), "top_p: expected 0 to 1, found 2");
  EXPECT_EQ(message({.top_p = -1}), "top_p: expected 0 to 1, found -1");
  EXPECT_EQ(message({.min_p = 2}), "min_p: expected 0 to 1, found 2");
  EXPECT_EQ(message({.repeat_penalty = 0}),
            "repeat_penalty: expected a finite number above 0 (1 is off), "
            "found 0");
  EXPECT_EQ(message({.frequency_penalty = 3}),
            "frequency_penalty: expected -2 to 2, found 3");
  EXPECT_EQ(message({.presence_penalty = -3}),
            "presence_penalty: expected -2 to 2, found -3");
  EXPECT_EQ(message({.penalty_window = -1}),
            "penalty_window: expected an integer of at least 0, found -1");
  EXPECT_EQ(message({.temperature = 999999}),
            "temperature: expected 0 to 1000 (0 is greedy), found 999999");
  EXPECT_EQ(message({.temperature = 1000}), "");
}

TEST(CheckLogits, NamesTheFirstBadValue) {
  std::vector<float> logits = {0, -kInf, 2};
  EXPECT_TRUE(CheckLogits(logits, 3).ok());
  logits[2] = std::nanf("");
  EXPECT_EQ(CheckLogits(logits, 3).message(),
            "numeric error at position 3: the logit of token 2 is not a "
            "number; the model file may be damaged");
  logits[0] = kInf;
  EXPECT_THAT(std::string(CheckLogits(logits, 3).message()),
              HasSubstr("token 0 is infinite"));
}

}  // namespace
}  // namespace fucina
