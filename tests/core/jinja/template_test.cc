#include "fucina/jinja/template.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/core/jinja/json_value.h"

namespace fucina::jinja {
namespace {

std::vector<std::string> Variables(const std::string& source) {
  const auto parsed = Template::Parse("t", source);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const auto variables = (*parsed)->variables();
  return {variables.begin(), variables.end()};
}

using Names = std::vector<std::string>;

TEST(Template, TellsWhichVariablesItReads) {
  EXPECT_EQ(Variables("{{ b }}{{ a.c['d'] }}{{ a }}"), (Names{"a", "b"}));
  EXPECT_EQ(Variables("{% if x is defined %}{% endif %}"), Names{"x"});
  EXPECT_EQ(Variables("{% set y = 1 %}{{ y }}"), Names{});
  EXPECT_EQ(Variables("{% set y = y + 1 %}{{ y }}"), Names{"y"});
  EXPECT_EQ(Variables("{{ y }}{% set y = 1 %}"), Names{"y"});
  EXPECT_EQ(Variables("{% for x in xs if x != q %}{{ x }}{{ loop.index }}"
                      "{% endfor %}{{ x }}"),
            (Names{"q", "x", "xs"}));
  EXPECT_EQ(Variables("{% macro m(a, b=c) %}{{ a }}{{ b }}{{ d }}{{ caller() }}"
                      "{% endmacro %}{{ m(1) }}"),
            (Names{"c", "d"}));
  EXPECT_EQ(Variables("{% call(x) f(x) %}{{ x }}{% endcall %}"),
            (Names{"f", "x"}));
  EXPECT_EQ(Variables("{% with a = b %}{{ a }}{% endwith %}"), Names{"b"});
  EXPECT_EQ(Variables("{% set ns = namespace(a=b) %}{% set ns.c = d %}"),
            (Names{"b", "d"}));
  EXPECT_EQ(Variables("{{ range(3) }}{{ raise_exception('x') }}"), Names{});
  EXPECT_EQ(Variables("{% set x %}{{ q }}{% endset %}{{ x }}"), Names{"q"});
  EXPECT_EQ(Variables("{% raw %}{{ a }}{% endraw %}{# {{ b }} #}"), Names{});
}

TEST(Template, QwenReadsWhatItReads) {
  const auto parsed =
      Template::Parse("t", ReadText("tests/goldens/templates/qwen3.jinja"));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(
      Names((*parsed)->variables().begin(), (*parsed)->variables().end()),
      (Names{"add_generation_prompt", "enable_thinking", "messages", "tools"}));
  EXPECT_TRUE((*parsed)->Reads("enable_thinking"));
  EXPECT_FALSE((*parsed)->Reads("thinking_budget"));
  EXPECT_FALSE((*parsed)->Reads(""));
}

// The goldens' moment is one of summer; local time must not matter.
TEST(Template, StrftimeNowTellsTheGivenTime) {
  const auto parsed = Template::Parse("t", "{{ strftime_now('%Y') }}");
  RenderOptions options;
  options.now = std::time_t{1'000'000'000};  // September 2001 everywhere
  EXPECT_EQ(JoinSegments(*(*parsed)->Render(Value::MakeMap(), options)),
            "2001");
  const auto now = Template::Parse("t", "{{ strftime_now('%Y-%m-%d') }}");
  const std::string today = JoinSegments(*(*now)->Render(Value::MakeMap()));
  EXPECT_EQ(today.size(), 10u);
  EXPECT_GE(today, "2024");
}

TEST(Template, AVariableHidesAGlobal) {
  const auto parsed = Template::Parse("t", "{{ range }}{{ dict }}");
  Value context = Value::MakeMap();
  context.Set("range", Value::Data("r"));
  context.Set("dict", Value::Int(5));
  EXPECT_EQ(JoinSegments(*(*parsed)->Render(context)), "r5");
}

TEST(Template, BigIntegersKeepTheirDigits) {
  const auto parsed = Template::Parse(
      "t",
      "{{ n }} {{ n|tojson }} {{ [n] }} {{ n is integer }} {{ n is number }} "
      "{{ n == n }} {{ n|int }} {{ {n: 1}|tojson }}");
  Value context = Value::MakeMap();
  context.Set("n", Value::Number("18446744073709551616"));
  EXPECT_EQ(JoinSegments(*(*parsed)->Render(context)),
            "18446744073709551616 18446744073709551616 [18446744073709551616] "
            "True True True 18446744073709551616 "
            "{\"18446744073709551616\": 1}");
}

// Undecodable bytes count as one character each and go through untouched.
TEST(Template, BytesThatAreNoUtf8GoThrough) {
  const std::string bad = "a\xFF\xC3(\xE2\x82z\xF0\x9F";
  Value context = Value::MakeMap();
  context.Set("s", Value::Data(bad));
  auto render = [&](const std::string& source) {
    return JoinSegments(*(*Template::Parse("t", source))->Render(context));
  };
  EXPECT_EQ(render("{{ s }}"), bad);
  EXPECT_EQ(render("{{ s|length }}"), "9");
  EXPECT_EQ(render("{{ s[1] }}"), "\xFF");
  EXPECT_EQ(render("{{ s[::-1][::-1] }}"), bad);
  EXPECT_EQ(render("{{ s.upper().strip() }}"), "A\xFF\xC3(\xE2\x82Z\xF0\x9F");
  EXPECT_EQ(render("{{ s|tojson }}"), "\"" + bad + "\"");
  EXPECT_EQ(render("{{ s[:2]|tojson(true) }}"), "\"a\\udcff\"");
  EXPECT_EQ(render("{{ [s[:2]] }}"), "['a\\udcff']");
  EXPECT_EQ(render("{% for c in s %}{{ c }}{% endfor %}"), bad);
}

TEST(Template, NulBytesAreOrdinary) {
  Value context = Value::MakeMap();
  context.Set("s", Value::Data(std::string("a\0b", 3)));
  const auto parsed = Template::Parse("t", std::string("x\0{{ s }}", 9));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(JoinSegments(*(*parsed)->Render(context)),
            std::string("x\0a\0b", 5));
}

TEST(Template, TheContextIsNotChanged) {
  const auto parsed = Template::Parse(
      "t",
      "{% set _ = l.append(4) %}{% set _ = d.update(x=1) %}{{ l }}{{ d }}");
  Value context = Value::MakeMap();
  context.Set("l", Value::MakeList({Value::Int(1)}));
  context.Set("d", Value::MakeMap());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(JoinSegments(*(*parsed)->Render(context)), "[1, 4]{'x': 1}");
  }
}

// docs/chat-templates.md promises names; each must be known here.
TEST(Template, TheDocumentedNamesExist) {
  const std::string doc = ReadText("docs/chat-templates.md");
  auto names = [&](const std::string& row) {
    const std::size_t begin = doc.find("| " + row + " | `");
    EXPECT_NE(begin, std::string::npos) << row;
    const std::size_t start = doc.find('`', begin) + 1;
    const std::vector<std::string> out =
        absl::StrSplit(doc.substr(start, doc.find('`', start) - start), ' ');
    EXPECT_GT(out.size(), 6u) << row;
    return out;
  };
  for (const std::string& name : names("filters")) {
    EXPECT_TRUE(Template::Parse("t", "{{ x|" + name + " }}").ok()) << name;
  }
  for (const std::string& name : names("tests")) {
    EXPECT_TRUE(Template::Parse("t", "{{ x is " + name + " }}").ok()) << name;
  }
  Value context = Value::MakeMap();
  context.Set("text", Value::Data("x"));
  context.Set("list", Value::MakeList());
  context.Set("dict", Value::MakeMap());
  for (const std::string kind : {"text", "list", "dict"}) {
    for (const std::string& name : names(kind + " methods")) {
      const auto parsed = Template::Parse(
          "t", "{{ " + kind + "." + name + " is callable }}" + "{{ " + kind +
                   "." + name + "(1, 2, 3, 4, 5, 6) }}");
      const auto rendered = (*parsed)->Render(context);
      EXPECT_FALSE(
          absl::StrContains(rendered.status().message(), "unsupported method"))
          << kind << " " << rendered.status();
      EXPECT_TRUE(absl::StrContains(rendered.status().message(), "takes"))
          << kind << " " << name << " " << rendered.status();
    }
  }
  for (const std::string& name : names("functions")) {
    const auto parsed = Template::Parse("t", "{{ " + name + " is callable }}");
    EXPECT_EQ(JoinSegments(*(*parsed)->Render(Value::MakeMap())), "True");
  }
  for (const std::string& name : names("loop variable")) {
    const auto parsed = Template::Parse(
        "t", "{% for a in [1, 2, 3] %}{% if loop.index == 2 %}{{ loop." + name +
                 " is defined }}{% endif %}{% endfor %}");
    EXPECT_EQ(JoinSegments(*(*parsed)->Render(Value::MakeMap())), "True")
        << name;
  }
}

// A long conversation is no long wait: a million bytes in a thousand turns.
TEST(Template, LongConversationsFitTheLimits) {
  const auto parsed =
      Template::Parse("t", ReadText("tests/goldens/templates/qwen3.jinja"));
  Value messages = Value::MakeList();
  const std::string text(4000, 'x');
  for (int i = 0; i < 1000; ++i) {
    Value message = Value::MakeMap();
    message.Set("role", Value::Trusted(i % 2 == 0 ? "user" : "assistant"));
    message.Set("content", Value::Data(text));
    messages.Add(std::move(message));
  }
  Value context = Value::MakeMap();
  context.Set("messages", std::move(messages));
  const auto rendered = (*parsed)->Render(context);
  ASSERT_TRUE(rendered.ok()) << rendered.status();
  EXPECT_GT(JoinSegments(*rendered).size(), 4'000'000u);
}

TEST(Template, RendersFromSeveralThreads) {
  const auto parsed =
      Template::Parse("t", ReadText("tests/goldens/templates/qwen3.jinja"));
  const Json goldens = ReadJson("tests/goldens/jinja/chats.json");
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (const Json& golden : goldens) {
        if (golden["template"] != "qwen3.jinja" || !golden.contains("want")) {
          continue;
        }
        const auto got = (*parsed)->Render(ToValue(golden["context"]));
        if (!got.ok() || JoinSegments(*got) != golden["want"]) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace fucina::jinja
