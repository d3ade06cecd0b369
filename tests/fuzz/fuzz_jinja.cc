// Chat templates as a hostile model file may carry them. The input is template
// text, optionally a NUL byte, and then text of a message.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "fucina/jinja/template.h"

namespace {

using fucina::jinja::Origin;
using fucina::jinja::Value;

void Require(bool condition) {
  if (!condition) std::abort();
}

// The byte 1 stands in every text that the template is given and in none of
// its own, so it tells whether an origin was lost.
Value Context(absl::string_view text) {
  const std::string marked = std::string("\x01") + std::string(text);
  Value function = Value::MakeMap();
  function.Set("name", Value::Data(marked));
  function.Set("arguments", Value::MakeMap({{marked, Value::Float(1.5)}}));
  Value call = Value::MakeMap();
  call.Set("function", std::move(function));
  Value message = Value::MakeMap();
  message.Set("role", Value::Trusted("user"));
  message.Set("content", Value::Data(marked));
  message.Set("tool_calls", Value::MakeList({std::move(call)}));
  Value answer = Value::MakeMap();
  answer.Set("role", Value::Trusted("assistant"));
  answer.Set("content", Value::Data("<think>\n\x01</think>\n \x01Yes\xC3\x89"));
  Value out = Value::MakeMap();
  out.Set("messages", Value::MakeList({std::move(message), std::move(answer)}));
  out.Set("tools", Value::None());
  out.Set("add_generation_prompt", Value::Bool(true));
  out.Set("bos_token", Value::Trusted("<s>"));
  out.Set("n", Value::Int(7));
  out.Set("big", Value::Number("123456789012345678901234567890"));
  out.Set("l", Value::MakeList({Value::Int(3), Value::Float(-0.0),
                                Value::Data("\x01 b"), Value::None()}));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t nul = input.find('\0');
  const absl::string_view source = input.substr(0, nul);
  const absl::string_view text =
      nul == absl::string_view::npos ? "" : input.substr(nul + 1);
  const auto parsed = fucina::jinja::Template::Parse("t", source);
  if (!parsed.ok()) {
    Require(parsed.status().code() == absl::StatusCode::kInvalidArgument);
    Require(absl::StartsWith(parsed.status().message(), "t"));
    return 0;
  }
  fucina::jinja::RenderOptions options;
  options.now = 1'700'000'000;
  options.limits.max_steps = 200'000;
  options.limits.max_cpu_ms = 2'000;
  options.limits.max_output_bytes = 1 << 20;
  options.limits.max_work_bytes = 16 << 20;
  const auto rendered = (*parsed)->Render(Context(text), options);
  if (!rendered.ok()) {
    Require(rendered.status().code() == absl::StatusCode::kInvalidArgument ||
            rendered.status().code() == absl::StatusCode::kResourceExhausted);
    return 0;
  }
  Require(fucina::jinja::JoinSegments(*rendered).size() <= 1 << 20);
  // With neither the byte nor an escape in the template, it is data.
  const bool marks_data =
      source.find_first_of("\x01\\") == absl::string_view::npos;
  for (std::size_t i = 0; i < rendered->size(); ++i) {
    const auto& segment = (*rendered)[i];
    Require(!segment.text.empty());
    Require(i == 0 || segment.origin != (*rendered)[i - 1].origin);
    if (marks_data && segment.origin == Origin::kTemplate) {
      Require(segment.text.find('\x01') == std::string::npos);
    }
  }
  return 0;
}
