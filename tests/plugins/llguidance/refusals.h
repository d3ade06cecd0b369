#ifndef FUCINA_TESTS_PLUGINS_LLGUIDANCE_REFUSALS_H_
#define FUCINA_TESTS_PLUGINS_LLGUIDANCE_REFUSALS_H_

// What a grammar's text is refused with.

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/plugins/llguidance/toy_constraint.h"

namespace fucina::testing {

class Grammars : public ::testing::Test {
 protected:
  std::string Refusal(const char* kind, const std::string& text) {
    const auto made = MakeConstraint(*toy_.tokenizer, {{kind, text}});
    if (made.ok()) return "accepted";
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument)
        << made.status();
    return std::string(made.status().message());
  }

  ToyVocabulary toy_;
};

inline std::string Repeat(absl::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) absl::StrAppend(&result, text);
  return result;
}

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_PLUGINS_LLGUIDANCE_REFUSALS_H_
