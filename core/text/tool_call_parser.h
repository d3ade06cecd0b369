#ifndef FUCINA_TEXT_TOOL_CALL_PARSER_H_
#define FUCINA_TEXT_TOOL_CALL_PARSER_H_

// What stands between <tool_call> and </tool_call>, as a call.

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/jinja/value.h"
#include "fucina/text/tool_call.h"

namespace fucina {

class ToolCallParser {
 public:
  // `tools_json` is a JSON array of {"type":"function","function":{…}};
  // empty for none. InvalidArgument for anything else.
  static absl::StatusOr<ToolCallParser> Create(ToolCallFormat format,
                                               absl::string_view tools_json);

  // Nullopt when `body` is no call. Both spellings are understood whatever
  // the family's own is; only the family's own may leave arguments out.
  std::optional<ToolCall> Parse(absl::string_view body) const;
  // The same for an answer that is one JSON object without tags; then the
  // tool must be a declared one.
  std::optional<ToolCall> ParseBare(absl::string_view text) const;

  bool has_tools() const { return !tools_.list().empty(); }

 private:
  std::optional<ToolCall> ParseJsonCall(absl::string_view body) const;
  std::optional<ToolCall> ParseGlmCall(absl::string_view body) const;
  jinja::Value ArgumentValue(absl::string_view tool, absl::string_view key,
                             absl::string_view text) const;
  // The declaration's "function" object, or null.
  const jinja::Value* FindTool(absl::string_view name) const;

  ToolCallFormat format_ = ToolCallFormat::kNone;
  jinja::Value tools_ = jinja::Value::MakeList();
};

}  // namespace fucina

#endif  // FUCINA_TEXT_TOOL_CALL_PARSER_H_
