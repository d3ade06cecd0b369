// The trained mixtures of experts of the repository, against logits and greedy
// continuations that tests/oracles/atlas_goldens.py computed in float64 from
// the stored weights.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/core/runner/atlas_golden.h"
#include "tests/core/runner/families.h"
#include "tests/core/runner/loaded_model.h"

namespace fucina {
namespace {

using testing::Argmax;
using testing::GoldenRows;
using testing::Ids;
using testing::Numbers;
using testing::ReadFile;
using testing::Row;
using testing::Rows;

struct Case {
  std::vector<TokenId> prompt;
  std::vector<TokenId> best;  // the best rows behind the prompt
  std::vector<double> best_logits;
  std::vector<TokenId> greedy;
  std::vector<double> margins;  // best minus second best, by step
};

std::vector<Case> ReadCases(const std::string& json) {
  std::vector<Case> cases;
  std::size_t begin = json.find("\"text\":");
  while (begin != std::string::npos) {
    const std::size_t next = json.find("\"text\":", begin + 1);
    const std::string text = json.substr(begin, next - begin);
    cases.push_back({.prompt = Ids(text, "ids"),
                     .best = Ids(text, "best_ids"),
                     .best_logits = Numbers(text, "best_logits"),
                     .greedy = Ids(text, "greedy_ids"),
                     .margins = Numbers(text, "greedy_margins")});
    begin = next;
  }
  return cases;
}

// How far from float64 a block style may be.
struct Allowed {
  double logit;
  double near_tie;  // where best and second are nearer, either may be chosen
};

class AtlasExperts : public ::testing::TestWithParam<const char*> {
 protected:
  static void Check(const RunnerOptions& options, Allowed allowed) {
    const std::string name = std::string("atlas-") + GetParam();
    const auto file = GgufFile::Open(std::string(FUCINA_SOURCE_DIR) +
                                     "/models/" + name + "-q8_0.gguf");
    ASSERT_TRUE(file.ok()) << file.status();
    const FamilyRules& rules = std::string(GetParam()) == "glm"
                                   ? testing::kGlm4Moe
                                   : testing::kQwen3Moe;
    const auto descriptor = Descriptor::FromGguf(**file, rules);
    ASSERT_TRUE(descriptor.ok()) << descriptor.status();
    ThreadPool pool(2);
    const auto runner = Runner::Load(**file, *descriptor, pool, options);
    ASSERT_TRUE(runner.ok()) << runner.status();
    const auto cases =
        ReadCases(ReadFile("tests/goldens/atlas/" + name + ".json"));
    ASSERT_EQ(cases.size(), 5U);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(i);
      const Case& c = cases[i];
      ASSERT_EQ(c.greedy.size(), 24U);
      ASSERT_EQ(c.margins.size(), 24U);
      ASSERT_EQ(c.best.size(), 8U);
      const Rows rows = GoldenRows(**runner, c.prompt, c.greedy);
      ASSERT_EQ(rows.size(), c.prompt.size() + c.greedy.size() - 1);
      const std::size_t first = c.prompt.size() - 1;
      for (std::size_t k = 0; k < c.best.size(); ++k) {
        EXPECT_NEAR(rows[first][c.best[k]], c.best_logits[k], allowed.logit)
            << c.best[k];
      }
      std::size_t compared = 0;
      for (std::size_t k = 0; k < c.greedy.size(); ++k) {
        if (c.margins[k] < allowed.near_tie) continue;
        EXPECT_EQ(Argmax(rows[first + k]), c.greedy[k]) << k;
        ++compared;
      }
      EXPECT_GE(compared, 16U);
    }
  }
};

TEST_P(AtlasExperts, HostReferenceComputesTheGoldens) {
  Check({.block_style = BlockStyle::kHostReference, .cache_type = DType::kF32},
        {.logit = 2e-3, .near_tie = 1e-2});
}

// What is allowed for Q8_0 weights with rounded activations and f16 rows.
TEST_P(AtlasExperts, FusedStaysWithinTheThresholds) {
  Check({.block_style = BlockStyle::kFused}, {.logit = 0.5, .near_tie = 0.5});
}

// What its text is worth: tests/core/text/chat_template_test.cc.
TEST(AtlasGlm, CarriesTheTestedTemplate) {
  const auto file = GgufFile::Open(std::string(FUCINA_SOURCE_DIR) +
                                   "/models/atlas-glm-q8_0.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto text = (*file)->GetString("tokenizer.chat_template");
  ASSERT_TRUE(text.ok()) << text.status();
  ASSERT_TRUE(text->has_value());
  EXPECT_EQ(**text, ReadFile("tests/goldens/templates/glm45_style.jinja"));
}

INSTANTIATE_TEST_SUITE_P(Models, AtlasExperts, ::testing::Values("moe", "glm"),
                         [](const auto& test) {
                           return std::string(test.param);
                         });

}  // namespace
}  // namespace fucina
