// The JSON Schema Test Suite, draft 2020-12: which schemas are refused and with
// which words, and which instances of the others could be replies. The suite
// says which instances are valid; tests/oracles/json_schema_suite.py made the
// golden.

#include <fstream>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/llguidance/schema_instances.h"
#include "tests/plugins/llguidance/toy_constraint.h"

namespace fucina {
namespace {

using nlohmann::json;

TEST(JsonSchemaSuite, NothingInvalidIsAReply) {
  std::ifstream in(FUCINA_SOURCE_DIR
                   "/tests/goldens/constrained/json_schema_suite.json");
  const json golden = json::parse(in);
  const auto tokenizer = LoadAtlas();
  int refused = 0;
  int valid_accepted = 0;
  int valid_rejected = 0;
  int wrong = 0;
  for (const json& group : golden.at("groups")) {
    const std::string where = group.at("file").get<std::string>() + ": " +
                              group.at("description").get<std::string>();
    const auto made = testing::MakeConstraint(
        *tokenizer, {{"json_schema", group.at("schema").get<std::string>()}});
    EXPECT_EQ(made.ok() ? "" : std::string(made.status().message()),
              group.value("refused", ""))
        << where;
    if (!made.ok()) {
      ++refused;
      continue;
    }
    for (const json& test : group.at("tests")) {
      const std::string instance = test.at(0).get<std::string>();
      const bool valid = test.at(1).get<bool>();
      const bool accepted = testing::Accepts(**made, *tokenizer, instance);
      EXPECT_EQ(accepted, test.at(2).get<bool>()) << where << " " << instance;
      if (valid) ++(accepted ? valid_accepted : valid_rejected);
      const bool optional =
          group.at("file").get<std::string>().find("optional/") == 0;
      // Formats are the engine's; of all else nothing invalid gets through.
      if (accepted && !valid) {
        EXPECT_TRUE(optional) << where << " " << instance;
        ++wrong;
      }
    }
  }
  const json& summary = golden.at("summary");
  EXPECT_EQ(refused, summary.at("groups_refused").get<int>());
  EXPECT_EQ(valid_accepted, summary.at("valid_accepted").get<int>());
  EXPECT_EQ(valid_rejected, summary.at("valid_rejected").get<int>());
  EXPECT_EQ(wrong, summary.at("invalid_accepted").get<int>());
  // The replies that an independent validator read when the golden was made.
  EXPECT_EQ(summary.at("samples_invalid").get<int>(), 0);
  EXPECT_GT(summary.at("samples_valid").get<int>(), 35000);
}

}  // namespace
}  // namespace fucina
