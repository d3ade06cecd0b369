#include "core/text/tool_call_parser.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "core/text/json_value.h"
#include "fucina/diag/status_macros.h"

namespace fucina {
namespace {

using absl::string_view;
using jinja::Value;

// Takes `mark` from the front of `text`.
bool Consume(string_view* text, string_view mark) {
  if (!absl::StartsWith(*text, mark)) return false;
  text->remove_prefix(mark.size());
  return true;
}

// Takes the text up to `mark`, and the mark.
std::optional<string_view> TakeUntil(string_view* text, string_view mark) {
  const std::size_t at = text->find(mark);
  if (at == string_view::npos) return std::nullopt;
  const string_view out = text->substr(0, at);
  text->remove_prefix(at + mark.size());
  return out;
}

bool IsText(const Value* value, string_view text) {
  return value != nullptr && value->kind() == Value::Kind::kString &&
         value->text() == text;
}

// Whether a parsed JSON value has a JSON Schema type.
bool HasType(const Value& value, const std::string& type) {
  switch (value.kind()) {
    case Value::Kind::kNone:
      return type == "null";
    case Value::Kind::kBool:
      return type == "boolean";
    case Value::Kind::kInt:
    case Value::Kind::kNumber:
      return type == "integer" || type == "number";
    case Value::Kind::kFloat:
      return type == "number";
    case Value::Kind::kString:
      return type == "string";
    case Value::Kind::kList:
      return type == "array";
    case Value::Kind::kMap:
      return type == "object";
  }
  return false;
}

}  // namespace

absl::StatusOr<ToolCallParser> ToolCallParser::Create(ToolCallFormat format,
                                                      string_view tools_json) {
  ToolCallParser out;
  out.format_ = format;
  if (tools_json.empty()) return out;
  FUCINA_ASSIGN_OR_RETURN(out.tools_, ParseJson("tools", tools_json));
  if (out.tools_.kind() != Value::Kind::kList) {
    return absl::InvalidArgumentError(
        "tools: expected a JSON array of declarations");
  }
  return out;
}

const Value* ToolCallParser::FindTool(string_view name) const {
  for (const Value& tool : tools_.list()) {
    const Value* function = tool.Find("function");
    if (function == nullptr) function = &tool;  // the flat form
    if (IsText(function->Find("name"), name)) return function;
  }
  return nullptr;
}

std::optional<ToolCall> ToolCallParser::ParseJsonCall(string_view body) const {
  auto parsed = ParseJson("tool call", body);
  if (!parsed.ok()) return std::nullopt;
  const Value* name = parsed->Find("name");
  if (name == nullptr || name->kind() != Value::Kind::kString ||
      name->text().empty()) {
    return std::nullopt;
  }
  ToolCall out;
  out.name = name->text();
  const Value* arguments = parsed->Find("arguments");
  if (arguments == nullptr || arguments->is_none()) {
    out.arguments = "{}";
    return out;
  }
  if (arguments->kind() == Value::Kind::kMap) {
    out.arguments = WriteJson(*arguments);
    return out;
  }
  // Some models write the object once more as a text.
  if (arguments->kind() == Value::Kind::kString) {
    auto inner = ParseJson("arguments", arguments->text());
    if (inner.ok() && inner->kind() == Value::Kind::kMap) {
      out.arguments = WriteJson(*inner);
      return out;
    }
  }
  return std::nullopt;
}

Value ToolCallParser::ArgumentValue(string_view tool, string_view key,
                                    string_view text) const {
  const Value* type = nullptr;
  if (const Value* function = FindTool(tool)) {
    const Value* parameters = function->Find("parameters");
    const Value* properties =
        parameters == nullptr ? nullptr : parameters->Find("properties");
    const Value* property =
        properties == nullptr ? nullptr : properties->Find(key);
    type = property == nullptr ? nullptr : property->Find("type");
  }
  if (IsText(type, "string")) return Value::Data(text);
  auto parsed = ParseJson("argument", text);
  if (!parsed.ok()) return Value::Data(text);
  // Where the schema allows a text and something else, "5" is a number only
  // if numbers are allowed.
  if (type != nullptr && type->kind() == Value::Kind::kList) {
    bool text_allowed = false, fits = false;
    for (const Value& one : type->list()) {
      if (one.kind() != Value::Kind::kString) continue;
      if (one.text() == "string") {
        text_allowed = true;
      } else {
        fits = fits || HasType(*parsed, one.text());
      }
    }
    if (text_allowed && !fits) return Value::Data(text);
  }
  return *std::move(parsed);
}

std::optional<ToolCall> ToolCallParser::ParseGlmCall(string_view body) const {
  const std::size_t name_end =
      std::min(body.find('\n'), body.find("<arg_key>"));
  const string_view name = absl::StripAsciiWhitespace(body.substr(0, name_end));
  if (name.empty() || name.find('<') != string_view::npos) return std::nullopt;
  string_view rest =
      name_end == string_view::npos ? string_view() : body.substr(name_end);
  Value arguments = Value::MakeMap();
  for (;;) {
    rest = absl::StripLeadingAsciiWhitespace(rest);
    if (rest.empty()) break;
    if (!Consume(&rest, "<arg_key>")) return std::nullopt;
    const auto key = TakeUntil(&rest, "</arg_key>");
    rest = absl::StripLeadingAsciiWhitespace(rest);
    if (!key.has_value() || !Consume(&rest, "<arg_value>")) {
      return std::nullopt;
    }
    const auto text = TakeUntil(&rest, "</arg_value>");
    if (!text.has_value()) return std::nullopt;
    const string_view clean_key = absl::StripAsciiWhitespace(*key);
    if (clean_key.empty()) return std::nullopt;
    arguments.Set(clean_key, ArgumentValue(name, clean_key, *text));
  }
  return ToolCall{.name = std::string(name), .arguments = WriteJson(arguments)};
}

std::optional<ToolCall> ToolCallParser::Parse(string_view body) const {
  body = absl::StripAsciiWhitespace(body);
  if (absl::StartsWith(body, "{")) return ParseJsonCall(body);
  if (format_ == ToolCallFormat::kGlm || absl::StrContains(body, "<arg_key>")) {
    return ParseGlmCall(body);
  }
  return std::nullopt;
}

std::optional<ToolCall> ToolCallParser::ParseBare(string_view text) const {
  auto call = ParseJsonCall(absl::StripAsciiWhitespace(text));
  if (!call.has_value() || FindTool(call->name) == nullptr) return std::nullopt;
  return call;
}

}  // namespace fucina
