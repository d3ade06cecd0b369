// Every message that a user can meet, with its place.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fucina/jinja/template.h"

namespace fucina::jinja {
namespace {

struct Case {
  std::string source;
  std::string message;
};

std::string ParseError(const std::string& source) {
  const auto parsed = Template::Parse("m.gguf", source);
  if (parsed.ok()) return "parses";
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(parsed.status().message());
}

std::string RenderError(const std::string& source) {
  const auto parsed = Template::Parse("m.gguf", source);
  if (!parsed.ok()) return std::string(parsed.status().message());
  Value context = Value::MakeMap();
  context.Set("s", Value::Data("text"));
  context.Set("d", Value::MakeMap({{"k", Value::Int(1)}}));
  context.Set("l", Value::MakeList({Value::Int(1), Value::Int(2)}));
  const auto rendered = (*parsed)->Render(context);
  if (rendered.ok()) return "renders: " + JoinSegments(*rendered);
  EXPECT_EQ(rendered.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(rendered.status().message());
}

TEST(Errors, UnsupportedConstructsAreNamedWithTheirPlace) {
  const Case cases[] = {
      {"a\n  {% include 'x' %}",
       "2, column 6: unsupported statement 'include'"},
      {"{% import 'x' as y %}", "1, column 4: unsupported statement 'import'"},
      {"{% from 'x' import y %}", "1, column 4: unsupported statement 'from'"},
      {"{% extends 'x' %}", "1, column 4: unsupported statement 'extends'"},
      {"{% block b %}{% endblock %}",
       "1, column 4: unsupported statement 'block'"},
      {"{% do l.append(1) %}", "1, column 4: unsupported statement 'do'"},
      {"{% trans %}a{% endtrans %}",
       "1, column 4: unsupported statement 'trans'"},
      {"{% autoescape true %}{% endautoescape %}",
       "1, column 4: unsupported statement 'autoescape'"},
      {"{{ s | nope }}", "1, column 8: unsupported filter 'nope'"},
      {"{{ s|escape }}", "1, column 6: unsupported filter 'escape'"},
      {"{{ s|a.b }}", "1, column 6: unsupported filter 'a.b'"},
      {"{{ s is nope }}", "1, column 9: unsupported test 'nope'"},
      {"{{ s is escaped }}", "1, column 9: unsupported test 'escaped'"},
      {"{{ s|join(*l) }}", "1, column 6: unsupported '*' argument of a filter"},
      {"{{ s is eq(other=1) }}",
       "1, column 9: unsupported keyword or '*' argument of a test"},
      {"{{ l[0:1, 2] }}",
       "1, column 5: unsupported subscript with several slices"},
      {"{{ '\\N{DASH}' }}", "1, column 5: unsupported escape sequence '\\N'"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ParseError(c.source), absl::StrCat("m.gguf, line ", c.message))
        << c.source;
  }
}

TEST(Errors, SyntaxErrorsSayWhatWasExpectedAndFound) {
  const Case cases[] = {
      {"{{ }}", "1, column 4: expected an expression, found '}}'"},
      {"ab\n{{ é + }}", "2, column 4: unexpected character 'é'"},
      {"{{ 1 2 }}", "1, column 6: expected '}}', found 2"},
      {"{{ 'a' 1.5 }}", "1, column 8: expected '}}', found 1.5"},
      {"{{ s", "1, column 5: expected '}}', found the end of the template"},
      {"{{ (1 }}", "1, column 7: unexpected '}'"},
      {"{{ 1) }}", "1, column 5: unexpected ')'"},
      {"{{ [1 2] }}", "1, column 7: expected ',', found 2"},
      {"{{ {1} }}", "1, column 6: expected ':', found '}'"},
      {"{{ l[] }}", "1, column 6: expected an index or a slice, found ']'"},
      {"{{ s. }}", "1, column 7: expected a name or a number, found '}}'"},
      {"{{ s| }}", "1, column 7: expected the name of a filter, found '}}'"},
      {"{{ s|a. }}", "1, column 9: expected the name of a filter, found '}}'"},
      {"{{ s is }}", "1, column 9: expected the name of a test, found '}}'"},
      {"{{ s is odd is even }}",
       "1, column 13: tests cannot be chained with 'is'"},
      {"{{ 'abc }}", "1, column 4: string is never closed"},
      {"{{ 'abc\\", "1, column 4: string is never closed"},
      {"{{ '\\x4' }}",
       "1, column 5: escape sequence needs 2 hexadecimal digits"},
      {"{{ '\\u12", "1, column 5: escape sequence is cut"},
      {"{{ '\\ud800' }}",
       "1, column 5: escape sequence names no character: U+D800"},
      {"{{ 99999999999999999999 }}",
       "1, column 4: integer '99999999999999999999' does not fit 64 bits"},
      {"{{ 007 }}", "1, column 4: integer with a leading zero"},
      {"{{ 0b12 }}", "1, column 4: bad number '0b12'"},
      {"{# a", "1, column 1: comment is never closed with '#}'"},
      {"x{% raw %}a", "1, column 2: raw block is never closed with endraw"},
      {"{% if s %}a", "1, column 11: 'if' is never closed with 'endif'"},
      {"{% for x in l %}", "1, column 17: 'for' is never closed with 'endfor'"},
      {"{% macro m() %}",
       "1, column 16: 'macro' is never closed with 'endmacro'"},
      {"{% endif %}", "1, column 4: unexpected 'endif' without its opening"},
      {"{% else %}", "1, column 4: unexpected 'else' without its opening"},
      {"{% 5 %}", "1, column 4: expected the name of a statement, found 5"},
      {"{% if s %}{% else %}{% else %}{% endif %}",
       "1, column 24: expected 'endif', found 'else'"},
      {"{% if s x %}{% endif %}", "1, column 9: expected '%}', found 'x'"},
      {"{% for x l %}", "1, column 10: expected 'in', found 'l'"},
      {"{% for 1 in l %}",
       "1, column 8: expected a name to assign to, found 1"},
      {"{% for loop in l %}{% endfor %}",
       "1, column 8: cannot assign to 'loop' in a for"},
      {"{% set none = 1 %}", "1, column 8: cannot assign to 'none'"},
      {"{% set n. = 1 %}",
       "1, column 11: expected the name of an attribute, found '='"},
      {"{% set a, b %}{% endset %}", "1, column 13: expected '=', found '%}'"},
      {"{% break %}", "1, column 4: 'break' outside of a loop"},
      {"{% for x in l %}{% macro m() %}{% continue %}",
       "1, column 35: 'continue' outside of a loop"},
      {"{% macro 1() %}",
       "1, column 10: expected the name of a macro, found 1"},
      {"{% macro none() %}", "1, column 1: cannot assign to 'none'"},
      {"{% macro m(1) %}",
       "1, column 12: expected the name of a parameter, found 1"},
      {"{% macro m(true) %}", "1, column 12: cannot assign to 'true'"},
      {"{% macro m(a, a) %}", "1, column 15: parameter 'a' twice"},
      {"{% macro m(a=1, b) %}",
       "1, column 17: parameter 'b' needs a default like those before"},
      {"{% call 1 %}{% endcall %}", "1, column 9: a call block needs a call"},
      {"{{ f(a=1, a=2) }}", "1, column 11: argument 'a' twice"},
      {"{{ f(a=1, 2) }}",
       "1, column 11: a positional argument cannot follow others"},
      {"{{ f(**d, a=1) }}",
       "1, column 11: a keyword argument cannot follow '**'"},
      {"{{ f(**d, **d) }}", "1, column 11: a call takes one '**' argument"},
      {"{{ f(*l, *l) }}",
       "1, column 10: a call takes one '*' argument, before any '**'"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ParseError(c.source), absl::StrCat("m.gguf, line ", c.message))
        << c.source;
  }
}

TEST(Errors, RenderErrorsPointAtTheExpression) {
  const Case cases[] = {
      {"a\n{{ missing.x }}", "2, column 12: 'missing' is undefined"},
      {"{{ d.nope.x }}", "1, column 11: a dict has no attribute 'nope'"},
      {"{{ l[7].x }}", "1, column 9: a list has no element 7"},
      {"{{ missing + 1 }}", "1, column 12: 'missing' is undefined"},
      {"{{ 1 + s }}", "1, column 6: '+' does not work on int and str"},
      {"{{ s < 1 }}", "1, column 6: '<' does not work on str and int"},
      {"{{ 1 / 0 }}", "1, column 6: division by zero"},
      {"{{ -s }}", "1, column 4: unary - needs a number, found str"},
      {"{{ +s }}", "1, column 4: unary + needs a number, found str"},
      {"{{ 9223372036854775807 + 1 }}",
       "1, column 24: the result does not fit a 64-bit integer"},
      {"{{ 10 ** 30 }}",
       "1, column 7: the result does not fit a 64-bit integer"},
      {"{{ (-8) ** 0.5 }}", "1, column 9: the power is not a real number"},
      {"{{ 1e300 ** 2 }}", "1, column 10: the power is too large"},
      {"{{ s % 1 }}", "1, column 6: unsupported: '%' formatting of text"},
      {"{{ 1 in 5 }}",
       "1, column 6: 'in' needs a text, list or dict, found int"},
      {"{{ 1 in s }}", "1, column 6: 'in' a text needs a text, found int"},
      {"{{ l in d }}", "1, column 6: a list cannot be a key"},
      {"{{ {l: 1} }}", "1, column 4: a list cannot be a key"},
      {"{{ s() }}", "1, column 5: a str cannot be called"},
      {"{{ missing() }}", "1, column 11: 'missing' is undefined"},
      {"{{ none[1:] }}", "1, column 8: a none cannot be sliced"},
      {"{{ l['a':] }}", "1, column 5: a slice needs integers, found str"},
      {"{{ l[::0] }}", "1, column 5: the step of a slice cannot be 0"},
      {"{% for x in 5 %}{% endfor %}", "1, column 1: a int cannot be iterated"},
      {"{% set a, b = 1, 2, 3 %}",
       "1, column 8: cannot unpack 3 values into 2 names"},
      {"{% set d.x = 1 %}",
       "1, column 8: cannot set attribute 'x' of a dict; only a namespace "
       "takes "
       "attributes"},
      {"{{ s.zfill(3) }}", "1, column 11: unsupported method 'zfill' of a str"},
      {"{{ s.upper(1) }}",
       "1, column 11: upper takes at most 0 arguments, found 1"},
      {"{{ s.split(x=1) }}", "1, column 11: split takes no argument 'x'"},
      {"{{ s.split(',', sep='') }}",
       "1, column 11: split got argument 'sep' twice"},
      {"{{ s.replace('a') }}", "1, column 13: replace needs an argument 'new'"},
      {"{{ s.split('') }}", "1, column 11: split: empty separator"},
      {"{{ s.strip(1) }}", "1, column 11: strip needs a text, found int"},
      {"{{ s.split(',', 'x') }}",
       "1, column 11: split needs an integer, found str"},
      {"{{ s.index('zz') }}", "1, column 11: index: the text does not occur"},
      {"{{ l.pop(9) }}", "1, column 9: pop: no such element"},
      {"{{ d.pop('q') }}", "1, column 9: pop: the dict has no such key"},
      {"{{ l.index(9) }}", "1, column 11: the list does not hold that value"},
      {"{{ s|replace('a') }}",
       "1, column 6: filter 'replace' needs an argument 'new'"},
      {"{{ s|upper(1) }}",
       "1, column 6: filter 'upper' takes at most 0 arguments, found 1"},
      {"{{ s|indent(zz=1) }}",
       "1, column 6: filter 'indent' takes no argument 'zz'"},
      {"{{ 1 is divisibleby }}",
       "1, column 9: test 'divisibleby' needs an argument 'num'"},
      {"{{ s|abs }}", "1, column 6: 'abs' needs a number, found str"},
      {"{{ s|round }}", "1, column 6: 'round' needs a number, found str"},
      {"{{ 1.5|round(1, 'up') }}",
       "1, column 8: 'round' knows the methods common, ceil and floor"},
      {"{{ '5'|int(0, 7) }}",
       "1, column 8: unsupported base of 'int'; 2, 8, 10 and 16 are known"},
      {"{{ s|items }}", "1, column 6: 'items' needs a dict, found str"},
      {"{{ l|dictsort }}", "1, column 6: 'dictsort' needs a dict, found list"},
      {"{{ d|dictsort(by='x') }}",
       "1, column 6: 'dictsort' sorts by key or by value"},
      {"{{ l|map }}",
       "1, column 6: 'map' needs the name of a filter or an attribute"},
      {"{{ l|map('zz')|list }}",
       "1, column 6: unsupported filter 'zz' in 'map'"},
      {"{{ l|select('zz')|list }}",
       "1, column 6: unsupported test 'zz' in 'select' or its kin"},
      {"{{ l|selectattr }}",
       "1, column 6: 'selectattr' and 'rejectattr' need an attribute"},
      {"{{ l|select|length }}", "1, column 13: a generator has no length"},
      {"{{ l|select }}",
       "1, column 1: a generator cannot be printed; make a list of it"},
      {"{{ l|select|last }}",
       "1, column 13: 'last' cannot go backwards through a generator"},
      {"{{ l|batch(0) }}", "1, column 6: 'batch' needs a size of at least 1"},
      {"{{ l|slice(0) }}", "1, column 6: 'slice' needs a number of at least 1"},
      {"{{ [1, 'a']|sort }}", "1, column 13: '<' does not work on str and int"},
      {"{{ range }}", "1, column 1: a function cannot be printed"},
      {"{{ d.keys }}", "1, column 1: a method cannot be printed"},
      {"{{ missing|tojson }}",
       "1, column 12: 'missing' is undefined; it cannot be written as JSON"},
      {"{{ range|tojson }}",
       "1, column 10: a function cannot be written as JSON"},
      {"{{ {(1, 2): 3}|tojson }}",
       "1, column 16: a tuple cannot be a key in JSON"},
      {"{{ s|tojson(separators=',') }}",
       "1, column 6: 'tojson' needs two texts as separators"},
      {"{{ ('<'|safe) + '<' }}",
       "1, column 15: unsupported: text with HTML characters added to a result "
       "of 'safe'"},
      {"{{ range('a') }}", "1, column 9: range needs integers, found str"},
      {"{{ range(1, 2, 0) }}", "1, column 9: the step of range cannot be 0"},
      {"{{ dict(1) }}", "1, column 8: a int cannot be iterated"},
      {"{{ dict([[1]]) }}", "1, column 8: dict needs pairs, found 1 elements"},
      {"{{ namespace(1, 2) }}",
       "1, column 13: namespace takes at most one argument"},
      {"{{ cycler() }}", "1, column 10: cycler needs values"},
      {"{{ joiner()(1) }}", "1, column 12: a joiner takes no arguments"},
      {"{{ strftime_now(1) }}", "1, column 16: strftime_now needs a text"},
      {"{{ strftime_now('%Q') }}",
       "1, column 16: unsupported format of strftime_now: '%Q'"},
      {"{{ raise_exception('no ' ~ s) }}",
       "1, column 19: the template refuses: no text"},
      {"{{ f(**l) }}", "1, column 5: '**' needs a dict, found list"},
      {"{{ dict(a=1, **{'a': 2}) }}", "1, column 8: argument 'a' given twice"},
      {"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
       "1, column 35: macro 'm' takes at most 1 arguments, got 2"},
      {"{% macro m(a) %}{% endmacro %}{{ m(b=2) }}",
       "1, column 35: macro 'm' takes no argument 'b'"},
      {"{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}",
       "1, column 35: macro 'm' got argument 'a' twice"},
      {"{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}",
       "1, column 25: no caller: this macro was not called by a call block"},
      {"{% macro m(a) %}{{ a.b }}{% endmacro %}{{ m() }}",
       "1, column 22: argument 'a' was not given"},
      {"{% for x in l %}{{ loop(l) }}{% endfor %}",
       "1, column 24: loop() needs a for with 'recursive'"},
      {"{% for x in l %}{{ loop.nope.x }}{% endfor %}",
       "1, column 30: loop has no attribute 'nope'"},
      {"{% for x in l %}{{ loop.cycle() }}{% endfor %}",
       "1, column 30: loop.cycle needs values"},
      {"{% for x in l %}{{ loop.previtem.x }}{% endfor %}",
       "1, column 34: there is no previous item"},
      {"{{ ([]|first).x }}",
       "1, column 15: there is no first item: the sequence is empty"},
      {"{{ namespace().x.y }}",
       "1, column 18: the namespace has no attribute 'x'"},
      {"{{ ('a' if false).x }}",
       "1, column 19: an 'if' expression without 'else' whose condition is "
       "false is undefined"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(RenderError(c.source), absl::StrCat("m.gguf, line ", c.message))
        << c.source;
  }
}

// What a model file must not reach. Python's sandbox refuses the same names.
TEST(Errors, ValuesHaveNoAttributesOfTheHost) {
  for (const std::string name :
       {"__class__", "__init__", "__globals__", "mro", "func_globals", "_x"}) {
    for (const std::string object :
         {"s", "d", "l", "5", "range", "s.upper", "namespace()", "none"}) {
      EXPECT_EQ(
          RenderError(absl::StrCat("{{ ", object, ".", name, " is defined }}")),
          object == "5"
              ? RenderError(absl::StrCat("{{ 5.", name, " is defined }}"))
              : "renders: False")
          << object << name;
      EXPECT_TRUE(absl::StartsWith(
          RenderError(absl::StrCat("{{ (", object, ").", name, ".x }}")),
          "m.gguf, line 1"))
          << object << name;
    }
  }
  for (const std::string name : {"self", "config", "open", "lipsum", "os"}) {
    EXPECT_EQ(RenderError(absl::StrCat("{{ ", name, " is defined }}")),
              "renders: False");
  }
}

TEST(Errors, ATemplateOverOneMebibyteIsRefused) {
  EXPECT_EQ(ParseError(std::string((1 << 20) + 1, 'x')),
            "m.gguf: template of 1048577 bytes, at most 1048576 are allowed");
  EXPECT_EQ(ParseError(std::string(1 << 20, 'x')), "parses");
}

}  // namespace
}  // namespace fucina::jinja
