// A template without end, without measure or without bottom is stopped.

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fucina/jinja/template.h"

namespace fucina::jinja {
namespace {

std::string Repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

absl::Status Render(const std::string& source,
                    const RenderLimits& limits = {}) {
  auto parsed = Template::Parse("t", source);
  if (!parsed.ok()) return parsed.status();
  RenderOptions options;
  options.limits = limits;
  Value context = Value::MakeMap();
  context.Set("s", Value::Data("0123456789"));
  return (*parsed)->Render(context, options).status();
}

void ExpectExhausted(const absl::Status& status, const std::string& message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), message)) << status;
  EXPECT_TRUE(absl::StartsWith(status.message(), "t, line 1, column "))
      << status;
}

TEST(Limits, StepsAreCounted) {
  ExpectExhausted(
      Render("{% for a in range(1000) %}{% for b in range(1000) %}{{ a }}"
             "{% endfor %}{% endfor %}",
             {.max_steps = 50'000}),
      "template needs more than the 50000 steps allowed");
}

TEST(Limits, ProcessorTimeIsCounted) {
  const auto start = std::chrono::steady_clock::now();
  ExpectExhausted(
      Render("{% for a in range(99999) %}{% for b in range(99999) %}"
             "{% set x = a * b %}{% endfor %}{% endfor %}",
             {.max_steps = INT64_MAX, .max_cpu_ms = 50}),
      "template needs more than the 50 ms of processor time allowed");
  // Generous: the machine may be busy, the thread's own time is bounded.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Limits, ALoopThatFeedsItselfEnds) {
  ExpectExhausted(
      Render("{% set l = [1] %}{% for x in l %}{% set _ = l.append(x) %}"
             "{% endfor %}"),
      "allowed");
}

TEST(Limits, OutputIsBounded) {
  ExpectExhausted(Render("{% for a in range(200) %}{{ s * 100 }}{% endfor %}",
                         {.max_output_bytes = 100'000}),
                  "template writes more than the 100000 bytes allowed");
  EXPECT_TRUE(Render("{% for a in range(100) %}{{ s * 100 }}{% endfor %}",
                     {.max_output_bytes = 100'000})
                  .ok());
}

TEST(Limits, TheDefaultOutputLimitIs16MiB) {
  ExpectExhausted(
      Render("{% for a in range(1700) %}{{ s * 1000 }}{% endfor %}"),
      "template writes more than the 16777216 bytes allowed");
}

TEST(Limits, GrowingDataIsBoundedBeforeItIsMade) {
  const char* const sources[] = {
      "{% set x = 'a' * 99999999999 %}",
      "{% set x = [1] * 99999999999 %}",
      "{% set x = [1] * 9223372036854775807 %}",
      "{% set x = s * 9223372036854775807 %}",
      "{% set x = 99999999999 * 'a' %}",
      "{% set ns = namespace(x='ab') %}{% for i in range(60) %}"
      "{% set ns.x = ns.x + ns.x %}{% endfor %}",
      "{% set ns = namespace(x='ab') %}{% for i in range(60) %}"
      "{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}"
      "{% set ns.x = ns.x + ns.x %}{% endfor %}",
      "{% set ns = namespace(x='ab') %}{% for i in range(60) %}"
      "{% set ns.x = ns.x.replace('a', ns.x) %}{% endfor %}",
      "{% set ns = namespace(x='ab') %}{% for i in range(60) %}"
      "{% set ns.x = ns.x|replace('', ns.x) %}{% endfor %}",
      "{% set ns = namespace(x=['a', 'b']) %}{% for i in range(60) %}"
      "{% set ns.x = [ns.x|join('--'), ns.x|join('--')] %}{% endfor %}",
      "{% set ns = namespace(x='ab') %}{% for i in range(60) %}"
      "{% set y %}{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x = y %}"
      "{% endfor %}",
      // A small structure that prints large: every level holds two of the next.
      "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}"
      "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|tojson }}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}"
      "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
      "{% set ns = namespace(x=[1]) %}{% set ms = namespace(x=[1]) %}"
      "{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}"
      "{% set ms.x = [ms.x, ms.x] %}{% endfor %}{{ ns.x == ms.x }}",
      "{{ range(100001) }}",
      "{{ [1]|batch(99999999999, 'x')|list }}",
      "{{ [1]|slice(99999999999)|list }}",
      "{{ range(3)|tojson(indent=1001) }}{{ 1/0 }}",
  };
  for (const std::string source : sources) {
    const absl::Status status = Render(source);
    EXPECT_FALSE(status.ok()) << source;
    EXPECT_TRUE(absl::StrContains(status.message(), "allowed") ||
                status.code() == absl::StatusCode::kInvalidArgument)
        << source << status;
  }
}

// The worst case of a naive search, which would take hours.
TEST(Limits, SearchIsLinear) {
  const std::string source =
      "{% set x = 'a' * 4000000 %}{% set y = 'a' * 2000000 ~ 'b' %}"
      "{{ y in x }}{{ x.find(y) }}{{ x.rfind('b' ~ y) }}{{ x.count(y) }}"
      "{{ x.split(y)|length }}{{ x.replace(y, '')|length }}"
      "{{ x.rsplit(y)|length }}";
  const absl::Status status = Render(source, {.max_cpu_ms = 20'000});
  EXPECT_TRUE(status.ok()) << status;
}

TEST(Limits, RecursionIsBounded) {
  ExpectExhausted(Render("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
                  "macro 'm' calls nest deeper than the 100 allowed");
  ExpectExhausted(Render("{% macro a() %}{{ b() }}{% endmacro %}"
                         "{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}"),
                  "calls nest deeper than the 100 allowed");
  ExpectExhausted(Render("{% for x in [1] recursive %}{{ loop([1]) }}"
                         "{% endfor %}"),
                  "recursive loops nest deeper than the 100 allowed");
}

TEST(Limits, ValuesThatHoldThemselvesEnd) {
  ExpectExhausted(Render("{% set l = [1] %}{% set _ = l.append(l) %}{{ l }}"),
                  "nests deeper than the 600 evaluations allowed");
  ExpectExhausted(
      Render("{% set l = [1] %}{% set _ = l.append(l) %}{{ l|tojson }}"),
      "nests deeper than the 600 evaluations allowed");
  ExpectExhausted(
      Render("{% set l = [1] %}{% set _ = l.append(l) %}"
             "{% set m = [1] %}{% set _ = m.append(m) %}{{ l == m }}"),
      "nests deeper than the 600 evaluations allowed");
  EXPECT_TRUE(Render("{% set ns = namespace() %}{% set ns.x = ns %}"
                     "{% set d = {} %}{% set _ = d.update(d=d) %}ok")
                  .ok());
}

// Freed without recursion, however long the chain.
TEST(Limits, LongChainsOfContainersAreFreed) {
  EXPECT_TRUE(Render("{% set ns = namespace(l=[]) %}"
                     "{% for i in range(90000) %}{% set ns.l = [ns.l] %}"
                     "{% endfor %}ok",
                     {.max_cpu_ms = 20'000})
                  .ok());
}

TEST(Limits, NestingInTheSourceIsBounded) {
  for (const auto& [open, close] :
       {std::pair<std::string, std::string>{"(", ")"},
        {"[", "]"},
        {"{1:", "}"},
        {"not ", ""},
        {"-", ""},
        {"s[", "]"},
        {"range(", ")"},
        {"1 if 1 else ", ""}}) {
    for (const int times : {150, 900, 50'000}) {
      const absl::Status status = Render("{{ " + Repeated(open, times) + "1" +
                                         Repeated(close, times) + " }}");
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << open;
      EXPECT_TRUE(
          absl::StrContains(status.message(), "nests deeper than 100 levels") ||
          absl::StrContains(status.message(), "brackets nest too deep"))
          << open << status;
    }
    EXPECT_NE(
        Render("{{ " + Repeated(open, 20) + "1" + Repeated(close, 20) + " }}")
            .message()
            .find("deep"),
        0u);
  }
  for (const std::string tag : {"if s", "for x in s", "with", "filter upper"}) {
    const absl::Status status = Render(Repeated("{% " + tag + " %}", 5000));
    EXPECT_TRUE(
        absl::StrContains(status.message(), "nests deeper than 100 levels"))
        << tag << status;
  }
}

TEST(Limits, LongChainsOfOperatorsAreBounded) {
  for (const std::string link :
       {" + 1", ".x", "|upper", "[0]", " and 1", "()"}) {
    const absl::Status status = Render("{{ s" + Repeated(link, 30'000) + " }}");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(status.message(),
                                  "expression is deeper than 400 operations"))
        << link << status;
  }
  // Hundreds are no trouble.
  EXPECT_TRUE(Render("{{ s" + Repeated(" + 'a'", 390) + " }}").ok());
  EXPECT_TRUE(Render("{{ s" + Repeated(" ~ 'a'", 30'000) + " }}").ok());
  EXPECT_TRUE(
      Render("{% if 0 %}" + Repeated("{% elif 0 %}", 30'000) + "{% endif %}")
          .ok());
}

// Depth of expressions times depth of calls must fit the stack.
TEST(Limits, DeepExpressionsInDeepCallsEnd) {
  const absl::Status status =
      Render("{% macro m() %}{{ (m() ~ '')" + Repeated("|upper", 300) +
             " }}{% endmacro %}{{ m() }}");
  ExpectExhausted(status, "nests deeper than the 600 evaluations allowed");
}

TEST(Limits, ADeepContextIsRefused) {
  Value value = Value::Int(1);
  for (int i = 0; i < 700; ++i) value = Value::MakeList({value});
  Value context = Value::MakeMap();
  context.Set("x", std::move(value));
  const auto parsed = Template::Parse("t", "{{ 1 }}");
  const auto rendered = (*parsed)->Render(context);
  EXPECT_EQ(rendered.status().message(),
            "t: a variable nests deeper than 600 levels");
}

TEST(Limits, ALimitReachedLeavesTheTemplateUsable) {
  const auto parsed =
      Template::Parse("t", "{% for a in range(n) %}x{% endfor %}");
  RenderOptions options;
  options.limits.max_steps = 1000;
  Value many = Value::MakeMap();
  many.Set("n", Value::Int(90'000));
  Value few = Value::MakeMap();
  few.Set("n", Value::Int(3));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE((*parsed)->Render(many, options).ok());
    EXPECT_EQ(JoinSegments(*(*parsed)->Render(few, options)), "xxx");
  }
}

}  // namespace
}  // namespace fucina::jinja
