#include "core/text/tool_call_parser.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
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

// The JSON Schema type of a parsed value.
string_view TypeName(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNone:
      return "null";
    case Value::Kind::kBool:
      return "boolean";
    case Value::Kind::kInt:
    case Value::Kind::kNumber:
      return "integer";
    case Value::Kind::kFloat:
      return "number";
    case Value::Kind::kString:
      return "string";
    case Value::Kind::kList:
      return "array";
    case Value::Kind::kMap:
      return "object";
  }
  return "";
}

// The types that one parameter's schema allows, as far as "type", "enum",
// "const", "anyOf", "oneOf" and references into the same parameters say so;
// schema generators write an optional text as anyOf and an enumeration as a
// reference.
class AllowedTypes {
 public:
  AllowedTypes(const Value* parameters, const Value* schema)
      : parameters_(parameters) {
    Collect(schema);
  }

  bool Has(string_view type) const {
    return std::find(types_.begin(), types_.end(), type) != types_.end();
  }
  // Whether a type besides text allows `value`.
  bool HasOtherFor(const Value& value) const {
    return std::any_of(
        types_.begin(), types_.end(),
        [found = TypeName(value)](const std::string& type) {
          return type != "string" &&
                 (type == found || (type == "number" && found == "integer"));
        });
  }
  bool IsOnlyText() const {
    return !types_.empty() && std::all_of(types_.begin(), types_.end(),
                                          [](const std::string& type) {
                                            return type == "string";
                                          });
  }

 private:
  // A declaration comes from outside: it may refer to itself.
  static constexpr int kMaxSchemas = 64;

  void Collect(const Value* schema) {
    if (schema == nullptr || ++seen_ > kMaxSchemas) return;
    if (const Value* type = schema->Find("type")) {
      AddEach(*type, [this](const Value& one) {
        if (one.kind() == Value::Kind::kString) types_.push_back(one.text());
      });
    } else if (const Value* choices = schema->Find("enum")) {
      AddEach(*choices, [this](const Value& one) { AddTypeOf(one); });
    } else if (const Value* value = schema->Find("const")) {
      AddTypeOf(*value);
    }
    for (const string_view key : {"anyOf", "oneOf"}) {
      const Value* members = schema->Find(key);
      if (members == nullptr || members->kind() != Value::Kind::kList) continue;
      for (const Value& member : members->list()) Collect(&member);
    }
    const Value* reference = schema->Find("$ref");
    if (reference != nullptr && reference->kind() == Value::Kind::kString) {
      Collect(Target(reference->text()));
    }
  }
  template <typename Add>
  static void AddEach(const Value& value, Add add) {
    if (value.kind() != Value::Kind::kList) return add(value);
    for (const Value& one : value.list()) add(one);
  }
  void AddTypeOf(const Value& value) { types_.emplace_back(TypeName(value)); }
  // "#/$defs/Name"; null for any other reference.
  const Value* Target(string_view reference) const {
    if (!Consume(&reference, "#/")) return nullptr;
    const Value* at = parameters_;
    for (const string_view key : absl::StrSplit(reference, '/')) {
      if (at == nullptr) return nullptr;
      at = at->Find(key);
    }
    return at;
  }

  const Value* parameters_;
  std::vector<std::string> types_;
  int seen_ = 0;
};

// What a tool may be called where nothing declares it; anything else between
// the tags is not a call.
bool IsPlainName(string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::StrContains("_.:-", c);
  });
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
  const Value* parameters = nullptr;
  const Value* schema = nullptr;
  if (const Value* function = FindTool(tool)) {
    parameters = function->Find("parameters");
    const Value* properties =
        parameters == nullptr ? nullptr : parameters->Find("properties");
    schema = properties == nullptr ? nullptr : properties->Find(key);
  }
  const AllowedTypes types(parameters, schema);
  if (types.IsOnlyText()) return Value::Data(text);
  auto parsed = ParseJson("argument", text);
  if (!parsed.ok()) return Value::Data(text);
  // Where the schema allows a text and something else, "5" is a number only
  // if numbers are allowed.
  if (types.Has("string") && !types.HasOtherFor(*parsed)) {
    return Value::Data(text);
  }
  return *std::move(parsed);
}

std::optional<ToolCall> ToolCallParser::ParseGlmCall(string_view body) const {
  const std::size_t name_end =
      std::min(body.find('\n'), body.find("<arg_key>"));
  const string_view name = absl::StripAsciiWhitespace(body.substr(0, name_end));
  if (!IsPlainName(name) && (name.empty() || FindTool(name) == nullptr)) {
    return std::nullopt;
  }
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
    const string_view clean_key = absl::StripAsciiWhitespace(*key);
    // An opening tag inside tells of a closing one that is missing.
    if (!text.has_value() || absl::StrContains(*text, "<arg_value>") ||
        clean_key.empty() || absl::StrContains(clean_key, '<')) {
      return std::nullopt;
    }
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
