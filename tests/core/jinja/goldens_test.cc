// Every template of the goldens against what Python's Jinja 3.1.6 made of it;
// see tests/oracles/jinja_goldens.py.

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fucina/jinja/template.h"
#include "tests/core/jinja/json_value.h"

namespace fucina::jinja {
namespace {

// The moment that the goldens' strftime_now tells: 2024-07-26 13:05:09, local.
std::time_t GoldenNow() {
  std::tm tm{};
  tm.tm_year = 124;
  tm.tm_mon = 6;
  tm.tm_mday = 26;
  tm.tm_hour = 13;
  tm.tm_min = 5;
  tm.tm_sec = 9;
  tm.tm_isdst = -1;
  return std::mktime(&tm);
}

absl::StatusOr<std::string> RenderSource(const std::string& source,
                                         const Json& context, bool trim) {
  ParseOptions options;
  options.trim_blocks = options.lstrip_blocks = trim;
  auto parsed = Template::Parse("t", source, options);
  if (!parsed.ok()) return parsed.status();
  RenderOptions render;
  render.now = GoldenNow();
  render.limits.max_cpu_ms = 60'000;  // sanitizers are slow
  auto segments = (*parsed)->Render(ToValue(context), render);
  if (!segments.ok()) return segments.status();
  return JoinSegments(*segments);
}

// What Python accepts and this subset refuses, with the words it uses.
const std::map<std::string, std::string>& Refused() {
  static const auto& refused = *new std::map<std::string, std::string>{
      {"{{ '\\N{DASH}' }}", "unsupported escape sequence '\\N'"},
      // Python folds this constant to an undefined value; with a variable it
      // is an error there, too.
      {"{{ none[1:] }}", "a none cannot be sliced"},
      {"{{ '%s'|format('x') if false else 1 }}", "unsupported filter 'format'"},
      {"{{ range(3) }}", "a range cannot be printed; make a list of it"},
  };
  return refused;
}

TEST(Goldens, SnippetsEqualPythonsJinja) {
  const Json goldens = ReadJson("tests/goldens/jinja/snippets.json");
  int compared = 0;
  for (const Json& golden : goldens["cases"]) {
    const std::string source = golden["template"];
    SCOPED_TRACE(
        absl::StrCat(golden["group"].get<std::string>(), ": ", source));
    const auto got = RenderSource(source, goldens["context"], golden["trim"]);
    ++compared;
    if (const auto refused = Refused().find(source);
        refused != Refused().end()) {
      EXPECT_TRUE(absl::StrContains(got.status().message(), refused->second))
          << got.status();
      continue;
    }
    if (golden.contains("want")) {
      EXPECT_TRUE(got.ok()) << got.status();
      if (got.ok()) {
        EXPECT_EQ(*got, golden["want"].get<std::string>());
      }
      continue;
    }
    // An error of Python's is one of ours, and never a crash or another code.
    if (got.ok()) {
      ADD_FAILURE() << "gave " << *got << ", Python says " << golden["message"];
      continue;
    }
    EXPECT_TRUE(got.status().code() == absl::StatusCode::kInvalidArgument ||
                got.status().code() == absl::StatusCode::kResourceExhausted)
        << got.status();
    EXPECT_TRUE(absl::StartsWith(got.status().message(), "t, line "))
        << got.status();
  }
  EXPECT_GT(compared, 1000);
}

TEST(Goldens, ChatsEqualPythonsJinja) {
  const Json goldens = ReadJson("tests/goldens/jinja/chats.json");
  std::set<std::string> templates;
  for (const Json& golden : goldens) {
    const std::string name = golden["template"];
    templates.insert(name);
    SCOPED_TRACE(absl::StrCat(name, ": ", golden["case"].get<std::string>()));
    const auto got = RenderSource(ReadText("tests/goldens/templates/" + name),
                                  golden["context"], true);
    if (golden.contains("want")) {
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_EQ(*got, golden["want"].get<std::string>());
      continue;
    }
    ASSERT_FALSE(got.ok()) << *got;
    EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument);
    if (golden["error"] == "TemplateError") {
      EXPECT_TRUE(absl::StrContains(got.status().message(),
                                    golden["message"].get<std::string>()))
          << got.status();
    }
  }
  EXPECT_EQ(templates.size(), 6u);
}

// Windows line ends and a byte order mark change nothing.
TEST(Goldens, ChatsAreTheSameWithWindowsLineEnds) {
  const Json goldens = ReadJson("tests/goldens/jinja/chats.json");
  for (const Json& golden : goldens) {
    if (!golden.contains("want")) continue;
    const std::string name = golden["template"];
    std::string source = "\xEF\xBB\xBF";
    for (const char c : ReadText("tests/goldens/templates/" + name)) {
      if (c == '\n') source.push_back('\r');
      source.push_back(c);
    }
    const auto got = RenderSource(source, golden["context"], true);
    ASSERT_TRUE(got.ok()) << name << got.status();
    EXPECT_EQ(*got, golden["want"].get<std::string>()) << name;
  }
}

}  // namespace
}  // namespace fucina::jinja
