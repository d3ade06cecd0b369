// The trained model that is part of the repository, against logits and greedy
// continuations that were computed in float64 from the stored weights
// (tests/goldens/atlas, made with the model itself; see models/README.md).

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/core/runner/atlas_golden.h"
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

constexpr TokenId kImEnd = 4058;
// Where best and second are nearer than this, an engine that rounds
// activations may choose the other.
constexpr double kNearTie = 0.05;

struct Case {
  std::vector<TokenId> prompt;
  std::vector<TokenId> greedy;
  std::vector<double> margins;  // best minus second best, by step
  Row logits;                   // after the prompt

  // How many steps must agree: to the end of the turn and on to the first near
  // tie behind it; without an end, to the first near tie.
  std::size_t Comparable() const {
    const auto end = std::find(greedy.begin(), greedy.end(), kImEnd);
    std::size_t n = end == greedy.end()
                        ? 0
                        : static_cast<std::size_t>(end - greedy.begin()) + 1;
    while (n < greedy.size() && margins[n] >= kNearTie) ++n;
    return n;
  }
};

std::vector<Case> ReadCases() {
  const std::string json = ReadFile("tests/goldens/atlas/q8_0.json");
  std::vector<Case> cases;
  std::size_t begin = json.find("\"text\":");
  while (begin != std::string::npos) {
    const std::size_t next = json.find("\"text\":", begin + 1);
    const std::string text = json.substr(begin, next - begin);
    Case c;
    c.prompt = Ids(text, "ids");
    c.greedy = Ids(text, "greedy_ids");
    c.margins = Numbers(text, "greedy_margins");
    const std::string bytes = ReadFile("tests/goldens/atlas/q8_0-" +
                                       std::to_string(cases.size()) + ".bin");
    c.logits.resize(bytes.size() / sizeof(float));
    std::copy(bytes.begin(), bytes.end(),
              reinterpret_cast<char*>(c.logits.data()));
    cases.push_back(std::move(c));
    begin = next;
  }
  return cases;
}

class Atlas : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto opened = GgufFile::Open(std::string(FUCINA_SOURCE_DIR) +
                                 "/models/atlas-6m-q8_0.gguf");
    ASSERT_TRUE(opened.ok()) << opened.status();
    file_ = std::move(opened)->release();
  }
  static void TearDownTestSuite() { delete file_; }

  // All rows of the prompt and its golden continuation.
  static void Check(const RunnerOptions& options,
                    void (*compare)(const Row& logits, const Row& golden)) {
    ThreadPool pool(2);
    const auto descriptor = Descriptor::FromGguf(*file_, testing::kQwen3);
    ASSERT_TRUE(descriptor.ok()) << descriptor.status();
    const auto runner = Runner::Load(*file_, *descriptor, pool, options);
    ASSERT_TRUE(runner.ok()) << runner.status();
    const std::vector<Case> cases = ReadCases();
    ASSERT_EQ(cases.size(), 5U);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(i);
      const Case& c = cases[i];
      ASSERT_EQ(c.greedy.size(), 32U);
      ASSERT_EQ(c.margins.size(), 32U);
      const Rows rows = GoldenRows(**runner, c.prompt, c.greedy);
      ASSERT_EQ(rows.size(), c.prompt.size() + c.greedy.size() - 1);
      compare(rows[c.prompt.size() - 1], c.logits);
      EXPECT_GE(c.Comparable(), i == 4 ? 20U : 8U);
      for (std::size_t k = 0; k < c.Comparable(); ++k) {
        EXPECT_EQ(Argmax(rows[c.prompt.size() - 1 + k]), c.greedy[k]) << k;
      }
    }
  }

  static const GgufFile* file_;
};

const GgufFile* Atlas::file_ = nullptr;

TEST_F(Atlas, HostReferenceComputesTheGoldens) {
  Check({.block_style = BlockStyle::kHostReference,
         .cache_type = DType::kF32,
         .strict = true},
        [](const Row& logits, const Row& golden) {
          ASSERT_EQ(logits.size(), golden.size());
          for (std::size_t i = 0; i < logits.size(); ++i) {
            EXPECT_NEAR(logits[i], golden[i], 2e-3) << i;
          }
        });
}

// What is allowed for Q8_0 weights with rounded activations and f16 rows.
TEST_F(Atlas, FusedStaysWithinTheThresholds) {
  Check({.block_style = BlockStyle::kFused, .strict = true},
        [](const Row& logits, const Row& golden) {
          ASSERT_EQ(logits.size(), golden.size());
          double dot = 0;
          double aa = 0;
          double bb = 0;
          double mean = 0;
          double largest = 0;
          double error = 0;
          for (float value : golden) mean += value;
          mean /= static_cast<double>(golden.size());
          double centred = 0;
          for (std::size_t i = 0; i < logits.size(); ++i) {
            const double a = logits[i];
            const double b = golden[i];
            dot += a * b;
            aa += a * a;
            bb += b * b;
            error += (a - b) * (a - b);
            centred += (b - mean) * (b - mean);
            largest = std::max(largest, std::abs(a - b));
          }
          EXPECT_GE(dot / std::sqrt(aa * bb), 0.9995);
          EXPECT_LE(std::sqrt(error / centred), 3e-2);
          EXPECT_LE(largest, 0.5);
          EXPECT_EQ(Argmax(logits), Argmax(golden));
        });
}

}  // namespace
}  // namespace fucina
