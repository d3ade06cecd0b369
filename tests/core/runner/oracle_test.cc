// Logits against an f64 forward of our own in NumPy, made from the same files
// by tests/oracles/numpy_forward.py: f32 weights, f32 cache, every position.

#include <algorithm>
#include <cmath>
#include <string>

#include "gtest/gtest.h"
#include "tests/core/runner/loaded_model.h"
#include "tests/core/runner/oracle_golden.h"
#include "tests/core/runner/oracle_models.h"

namespace fucina {
namespace {

using testing::Crc32;
using testing::LoadedModel;
using testing::OracleGolden;
using testing::ReadOracleGolden;
using testing::Rows;

void Check(const testing::OracleModel& model, const OracleGolden& golden,
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
    const OracleGolden golden = ReadOracleGolden(model.name);
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
