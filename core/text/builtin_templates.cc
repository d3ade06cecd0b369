#include "core/text/builtin_templates.h"

#include <utility>

#include "absl/strings/match.h"

namespace fucina {
namespace {

// Past thinking is dropped and thinking is switched off as Qwen3 does it.
constexpr absl::string_view kChatml = R"JINJA(
{%- set ns = namespace(query=messages|length - 1) %}
{%- for message in messages %}
    {%- if message.role == 'user' %}
        {%- set ns.query = loop.index0 %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt and messages[-1].role == 'assistant' %}
    {{- raise_exception('the final message must not be an assistant message') }}
{%- endif %}
{%- for message in messages %}
    {%- set text = message.content %}
    {%- if message.role == 'assistant' %}
        {%- set reasoning = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning = message.reasoning_content %}
        {%- elif '</think>' in text %}
            {%- set reasoning = text.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
            {%- set text = text.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {{- '<|im_start|>assistant\n' }}
        {%- if loop.index0 > ns.query and reasoning %}
            {{- '<think>\n' + reasoning.strip('\n') + '\n</think>\n\n' + text.lstrip('\n') }}
        {%- else %}
            {{- text }}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role in ['system', 'user'] %}
        {{- '<|im_start|>' + message.role + '\n' + text + '<|im_end|>\n' }}
    {%- else %}
        {{- raise_exception('the built-in format has no role ' + message.role) }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}
)JINJA";

constexpr absl::string_view kGemma = R"JINJA(
{{- bos_token }}
{%- if add_generation_prompt and messages[-1].role == 'assistant' %}
    {{- raise_exception('the final message must not be an assistant message') }}
{%- endif %}
{%- set ns = namespace(system='') %}
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {%- if not loop.first %}
            {{- raise_exception('the system message must be the first one') }}
        {%- endif %}
        {%- set ns.system = message.content + '\n\n' %}
    {%- elif message.role == 'user' %}
        {{- '<start_of_turn>user\n' + ns.system + message.content + '<end_of_turn>\n' }}
        {%- set ns.system = '' %}
    {%- elif message.role == 'assistant' %}
        {{- '<start_of_turn>model\n' + message.content + '<end_of_turn>\n' }}
    {%- else %}
        {{- raise_exception('the built-in format has no role ' + message.role) }}
    {%- endif %}
{%- endfor %}
{%- if ns.system %}
    {{- raise_exception('a system message needs a user message after it') }}
{%- endif %}
{%- if add_generation_prompt %}
    {{- '<start_of_turn>model\n' }}
{%- endif %}
)JINJA";

constexpr absl::string_view kGlm4 = R"JINJA(
{{- '[gMASK]<sop>' }}
{%- if add_generation_prompt and messages[-1].role == 'assistant' %}
    {{- raise_exception('the final message must not be an assistant message') }}
{%- endif %}
{%- set quiet = enable_thinking is defined and not enable_thinking %}
{%- set ns = namespace(query=-1) %}
{%- for message in messages %}
    {%- if message.role == 'user' %}
        {%- set ns.query = loop.index0 %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set text = message.content %}
    {%- if message.role == 'user' %}
        {{- '<|user|>\n' + text }}
        {%- if quiet and not text.endswith('/nothink') %}
            {{- '/nothink' }}
        {%- endif %}
    {%- elif message.role == 'system' %}
        {{- '<|system|>\n' + text }}
    {%- elif message.role == 'assistant' %}
        {%- set reasoning = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning = message.reasoning_content %}
        {%- elif '</think>' in text %}
            {%- set reasoning = text.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
            {%- set text = text.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {{- '<|assistant|>\n<think>' }}
        {%- if loop.index0 > ns.query %}
            {{- reasoning.strip() }}
        {%- endif %}
        {{- '</think>' }}
        {%- if text.strip() %}
            {{- '\n' + text.strip() }}
        {%- endif %}
    {%- else %}
        {{- raise_exception('the built-in format has no role ' + message.role) }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|assistant|>' }}
    {%- if quiet %}
        {{- '\n<think></think>' }}
    {%- endif %}
{%- endif %}
)JINJA";

constexpr absl::string_view kLlama3 = R"JINJA(
{{- '<|begin_of_text|>' }}
{%- if add_generation_prompt and messages[-1].role == 'assistant' %}
    {{- raise_exception('the final message must not be an assistant message') }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role not in ['system', 'user', 'assistant'] %}
        {{- raise_exception('the built-in format has no role ' + message.role) }}
    {%- endif %}
    {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' + message.content + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
)JINJA";

constexpr BuiltInTemplate kTemplates[] = {
    {"chatml", kChatml},
    {"gemma", kGemma},
    {"glm4", kGlm4},
    {"llama3", kLlama3},
};

}  // namespace

std::span<const BuiltInTemplate> BuiltInTemplates() { return kTemplates; }

absl::string_view GuessBuiltIn(absl::string_view text) {
  static constexpr std::pair<absl::string_view, absl::string_view> kMarks[] = {
      {"[gMASK]<sop>", "glm4"},
      {"<|im_start|>", "chatml"},
      {"<|start_header_id|>", "llama3"},
      {"<start_of_turn>", "gemma"},
  };
  for (const auto& [mark, name] : kMarks) {
    if (absl::StrContains(text, mark)) return name;
  }
  return "";
}

}  // namespace fucina
