#include "fucina/text/chat_template.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/text/builtin_templates.h"
#include "core/text/json_value.h"
#include "fucina/diag/status_macros.h"

namespace fucina {
namespace {

using absl::string_view;
using jinja::Origin;
using jinja::Segment;
using jinja::Value;

constexpr string_view kTemplateKey = "tokenizer.chat_template";
constexpr string_view kToolTemplateKey = "tokenizer.chat_template.tool_use";

struct ThinkMarkers {
  string_view open, close;
};
constexpr ThinkMarkers kThinkMarkers[] = {
    {"<think>", "</think>"},
    {"<seed:think>", "</seed:think>"},
    {"[THINK]", "[/THINK]"},
};

// Roles whose spelling a template may put into a control token, as in
// '<|' + message.role + '|>'. Any other role came from outside.
bool IsKnownRole(string_view role) {
  return role == "system" || role == "user" || role == "assistant" ||
         role == "tool";
}

std::string Suggestion(string_view text) {
  const string_view guess = GuessBuiltIn(text);
  if (guess.empty()) {
    return absl::StrCat(
        "; name a template file or one of the built-in "
        "formats: ",
        absl::StrJoin(ChatTemplate::BuiltInNames(), ", "));
  }
  return absl::StrCat("; name a template file, or the built-in format '", guess,
                      "', which its markers suggest");
}

absl::Status WithSuggestion(const absl::Status& status, string_view text) {
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), Suggestion(text)));
}

// --- messages ---------------------------------------------------------------

Value ToolCallValue(const ToolCall& call) {
  Value function = Value::MakeMap();
  function.Set("name", Value::Data(call.name));
  // Templates treat a mapping and a text differently; what a client sent as a
  // JSON text is an object for them.
  auto arguments = ParseJson("arguments", call.arguments);
  function.Set("arguments",
               arguments.ok() && arguments->kind() == Value::Kind::kMap
                   ? *std::move(arguments)
                   : Value::Data(call.arguments));
  Value out = Value::MakeMap();
  if (!call.id.empty()) out.Set("id", Value::Data(call.id));
  out.Set("type", Value::Data("function"));
  out.Set("function", std::move(function));
  return out;
}

Value ContentValue(const std::string& content, bool typed) {
  if (!typed) return Value::Data(content);
  Value part = Value::MakeMap();
  part.Set("type", Value::Trusted("text"));
  part.Set("text", Value::Data(content));
  return Value::MakeList({std::move(part)});
}

Value MessageValue(const ChatMessage& message, bool typed_content) {
  const string_view role =
      message.role == "developer" ? string_view("system") : message.role;
  Value out = Value::MakeMap();
  out.Set("role", IsKnownRole(role) ? Value::Trusted(role) : Value::Data(role));
  out.Set("content", ContentValue(message.content, typed_content));
  if (message.reasoning_content.has_value()) {
    out.Set("reasoning_content", Value::Data(*message.reasoning_content));
  }
  if (!message.tool_calls.empty()) {
    Value calls = Value::MakeList();
    for (const ToolCall& call : message.tool_calls) {
      calls.Add(ToolCallValue(call));
    }
    out.Set("tool_calls", std::move(calls));
  }
  if (!message.name.empty()) out.Set("name", Value::Data(message.name));
  if (!message.tool_call_id.empty()) {
    out.Set("tool_call_id", Value::Data(message.tool_call_id));
  }
  return out;
}

// --- the end of the prompt --------------------------------------------------

// Cuts `segments` after the last place where `content`, which is message
// text, was written.
absl::Status CutAfter(const std::string& content,
                      std::vector<Segment>* segments) {
  const string_view core = absl::StripAsciiWhitespace(content);
  if (core.empty()) {
    return absl::InvalidArgumentError(
        "continue_final_message: the final message has no text to go on from");
  }
  // The last data segment that holds it: a match must not touch template text.
  for (std::size_t i = segments->size(); i-- > 0;) {
    const Segment& segment = (*segments)[i];
    if (segment.origin == Origin::kData) {
      const std::size_t found =
          segment.text.rfind(core.data(), segment.text.npos, core.size());
      if (found != std::string::npos) {
        // White space after the content stays where the template kept it.
        const string_view whole = absl::StripLeadingAsciiWhitespace(content);
        const bool kept = segment.text.compare(found, whole.size(),
                                               whole.data(), whole.size()) == 0;
        segments->resize(i + 1);
        segments->back().text.resize(found +
                                     (kept ? whole.size() : core.size()));
        return absl::OkStatus();
      }
    }
  }
  return absl::InvalidArgumentError(
      "continue_final_message: the template does not write the final message "
      "as it is, so there is no place to go on from");
}

PromptThinking ThinkingAtEnd(string_view text, string_view open,
                             string_view close) {
  if (open.empty()) return PromptThinking::kUndecided;
  text = absl::StripTrailingAsciiWhitespace(text);
  if (absl::EndsWith(text, open)) return PromptThinking::kOpen;
  if (absl::EndsWith(text, close)) return PromptThinking::kClosed;
  return PromptThinking::kUndecided;
}

// In a message that the model goes on writing: inside a block that it opened,
// or past all blocks.
PromptThinking ThinkingInside(string_view content, string_view open,
                              string_view close) {
  if (open.empty()) return PromptThinking::kUndecided;
  const std::size_t opened = content.rfind(open);
  const std::size_t closed = content.rfind(close);
  if (opened == string_view::npos) return PromptThinking::kClosed;
  if (closed == string_view::npos || closed < opened) {
    return PromptThinking::kOpen;
  }
  return PromptThinking::kClosed;
}

absl::StatusOr<std::string> TokenText(
    const GgufFile& file, string_view key,
    const std::optional<std::vector<string_view>>& tokens) {
  const GgufValue* value = file.Find(key);
  if (value == nullptr) return std::string();
  std::int64_t id = 0;
  const std::int64_t size =
      tokens.has_value() ? static_cast<std::int64_t>(tokens->size()) : 0;
  if (value->type == GgufType::kArray) {  // several end tokens: the first
    FUCINA_ASSIGN_OR_RETURN(const auto ids, file.GetInts(key));
    if (!ids.has_value() || ids->empty()) return std::string();
    id = ids->front();
  } else {
    FUCINA_ASSIGN_OR_RETURN(const auto found,
                            file.GetInt(key, INT64_MIN, INT64_MAX));
    id = *found;
  }
  // An id outside the vocabulary is the tokenizer's to report.
  if (id < 0 || id >= size) return std::string();
  return std::string((*tokens)[static_cast<std::size_t>(id)]);
}

}  // namespace

struct ChatTemplate::Impl {
  std::string name;
  std::unique_ptr<jinja::Template> main;
  std::unique_ptr<jinja::Template> tool_use;  // null for none
  ChatTokens tokens;
  bool typed_content = false;  // reads message parts and no plain text
  ToolCallFormat tool_call_format = ToolCallFormat::kNone;
  std::string think_open, think_close;

  const jinja::Template& For(bool has_tools) const {
    return has_tools && tool_use != nullptr ? *tool_use : *main;
  }

  // What both templates say about replies.
  void ReadMarks(string_view text) {
    for (const ThinkMarkers& markers : kThinkMarkers) {
      if (think_open.empty() && (absl::StrContains(text, markers.open) ||
                                 absl::StrContains(text, markers.close))) {
        think_open = std::string(markers.open);
        think_close = std::string(markers.close);
      }
    }
    if (tool_call_format != ToolCallFormat::kNone) return;
    if (absl::StrContains(text, "<arg_key>")) {
      tool_call_format = ToolCallFormat::kGlm;
    } else if (absl::StrContains(text, "<function=")) {
      // Calls in Qwen3-Coder's XML are not taken apart.
    } else if (absl::StrContains(text, "<tool_call>") &&
               absl::StrContains(text, "arguments")) {
      tool_call_format = ToolCallFormat::kHermes;
    }
  }

  Value Context(std::span<const ChatMessage> messages, bool typed) const {
    Value list = Value::MakeList();
    for (const ChatMessage& message : messages) {
      list.Add(MessageValue(message, typed));
    }
    Value out = Value::MakeMap();
    out.Set("messages", std::move(list));
    out.Set("tools", Value::None());
    out.Set("documents", Value::None());
    out.Set("add_generation_prompt", Value::Bool(true));
    out.Set("bos_token", Value::Trusted(tokens.bos));
    out.Set("eos_token", Value::Trusted(tokens.eos));
    out.Set("pad_token", Value::Trusted(tokens.pad));
    out.Set("unk_token", Value::Trusted(tokens.unk));
    return out;
  }

  // Some templates read a list of parts only and drop plain text without a
  // word. One probe at load tells.
  void ProbeContent() {
    static constexpr char kNeedle[] = "fucina-content-needle";
    const ChatMessage probe{.role = "user", .content = kNeedle};
    jinja::RenderOptions small;  // one short message: no template needs more
    small.limits.max_steps = 100'000;
    small.limits.max_cpu_ms = 100;
    auto shows = [&](bool typed) {
      const auto rendered = main->Render(Context({&probe, 1}, typed), small);
      return rendered.ok() &&
             absl::StrContains(jinja::JoinSegments(*rendered), kNeedle);
    };
    typed_content = !shows(false) && shows(true);
  }
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
ChatTemplate::~ChatTemplate() = default;

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::FromText(
    string_view name, string_view source, const ChatTokens& tokens) {
  auto impl = std::make_unique<Impl>();
  impl->name = std::string(name);
  impl->tokens = tokens;
  auto parsed = jinja::Template::Parse(name, source);
  if (!parsed.ok()) return WithSuggestion(parsed.status(), source);
  impl->main = *std::move(parsed);
  impl->ReadMarks(source);
  impl->ProbeContent();
  return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::FromGguf(
    const GgufFile& file) {
  FUCINA_ASSIGN_OR_RETURN(const ChatTokens tokens, TokensFromGguf(file));
  FUCINA_ASSIGN_OR_RETURN(const auto source, file.GetString(kTemplateKey));
  if (!source.has_value()) {
    FUCINA_ASSIGN_OR_RETURN(const auto vocabulary,
                            file.GetStrings("tokenizer.ggml.tokens"));
    std::string markers;
    if (vocabulary.has_value()) {
      for (const string_view token : *vocabulary) {
        if (token == "[gMASK]") markers += "[gMASK]<sop>";
        if (token == "<|im_start|>" || token == "<|start_header_id|>" ||
            token == "<start_of_turn>") {
          absl::StrAppend(&markers, token);
        }
      }
    }
    return absl::NotFoundError(
        absl::StrCat(file.display_name(), ": no chat template (key '",
                     kTemplateKey, "')", Suggestion(markers)));
  }
  const std::string name =
      absl::StrCat(file.display_name(), ": ", kTemplateKey);
  FUCINA_ASSIGN_OR_RETURN(auto out, FromText(name, *source, tokens));
  out->impl_->name = std::string(kTemplateKey);
  FUCINA_ASSIGN_OR_RETURN(const auto tools, file.GetString(kToolTemplateKey));
  if (tools.has_value()) {
    auto parsed = jinja::Template::Parse(
        absl::StrCat(file.display_name(), ": ", kToolTemplateKey), *tools);
    if (!parsed.ok()) return WithSuggestion(parsed.status(), *tools);
    out->impl_->tool_use = *std::move(parsed);
    out->impl_->tool_call_format = ToolCallFormat::kNone;
    out->impl_->ReadMarks(*tools);
  }
  return out;
}

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::BuiltIn(
    string_view name, const ChatTokens& tokens) {
  for (const BuiltInTemplate& built_in : BuiltInTemplates()) {
    if (built_in.name == name) {
      return FromText(absl::StrCat("built-in ", name), built_in.source, tokens);
    }
  }
  return absl::NotFoundError(
      absl::StrCat("no built-in chat format '", name,
                   "'; there are: ", absl::StrJoin(BuiltInNames(), ", ")));
}

absl::StatusOr<std::optional<bool>> ChatTemplate::ThinkingArgument(
    string_view arguments_json) {
  FUCINA_ASSIGN_OR_RETURN(const Value arguments,
                          ParseJson("template arguments", arguments_json));
  std::optional<bool> thinking;
  if (arguments.kind() != Value::Kind::kMap) return thinking;
  for (const auto& [key, value] : arguments.map()) {
    if (key == "enable_thinking" && value.kind() == Value::Kind::kBool) {
      thinking = value.bool_value();
    }
  }
  return thinking;
}

std::span<const string_view> ChatTemplate::BuiltInNames() {
  static const auto& names = *new std::vector<string_view>([] {
    std::vector<string_view> out;
    for (const BuiltInTemplate& built_in : BuiltInTemplates()) {
      out.push_back(built_in.name);
    }
    return out;
  }());
  return names;
}

absl::StatusOr<ChatTokens> ChatTemplate::TokensFromGguf(const GgufFile& file) {
  FUCINA_ASSIGN_OR_RETURN(const auto tokens,
                          file.GetStrings("tokenizer.ggml.tokens"));
  ChatTokens out;
  FUCINA_ASSIGN_OR_RETURN(
      out.bos, TokenText(file, "tokenizer.ggml.bos_token_id", tokens));
  FUCINA_ASSIGN_OR_RETURN(
      out.eos, TokenText(file, "tokenizer.ggml.eos_token_id", tokens));
  FUCINA_ASSIGN_OR_RETURN(
      out.pad, TokenText(file, "tokenizer.ggml.padding_token_id", tokens));
  FUCINA_ASSIGN_OR_RETURN(
      out.unk, TokenText(file, "tokenizer.ggml.unknown_token_id", tokens));
  return out;
}

absl::StatusOr<RenderedPrompt> ChatTemplate::Render(
    std::span<const ChatMessage> messages,
    const ChatRenderOptions& options) const {
  if (messages.empty()) {
    return absl::InvalidArgumentError("at least one message is required");
  }
  const bool continues = options.continue_final_message;
  if (continues && messages.back().role != "assistant") {
    return absl::InvalidArgumentError(absl::StrCat(
        "continue_final_message needs a final assistant message, found role '",
        messages.back().role, "'"));
  }
  RenderedPrompt out;
  Value context = impl_->Context(messages, impl_->typed_content);
  context.Set("add_generation_prompt",
              Value::Bool(options.add_generation_prompt && !continues));

  bool has_tools = false;
  if (!options.tools_json.empty()) {
    FUCINA_ASSIGN_OR_RETURN(Value tools,
                            ParseJson("tools", options.tools_json));
    if (tools.kind() != Value::Kind::kList) {
      return absl::InvalidArgumentError(
          "tools: expected a JSON array of declarations");
    }
    has_tools = !tools.list().empty();
    if (has_tools) context.Set("tools", std::move(tools));
  }
  const jinja::Template& chosen = impl_->For(has_tools);
  if (has_tools && !chosen.Reads("tools")) {
    return absl::InvalidArgumentError(
        absl::StrCat("tools: the chat template '", impl_->name,
                     "' takes none (it never reads 'tools')"));
  }

  if (options.enable_thinking.has_value()) {
    context.Set("enable_thinking", Value::Bool(*options.enable_thinking));
    if (!chosen.Reads("enable_thinking")) {
      out.notes.push_back(absl::StrCat(
          "the chat template '", impl_->name,
          "' has no switch for thinking (it never reads 'enable_thinking')"));
    }
  }
  if (!options.arguments_json.empty()) {
    FUCINA_ASSIGN_OR_RETURN(
        const Value arguments,
        ParseJson("template arguments", options.arguments_json));
    if (arguments.kind() != Value::Kind::kMap) {
      return absl::InvalidArgumentError(
          "template arguments: expected a JSON object");
    }
    for (const auto& [key, value] : arguments.map()) {
      if (key == "messages" || key == "tools" ||
          key == "add_generation_prompt") {
        return absl::InvalidArgumentError(absl::StrCat(
            "template arguments: '", key, "' has an option of its own"));
      }
      if (!chosen.Reads(key)) {
        out.notes.push_back(absl::StrCat("the chat template '", impl_->name,
                                         "' never reads the argument '", key,
                                         "'"));
      }
      context.Set(key, value);
    }
  }

  FUCINA_ASSIGN_OR_RETURN(out.segments, chosen.Render(context, options.render));
  if (continues) {
    const std::string& content = messages.back().content;
    FUCINA_RETURN_IF_ERROR(CutAfter(content, &out.segments));
    out.thinking =
        ThinkingInside(content, impl_->think_open, impl_->think_close);
  } else if (options.add_generation_prompt) {
    out.thinking =
        ThinkingAtEnd(out.Text(), impl_->think_open, impl_->think_close);
  }
  return out;
}

const std::string& ChatTemplate::name() const { return impl_->name; }

bool ChatTemplate::Reads(string_view variable) const {
  return impl_->main->Reads(variable) ||
         (impl_->tool_use != nullptr && impl_->tool_use->Reads(variable));
}

bool ChatTemplate::supports_thinking_switch() const {
  return Reads("enable_thinking");
}

bool ChatTemplate::supports_tools() const {
  return impl_->For(true).Reads("tools");
}

ToolCallFormat ChatTemplate::tool_call_format() const {
  return impl_->tool_call_format;
}

const std::string& ChatTemplate::think_open() const {
  return impl_->think_open;
}

const std::string& ChatTemplate::think_close() const {
  return impl_->think_close;
}

}  // namespace fucina
