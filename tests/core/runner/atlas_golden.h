#ifndef FUCINA_TESTS_CORE_RUNNER_ATLAS_GOLDEN_H_
#define FUCINA_TESTS_CORE_RUNNER_ATLAS_GOLDEN_H_

// What the tests of the trained models share: the golden files, as their
// writers lay them out, and a forward over prompt and golden continuation.

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "fucina/runner/runner.h"
#include "gtest/gtest.h"
#include "tests/core/runner/loaded_model.h"

namespace fucina::testing {

// A file of the source tree.
inline std::string ReadFile(const std::string& name) {
  std::ifstream in(std::string(FUCINA_SOURCE_DIR) + "/" + name,
                   std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

// The numbers of the array behind `"key": [`.
inline std::vector<double> Numbers(const std::string& json,
                                   const std::string& key) {
  const std::size_t at = json.find("\"" + key + "\": [");
  EXPECT_NE(at, std::string::npos) << key;
  const std::size_t begin = json.find('[', at) + 1;
  std::string text = json.substr(begin, json.find(']', begin) - begin);
  std::replace(text.begin(), text.end(), ',', ' ');
  std::istringstream in(text);
  return {std::istream_iterator<double>(in), {}};
}

inline std::vector<TokenId> Ids(const std::string& json,
                                const std::string& key) {
  std::vector<TokenId> ids;
  for (double id : Numbers(json, key)) ids.push_back(TokenId(id));
  return ids;
}

// All rows of the prompt and its continuation, whose last token says nothing
// more. Empty, with a failure, when the forward fails.
inline Rows GoldenRows(const Runner& runner, std::vector<TokenId> tokens,
                       const std::vector<TokenId>& greedy) {
  tokens.insert(tokens.end(), greedy.begin(), greedy.end() - 1);
  const auto state = runner.NewState(128);
  EXPECT_TRUE(state.ok()) << state.status();
  if (!state.ok()) return {};
  SequenceStep step = {
      .tokens = tokens, .state = state->get(), .rows = LogitRows::kAll};
  const absl::Status status = runner.Forward({&step, 1});
  EXPECT_TRUE(status.ok()) << status;
  return status.ok() ? LogitsOf(step) : Rows{};
}

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_CORE_RUNNER_ATLAS_GOLDEN_H_
