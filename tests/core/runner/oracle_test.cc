// Logits against an f64 forward of our own in NumPy, made from the same files
// by tests/oracles/numpy_forward.py: f32 weights, f32 cache, every position.

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/core/runner/loaded_model.h"
#include "tests/core/runner/oracle_models.h"

namespace fucina {
namespace {

using testing::LoadedModel;
using testing::Rows;

std::uint32_t Crc32(const std::string& bytes) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : bytes) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
    }
  }
  return ~crc;
}

struct Golden {
  std::uint32_t crc = 0;
  std::vector<TokenId> tokens;
  std::vector<std::vector<double>> rows;
};

Golden ReadGolden(const std::string& name) {
  std::ifstream in(std::string(FUCINA_SOURCE_DIR) + "/tests/goldens/runner/" +
                   name + ".txt");
  EXPECT_TRUE(in.good()) << name;
  std::string header;
  std::getline(in, header);
  Golden golden;
  std::size_t tokens = 0;
  std::size_t vocab = 0;
  in >> std::hex >> golden.crc >> std::dec >> tokens >> vocab;
  golden.tokens.resize(tokens);
  for (TokenId& token : golden.tokens) in >> token;
  golden.rows.assign(tokens, std::vector<double>(vocab));
  for (auto& row : golden.rows) {
    for (double& value : row) in >> value;
  }
  EXPECT_TRUE(in.good()) << name;
  return golden;
}

void Check(const testing::OracleModel& model, const Golden& golden,
           const RunnerOptions& options) {
  SCOPED_TRACE(model.name + " " + std::string(Name(*options.block_style)));
  LoadedModel loaded(model.spec, options);
  const Rows rows = loaded.All(golden.tokens);
  ASSERT_EQ(rows.size(), golden.rows.size());
  double worst = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    ASSERT_EQ(rows[r].size(), golden.rows[r].size());
    double largest = 0;
    for (double value : golden.rows[r]) {
      largest = std::max(largest, std::abs(value));
    }
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      worst =
          std::max(worst, std::abs(rows[r][i] - golden.rows[r][i]) / largest);
    }
  }
  EXPECT_LE(worst, 1e-4);
  if (*options.block_style == BlockStyle::kHostReference) {
    EXPECT_LE(worst, 2e-6);  // only the rounding of stored results is left
  }
}

TEST(NumpyOracle, BothStylesComputeItsLogits) {
  for (const testing::OracleModel& model : testing::OracleModels()) {
    const Golden golden = ReadGolden(model.name);
    ASSERT_EQ(Crc32(testing::TinyModelBytes(model.spec)), golden.crc)
        << model.name << ": the golden belongs to another file";
    Check(model, golden,
          {.block_style = BlockStyle::kHostReference,
           .cache_type = DType::kF32,
           .strict = true});
    for (KernelLevel level : testing::SupportedLevels()) {
      Check(model, golden,
            {.block_style = BlockStyle::kFused,
             .kernel_level = level,
             .cache_type = DType::kF32,
             .strict = true});
    }
  }
}

}  // namespace
}  // namespace fucina
