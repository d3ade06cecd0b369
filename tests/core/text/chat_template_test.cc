#include "fucina/text/chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fucina/gguf/gguf_writer.h"

namespace fucina {
namespace {

std::string Golden(const std::string& name) {
  std::ifstream in(
      std::string(FUCINA_SOURCE_DIR) + "/tests/goldens/templates/" + name,
      std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::unique_ptr<ChatTemplate> FromText(const std::string& source) {
  auto out = ChatTemplate::FromText("t", source);
  EXPECT_TRUE(out.ok()) << out.status();
  return *std::move(out);
}

std::string Render(const ChatTemplate& chat_template,
                   const std::vector<ChatMessage>& messages,
                   const ChatRenderOptions& options = {}) {
  const auto out = chat_template.Render(messages, options);
  return out.ok() ? out->Text() : std::string(out.status().message());
}

const ChatMessage kSystem{.role = "system", .content = "You are a pirate."};
const ChatMessage kHi{.role = "user", .content = "Hi"};
const ChatMessage kNow{.role = "user", .content = "And now?"};
const ChatMessage kHello{
    .role = "assistant", .content = "Hello!", .reasoning_content = "plan A"};
const ChatMessage kResult{.role = "tool", .content = "22C"};

ChatMessage Call(const std::string& content,
                 std::optional<std::string> reasoning,
                 const std::vector<std::string>& arguments) {
  ChatMessage out{.role = "assistant",
                  .content = content,
                  .reasoning_content = std::move(reasoning)};
  for (const std::string& text : arguments) {
    out.tool_calls.push_back({.name = "get_weather", .arguments = text});
  }
  return out;
}

constexpr char kTool[] =
    R"([{"type":"function","function":{"name":"get_weather","description":)"
    R"("Weather","parameters":{"type":"object","properties":{"city":{"type":)"
    R"("string"}},"required":["city"]}}}])";

struct Literal {
  const char* name;
  std::vector<ChatMessage> messages;
  ChatRenderOptions options;
  const char* want;
};

ChatRenderOptions NoThink() { return {.enable_thinking = false}; }
ChatRenderOptions Tools() { return {.tools_json = kTool}; }

std::vector<Literal> Literals(const std::vector<const char*>& want) {
  const std::vector<ChatMessage> e = {
      kHi, Call("", "need weather", {R"({"city":"Paris"})"}), kResult};
  std::vector<ChatMessage> g = e;
  g.push_back({.role = "assistant", .content = "It is 22C."});
  g.push_back(kNow);
  return {
      {"A", {kSystem, kHi}, {}, want[0]},
      {"B", {kSystem, kHi}, NoThink(), want[1]},
      {"C", {kSystem, kHi, kHello, kNow}, NoThink(), want[2]},
      {"D", {kSystem, kHi}, Tools(), want[3]},
      {"E", e, {}, want[4]},
      {"F",
       {kHi,
        Call("Checking.", {},
             {R"({"city":"Paris"})", R"({"city":"Rome","n":2})"}),
        kResult,
        {.role = "tool", .content = "25C"}},
       {},
       want[5]},
      {"G", g, {}, want[6]},
  };
}

// The literal prompts of the published Qwen3 template.
const std::vector<const char*> kQwen3 = {
    "<|im_start|>system\nYou are a pirate.<|im_end|>\n<|im_start|>user\n"
    "Hi<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|>system\nYou are a pirate.<|im_end|>\n<|im_start|>user\n"
    "Hi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
    "<|im_start|>system\nYou are a pirate.<|im_end|>\n<|im_start|>user\n"
    "Hi<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n"
    "<|im_start|>user\nAnd now?<|im_end|>\n<|im_start|>assistant\n"
    "<think>\n\n</think>\n\n",
    "<|im_start|>system\nYou are a pirate.\n\n# Tools\n\nYou may call one or "
    "more functions to assist with the user query.\n\nYou are provided with "
    "function signatures within <tools></tools> XML tags:\n<tools>\n"
    "{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", "
    "\"description\": \"Weather\", \"parameters\": {\"type\": \"object\", "
    "\"properties\": {\"city\": {\"type\": \"string\"}}, \"required\": "
    "[\"city\"]}}}\n</tools>\n\nFor each function call, return a json object "
    "with function name and arguments within <tool_call></tool_call> XML "
    "tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": "
    "<args-json-object>}\n</tool_call><|im_end|>\n<|im_start|>user\n"
    "Hi<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n"
    "need weather\n</think>\n\n<tool_call>\n{\"name\": \"get_weather\", "
    "\"arguments\": {\"city\": \"Paris\"}}\n</tool_call><|im_end|>\n"
    "<|im_start|>user\n<tool_response>\n22C\n</tool_response><|im_end|>\n"
    "<|im_start|>assistant\n",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nChecking.\n"
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
    "\"Paris\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"get_weather\", "
    "\"arguments\": {\"city\": \"Rome\", \"n\": 2}}\n</tool_call><|im_end|>\n"
    "<|im_start|>user\n<tool_response>\n22C\n</tool_response>\n"
    "<tool_response>\n25C\n</tool_response><|im_end|>\n"
    "<|im_start|>assistant\n",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<tool_call>\n"
    "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n"
    "</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\n22C\n"
    "</tool_response><|im_end|>\n<|im_start|>assistant\nIt is 22C.<|im_end|>\n"
    "<|im_start|>user\nAnd now?<|im_end|>\n<|im_start|>assistant\n",
};

// The literal prompts of the published GLM-4.5 template.
const std::vector<const char*> kGlm45 = {
    "[gMASK]<sop><|system|>\nYou are a pirate.<|user|>\nHi<|assistant|>",
    "[gMASK]<sop><|system|>\nYou are a pirate.<|user|>\nHi/nothink"
    "<|assistant|>\n<think></think>",
    "[gMASK]<sop><|system|>\nYou are a pirate.<|user|>\nHi/nothink"
    "<|assistant|>\n<think></think>\nHello!<|user|>\nAnd now?/nothink"
    "<|assistant|>\n<think></think>",
    "[gMASK]<sop><|system|>\n# Tools\n\nYou may call one or more functions to "
    "assist with the user query.\n\nYou are provided with function signatures "
    "within <tools></tools> XML tags:\n<tools>\n{\"type\": \"function\", "
    "\"function\": {\"name\": \"get_weather\", \"description\": \"Weather\", "
    "\"parameters\": {\"type\": \"object\", \"properties\": {\"city\": "
    "{\"type\": \"string\"}}, \"required\": [\"city\"]}}}\n</tools>\n\nFor "
    "each function call, output the function name and arguments within the "
    "following XML format:\n<tool_call>{function-name}\n<arg_key>{arg-key-1}"
    "</arg_key>\n<arg_value>{arg-value-1}</arg_value>\n<arg_key>{arg-key-2}"
    "</arg_key>\n<arg_value>{arg-value-2}</arg_value>\n...\n</tool_call>"
    "<|system|>\nYou are a pirate.<|user|>\nHi<|assistant|>",
    "[gMASK]<sop><|user|>\nHi<|assistant|>\n<think>need weather</think>\n"
    "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris"
    "</arg_value>\n</tool_call><|observation|>\n<tool_response>\n22C\n"
    "</tool_response><|assistant|>",
    "[gMASK]<sop><|user|>\nHi<|assistant|>\n<think></think>\nChecking.\n"
    "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris"
    "</arg_value>\n</tool_call>\n<tool_call>get_weather\n<arg_key>city"
    "</arg_key>\n<arg_value>Rome</arg_value>\n<arg_key>n</arg_key>\n"
    "<arg_value>2</arg_value>\n</tool_call><|observation|>\n<tool_response>\n"
    "22C\n</tool_response>\n<tool_response>\n25C\n</tool_response>"
    "<|assistant|>",
    "[gMASK]<sop><|user|>\nHi<|assistant|>\n<think></think>\n<tool_call>"
    "get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n"
    "</tool_call><|observation|>\n<tool_response>\n22C\n</tool_response>"
    "<|assistant|>\n<think></think>\nIt is 22C.<|user|>\nAnd now?"
    "<|assistant|>",
};

TEST(ChatTemplate, Qwen3WritesItsPublishedPrompts) {
  const auto qwen3 = FromText(Golden("qwen3.jinja"));
  for (const Literal& l : Literals(kQwen3)) {
    EXPECT_EQ(Render(*qwen3, l.messages, l.options), l.want) << l.name;
  }
}

TEST(ChatTemplate, AtlasWritesTheSamePrompts) {
  const auto atlas = FromText(Golden("atlas.jinja"));
  for (const Literal& l : Literals(kQwen3)) {
    EXPECT_EQ(Render(*atlas, l.messages, l.options), l.want) << l.name;
  }
}

TEST(ChatTemplate, GlmWritesItsPublishedPrompts) {
  const auto glm = FromText(Golden("glm45_style.jinja"));
  for (const Literal& l : Literals(kGlm45)) {
    EXPECT_EQ(Render(*glm, l.messages, l.options), l.want) << l.name;
  }
}

// Without tools, the built-in formats are the families' own.
TEST(ChatTemplate, BuiltInsEqualTheFamilies) {
  const auto chatml = ChatTemplate::BuiltIn("chatml");
  const auto glm4 = ChatTemplate::BuiltIn("glm4");
  ASSERT_TRUE(chatml.ok() && glm4.ok()) << chatml.status() << glm4.status();
  for (int i = 0; i < 3; ++i) {
    const Literal q = Literals(kQwen3)[i];
    EXPECT_EQ(Render(**chatml, q.messages, q.options), q.want) << q.name;
    const Literal g = Literals(kGlm45)[i];
    EXPECT_EQ(Render(**glm4, g.messages, g.options), g.want) << g.name;
  }
  const auto llama3 = ChatTemplate::BuiltIn("llama3");
  ASSERT_TRUE(llama3.ok()) << llama3.status();
  EXPECT_EQ(Render(**llama3, {kSystem, kHi}),
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n"
            "You are a pirate.<|eot_id|><|start_header_id|>user"
            "<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant"
            "<|end_header_id|>\n\n");
  const auto gemma = ChatTemplate::BuiltIn("gemma", {.bos = "<bos>"});
  ASSERT_TRUE(gemma.ok()) << gemma.status();
  EXPECT_EQ(Render(**gemma, {kSystem, kHi, kHello, kNow}),
            "<bos><start_of_turn>user\nYou are a pirate.\n\nHi<end_of_turn>\n"
            "<start_of_turn>model\nHello!<end_of_turn>\n<start_of_turn>user\n"
            "And now?<end_of_turn>\n<start_of_turn>model\n");
  EXPECT_EQ((*gemma)->name(), "built-in gemma");
}

TEST(ChatTemplate, BuiltInsRefuseWhatTheyCannotSay) {
  for (const absl::string_view name : ChatTemplate::BuiltInNames()) {
    const auto t = ChatTemplate::BuiltIn(name);
    ASSERT_TRUE(t.ok()) << t.status();
    EXPECT_TRUE(absl::StrContains(
        Render(**t, {kHi, kHello}),
        "the template refuses: the final message must not be an assistant "
        "message"))
        << Render(**t, {kHi, kHello});
    EXPECT_TRUE(absl::StrContains(Render(**t, {kHi, kResult}),
                                  "the built-in format has no role tool"))
        << name;
    EXPECT_EQ(Render(**t, {kHi}, Tools()),
              absl::StrCat("tools: the chat template 'built-in ", name,
                           "' takes none (it never reads 'tools')"));
    EXPECT_EQ(Render(**t, {}), "at least one message is required");
    EXPECT_FALSE((*t)->supports_tools());
  }
  const auto gemma = ChatTemplate::BuiltIn("gemma");
  EXPECT_TRUE(absl::StrContains(Render(**gemma, {kHi, kSystem, kHi}),
                                "the system message must be the first one"));
  EXPECT_TRUE(
      absl::StrContains(Render(**gemma, {kSystem}),
                        "a system message needs a user message after it"));
  EXPECT_EQ(ChatTemplate::BuiltIn("nope").status().message(),
            "no built-in chat format 'nope'; there are: chatml, gemma, glm4, "
            "llama3");
}

TEST(ChatTemplate, ThinkingSwitchHasThreePositions) {
  const auto t = FromText(
      "{{ messages[0].content }}:{{ enable_thinking if enable_thinking is "
      "defined else 'unset' }}");
  EXPECT_EQ(Render(*t, {kHi}), "Hi:unset");
  EXPECT_EQ(Render(*t, {kHi}, {.enable_thinking = true}), "Hi:True");
  EXPECT_EQ(Render(*t, {kHi}, {.enable_thinking = false}), "Hi:False");
  EXPECT_EQ(Render(*t, {kHi},
                   {.enable_thinking = true,
                    .arguments_json = R"({"enable_thinking": false})"}),
            "Hi:False");
  EXPECT_TRUE(t->supports_thinking_switch());
}

TEST(ChatTemplate, ThinkingArgumentIsFoundAmongTheArguments) {
  const auto thinking = [](absl::string_view json) {
    return *ChatTemplate::ThinkingArgument(json);
  };
  EXPECT_EQ(thinking(R"({"a": 1, "enable_thinking": true})"), true);
  EXPECT_EQ(thinking(R"({"enable_thinking": true, "enable_thinking": false})"),
            false);
  EXPECT_EQ(thinking(R"({"enable_thinking": "no"})"), std::nullopt);
  EXPECT_EQ(thinking("{}"), std::nullopt);
  EXPECT_EQ(thinking("[1]"), std::nullopt);
  EXPECT_FALSE(ChatTemplate::ThinkingArgument("{").ok());
}

TEST(ChatTemplate, ArgumentsThatNobodyReadsAreReported) {
  const auto t = FromText("{{ messages[0].content }}{{ mood }}");
  const auto out =
      t->Render({{kHi}}, {.enable_thinking = false,
                          .arguments_json = R"({"mood": "!", "moood": 1})"});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->Text(), "Hi!");
  EXPECT_EQ(out->notes,
            (std::vector<std::string>{
                "the chat template 't' has no switch for thinking (it never "
                "reads 'enable_thinking')",
                "the chat template 't' never reads the argument 'moood'"}));
}

TEST(ChatTemplate, BadOptionsAreRefused) {
  const auto t =
      FromText("{% for m in messages %}{{ m.content }}{% endfor %}{{ tools }}");
  EXPECT_EQ(Render(*t, {kHi}, {.tools_json = "[{]"}),
            "tools: expected JSON, found something else at byte 2");
  EXPECT_EQ(Render(*t, {kHi}, {.tools_json = "{}"}),
            "tools: expected a JSON array of declarations");
  EXPECT_EQ(Render(*t, {kHi}, {.arguments_json = "[]"}),
            "template arguments: expected a JSON object");
  EXPECT_EQ(Render(*t, {kHi}, {.arguments_json = R"({"messages": []})"}),
            "template arguments: 'messages' has an option of its own");
  EXPECT_EQ(Render(*t, {kHi},
                   {.arguments_json = "{\"a\":" + std::string(200, '[') +
                                      std::string(200, ']') + "}"}),
            "template arguments: nests deeper than the 100 levels allowed");
  EXPECT_EQ(Render(*t, {kHi}, {.continue_final_message = true}),
            "continue_final_message needs a final assistant message, found "
            "role 'user'");
  EXPECT_EQ(Render(*t, {kHi, {.role = "assistant", .content = " \n"}},
                   {.continue_final_message = true}),
            "continue_final_message: the final message has no text to go on "
            "from");
  const auto shouts = FromText("{{ messages[-1].content|upper }}");
  EXPECT_EQ(Render(*shouts, {kHello}, {.continue_final_message = true}),
            "continue_final_message: the template does not write the final "
            "message as it is, so there is no place to go on from");
}

TEST(ChatTemplate, TheFinalMessageIsContinuedWhereItEnds) {
  const auto qwen3 = FromText(Golden("qwen3.jinja"));
  const ChatRenderOptions go_on{.continue_final_message = true};
  // As the reference cuts it: the empty block stays, the end marker goes.
  EXPECT_EQ(
      Render(*qwen3, {kHi, {.role = "assistant", .content = "Yes, "}}, go_on),
      "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n"
      "</think>\n\nYes, ");
  // A text that also stands in the template's own end marker.
  EXPECT_EQ(
      Render(*qwen3, {kHi, {.role = "assistant", .content = "im_end"}}, go_on),
      "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n"
      "</think>\n\nim_end");
  const auto glm = FromText(Golden("glm45_style.jinja"));
  EXPECT_EQ(
      Render(*glm, {kHi, {.role = "assistant", .content = "Yes, "}}, go_on),
      "[gMASK]<sop><|user|>\nHi<|assistant|>\n<think></think>\nYes,");
}

TEST(ChatTemplate, TellsWhereThePromptLeavesTheModel) {
  struct {
    const char* tail;
    PromptThinking want;
  } const cases[] = {
      {"<assistant>", PromptThinking::kUndecided},
      {"<assistant><think>", PromptThinking::kOpen},
      {"<assistant><think>\n", PromptThinking::kOpen},
      {"<assistant><think>\n\n</think>\n\n", PromptThinking::kClosed},
      {"<assistant></think>", PromptThinking::kClosed},
  };
  for (const auto& c : cases) {
    const auto t = FromText(absl::StrCat(
        "{# <think> #}{{ messages[0].content }}{{ '", c.tail, "' }}"));
    EXPECT_EQ(t->think_open(), "<think>");
    EXPECT_EQ(t->Render({{kHi}})->thinking, c.want) << c.tail;
  }
  const auto plain = FromText("{{ messages[0].content }}x");
  EXPECT_EQ(plain->think_open(), "");
  EXPECT_EQ(plain->Render({{kHi}})->thinking, PromptThinking::kUndecided);
  // A message that the model goes on with may hold half a block.
  const auto open = FromText(
      "{# </think> #}{% for m in messages %}{{ m.content }}|{% endfor %}");
  EXPECT_EQ(open->Render({{{.role = "assistant", .content = "<think>\nhm"}}},
                         {.continue_final_message = true})
                ->thinking,
            PromptThinking::kOpen);
  EXPECT_EQ(
      open->Render({{{.role = "assistant", .content = "<think>a</think>b"}}},
                   {.continue_final_message = true})
          ->thinking,
      PromptThinking::kClosed);
}

TEST(ChatTemplate, TellsHowReplySpellsToolCalls) {
  EXPECT_EQ(FromText(Golden("qwen3.jinja"))->tool_call_format(),
            ToolCallFormat::kHermes);
  EXPECT_EQ(FromText(Golden("glm45_style.jinja"))->tool_call_format(),
            ToolCallFormat::kGlm);
  EXPECT_EQ(FromText(Golden("llama3_style.jinja"))->tool_call_format(),
            ToolCallFormat::kNone);
  EXPECT_EQ(
      FromText("{# <function=x> <tool_call> arguments #}")->tool_call_format(),
      ToolCallFormat::kNone);
  EXPECT_TRUE(FromText(Golden("qwen3.jinja"))->supports_tools());
}

TEST(ChatTemplate, MessagesAreNormalised) {
  const auto t =
      FromText("{% for m in messages %}{{ m|tojson }}\n{% endfor %}");
  ChatMessage call = Call("x", {}, {R"({"b":1,"a":[1.0,"é",null]})", "oops"});
  call.tool_calls[0].id = "id1";
  call.name = "bob";
  ChatMessage result = kResult;
  result.tool_call_id = "id1";
  EXPECT_EQ(
      Render(*t, {{.role = "developer", .content = "be nice"}, call, result}),
      "{\"role\": \"system\", \"content\": \"be nice\"}\n"
      "{\"role\": \"assistant\", \"content\": \"x\", \"tool_calls\": [{\"id\": "
      "\"id1\", \"type\": \"function\", \"function\": {\"name\": "
      "\"get_weather\", \"arguments\": {\"b\": 1, \"a\": [1.0, \"é\", "
      "null]}}}, "
      "{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", "
      "\"arguments\": \"oops\"}}], \"name\": \"bob\"}\n"
      "{\"role\": \"tool\", \"content\": \"22C\", \"tool_call_id\": "
      "\"id1\"}\n");
}

TEST(ChatTemplate, TemplatesThatReadOnlyPartsGetParts) {
  const auto t = FromText(
      "{% for m in messages %}{% for p in m.content %}{% if p is mapping and "
      "p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}{% endfor %}");
  EXPECT_EQ(Render(*t, {kHi}), "Hi");
}

// Only the template's own text can be a control token; a role is trusted when
// it is one of the known words.
TEST(ChatTemplate, DataStaysData) {
  const auto t = FromText(
      "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}"
      "{% endfor %}{{ tools|tojson }}{{ mood }}{{ eos_token }}");
  const auto out = t->Render({{kHi, {.role = "im_end", .content = "x"}}},
                             {.tools_json = R"([{"name": "<|im_end|>"}])",
                              .arguments_json = R"({"mood": "<|im_end|>"})"});
  ASSERT_TRUE(out.ok()) << out.status();
  std::string marked;
  for (const jinja::Segment& s : out->segments) {
    marked += s.origin == jinja::Origin::kData ? "{" + s.text + "}" : s.text;
  }
  EXPECT_EQ(marked,
            "<|user|>{Hi}<|{im_end}|>{x[{\"name\": \"<|im_end|>\"}]"
            "<|im_end|>}");
}

TEST(ChatTemplate, JsonIsPassedAsItCame) {
  const auto t = FromText("{{ messages[0].content }}{{ x|tojson }}");
  EXPECT_EQ(
      Render(*t, {kHi},
             {.arguments_json =
                  R"({"x": {"z": 18446744073709551616, "a": -5, "f": 1e2, )"
                  R"("n": 9223372036854775808, "a": 1.50, "t": "\u00e9\n"}})"}),
      "Hi{\"z\": 18446744073709551616, \"a\": 1.5, \"f\": 100.0, \"n\": "
      "9223372036854775808, \"t\": \"é\\n\"}");
}

// --- from a model file ------------------------------------------------------

void AddTokens(GgufWriter& writer, const std::vector<std::string>& tokens) {
  writer.AddStrings("tokenizer.ggml.tokens", tokens);
}

absl::StatusOr<std::unique_ptr<ChatTemplate>> FromFile(GgufWriter& writer) {
  const auto bytes = writer.Serialize();
  EXPECT_TRUE(bytes.ok());
  const auto file = GgufFile::Parse("m.gguf", std::as_bytes(std::span(*bytes)));
  if (!file.ok()) return file.status();
  return ChatTemplate::FromGguf(**file);
}

TEST(ChatTemplate, ComesFromTheModelFile) {
  GgufWriter writer;
  AddTokens(writer, {"<s>", "</s>", "x"});
  writer.AddU32("tokenizer.ggml.bos_token_id", 0);
  writer.AddU32("tokenizer.ggml.eos_token_id", 1);
  writer.AddU32("tokenizer.ggml.padding_token_id", 77);
  writer.AddString("tokenizer.chat_template",
                   "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"
                   "[{{ pad_token }}{{ unk_token }}]");
  writer.AddString("tokenizer.chat_template.tool_use",
                   "with {{ tools|length }} <tool_call> arguments");
  const auto t = FromFile(writer);
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ((*t)->name(), "tokenizer.chat_template");
  EXPECT_EQ(Render(**t, {kHi}), "<s>Hi</s>[]");
  EXPECT_EQ(Render(**t, {kHi}, Tools()), "with 1 <tool_call> arguments");
  EXPECT_TRUE((*t)->supports_tools());
  EXPECT_EQ((*t)->tool_call_format(), ToolCallFormat::kHermes);
}

TEST(ChatTemplate, RefusalsNameTheFileAndSuggestABuiltIn) {
  {
    GgufWriter writer;
    AddTokens(writer, {"a", "<|im_start|>"});
    EXPECT_EQ(FromFile(writer).status(),
              absl::NotFoundError(
                  "m.gguf: no chat template (key 'tokenizer.chat_template'); "
                  "name a template file, or the built-in format 'chatml', "
                  "which its markers suggest"));
  }
  {
    GgufWriter writer;
    EXPECT_EQ(FromFile(writer).status(),
              absl::NotFoundError(
                  "m.gguf: no chat template (key 'tokenizer.chat_template'); "
                  "name a template file or one of the built-in formats: "
                  "chatml, gemma, glm4, llama3"));
  }
  const std::pair<const char*, const char*> guesses[] = {
      {"[gMASK]<sop>", "glm4"},
      {"<|im_start|>", "chatml"},
      {"<|start_header_id|>", "llama3"},
      {"<start_of_turn>", "gemma"},
  };
  for (const auto& [mark, name] : guesses) {
    GgufWriter writer;
    writer.AddString("tokenizer.chat_template",
                     absl::StrCat(mark, "\n{% include 'x' %}"));
    EXPECT_EQ(FromFile(writer).status(),
              absl::InvalidArgumentError(absl::StrCat(
                  "m.gguf: tokenizer.chat_template, line 2, column 4: "
                  "unsupported statement 'include'; name a template file, or "
                  "the built-in format '",
                  name, "', which its markers suggest")));
  }
}

TEST(ChatTemplate, ARefusalOfTheTemplateQuotesItsText) {
  const auto t = FromText(
      "{% if messages|length > 1 %}{{ raise_exception('one at a time!') }}"
      "{% endif %}{{ messages[0].content }}");
  EXPECT_EQ(Render(*t, {kHi, kHi}),
            "t, line 1, column 47: the template refuses: one at a time!");
  EXPECT_EQ(Render(*t, {kHi}), "Hi");
}

TEST(ChatTemplate, RenderLimitsReachTheTemplate) {
  const auto t = FromText("{% for i in range(9999) %}{{ i }}{% endfor %}");
  ChatRenderOptions options;
  options.render.limits.max_steps = 100;
  const auto out = t->Render({{kHi}}, options);
  EXPECT_EQ(out.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace fucina
