#include "tests/tiny_models/tiny_tokenizer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace fucina::testing {
namespace {

enum TokenType : std::int32_t { kNormal = 1, kControl = 3, kUserDefined = 4 };

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  std::vector<std::string> merges;

  std::uint32_t Id(absl::string_view token) const {
    return static_cast<std::uint32_t>(
        std::find(tokens.begin(), tokens.end(), token) - tokens.begin());
  }
};

std::string Utf8(std::uint32_t code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xC0 | code_point >> 6),
          static_cast<char>(0x80 | (code_point & 0x3F))};
}

// The visible character that stands for a byte in byte-level vocabularies:
// itself when it is visible in Latin-1, else the next free one from U+0100.
// Source: the byte encoder of GPT-2.
std::string VisibleByte(int byte) {
  const auto is_visible = [](int b) {
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
  };
  if (is_visible(byte)) return Utf8(static_cast<std::uint32_t>(byte));
  int invisible_before = 0;
  for (int b = 0; b < byte; ++b) invisible_before += is_visible(b) ? 0 : 1;
  return Utf8(static_cast<std::uint32_t>(256 + invisible_before));
}

bool IsGlm(absl::string_view architecture) { return architecture == "glm4moe"; }

Vocabulary MakeVocabulary(absl::string_view architecture) {
  Vocabulary vocabulary;
  const auto add = [&](std::string token, TokenType type) {
    vocabulary.tokens.push_back(std::move(token));
    vocabulary.types.push_back(type);
  };
  for (int byte = 0; byte < 256; ++byte) add(VisibleByte(byte), kNormal);

  const std::string space = VisibleByte(' ');
  const std::vector<std::pair<std::string, std::string>> merges = {
      {space, "t"}, {"h", "e"},    {"i", "n"},   {"e", "r"},
      {"a", "n"},   {"o", "n"},    {space, "a"}, {space + "t", "he"},
      {"l", "l"},   {"o", "r"},    {"in", "g"},  {"an", "d"},
      {"he", "ll"}, {"hell", "o"}, {space, "w"}, {space + "w", "or"},
  };
  for (const auto& [left, right] : merges) {
    vocabulary.merges.push_back(absl::StrCat(left, " ", right));
    add(left + right, kNormal);
  }

  if (IsGlm(architecture)) {
    for (const char* token : {"<|endoftext|>", "[gMASK]", "<sop>", "<|system|>",
                              "<|user|>", "<|assistant|>", "<|observation|>"}) {
      add(token, kControl);
    }
  } else {
    for (const char* token : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
      add(token, kControl);
    }
  }
  for (const char* token :
       {"<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>",
        "</tool_response>"}) {
    add(token, kUserDefined);
  }
  return vocabulary;
}

constexpr absl::string_view kChatMlTemplate = R"({%- if tools %}
    {{- '<|im_start|>system\n# Tools\n' }}
    {%- for tool in tools %}
        {{- (tool | tojson) + '\n' }}
    {%- endfor %}
    {{- '<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %})";

constexpr absl::string_view kGlmTemplate = R"([gMASK]<sop>
{%- if tools %}
    {{- '<|system|>\n# Tools\n' }}
    {%- for tool in tools %}
        {{- (tool | tojson) + '\n' }}
    {%- endfor %}
{%- endif %}
{%- for message in messages %}
    {{- '<|' + message.role + '|>\n' + message.content }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|assistant|>' }}
    {%- if enable_thinking is defined and not enable_thinking %}
        {{- '\n<think></think>' }}
    {%- endif %}
{%- endif %})";

}  // namespace

int TinyTokenizerRows(absl::string_view architecture) {
  const auto tokens =
      static_cast<int>(MakeVocabulary(architecture).tokens.size());
  return (tokens + 31) / 32 * 32;
}

void AddTinyTokenizer(absl::string_view architecture, GgufWriter* writer) {
  const Vocabulary vocabulary = MakeVocabulary(architecture);
  const bool glm = IsGlm(architecture);
  const std::uint32_t end_of_text = vocabulary.Id("<|endoftext|>");
  writer->AddString("tokenizer.ggml.model", "gpt2");
  writer->AddString("tokenizer.ggml.pre", glm ? "glm4" : "qwen2");
  writer->AddStrings("tokenizer.ggml.tokens", vocabulary.tokens);
  writer->AddI32s("tokenizer.ggml.token_type", vocabulary.types);
  writer->AddStrings("tokenizer.ggml.merges", vocabulary.merges);
  writer->AddU32("tokenizer.ggml.eos_token_id",
                 glm ? end_of_text : vocabulary.Id("<|im_end|>"));
  writer->AddU32("tokenizer.ggml.padding_token_id", end_of_text);
  writer->AddU32("tokenizer.ggml.bos_token_id",
                 glm ? vocabulary.Id("[gMASK]") : end_of_text);
  if (glm) {
    writer->AddU32("tokenizer.ggml.eot_token_id", vocabulary.Id("<|user|>"));
    writer->AddU32("tokenizer.ggml.eom_token_id",
                   vocabulary.Id("<|observation|>"));
  }
  writer->AddBool("tokenizer.ggml.add_bos_token", false);
  writer->AddString("tokenizer.chat_template",
                    glm ? kGlmTemplate : kChatMlTemplate);
}

}  // namespace fucina::testing
