#ifndef FUCINA_TESTS_CORE_RUNNER_ORACLE_GOLDEN_H_
#define FUCINA_TESTS_CORE_RUNNER_ORACLE_GOLDEN_H_

// What tests/oracles/numpy_forward.py wrote: the checksum of a model file,
// tokens, and logits in f64.

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "fucina/contract/decoder.h"
#include "gtest/gtest.h"

namespace fucina::testing {

inline std::uint32_t Crc32(const std::string& bytes) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : bytes) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
    }
  }
  return ~crc;
}

struct OracleGolden {
  std::uint32_t crc = 0;
  std::vector<TokenId> tokens;
  std::vector<std::vector<double>> rows;
};

// File tests/goldens/runner/NAME.txt. `missing` rows at the end are not in the
// file: a prediction layer has one less than there are tokens.
inline OracleGolden ReadOracleGolden(const std::string& name,
                                     std::size_t missing = 0) {
  std::ifstream in(std::string(FUCINA_SOURCE_DIR) + "/tests/goldens/runner/" +
                   name + ".txt");
  EXPECT_TRUE(in.good()) << name;
  std::string header;
  std::getline(in, header);
  OracleGolden golden;
  std::size_t tokens = 0;
  std::size_t vocab = 0;
  in >> std::hex >> golden.crc >> std::dec >> tokens >> vocab;
  golden.tokens.resize(tokens);
  for (TokenId& token : golden.tokens) in >> token;
  golden.rows.assign(tokens - missing, std::vector<double>(vocab));
  for (auto& row : golden.rows) {
    for (double& value : row) in >> value;
  }
  EXPECT_TRUE(in.good()) << name;
  return golden;
}

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_CORE_RUNNER_ORACLE_GOLDEN_H_
