#ifndef FUCINA_TEXT_TOOL_CALL_H_
#define FUCINA_TEXT_TOOL_CALL_H_

// A call of a tool that a model wrote, and the ways in which models write it.

#include <string>

namespace fucina {

struct ToolCall {
  std::string id = {};  // chosen by client or server; empty for none
  std::string name = {};
  // A JSON object as text. A text that is no JSON object is passed to the
  // template as a string.
  std::string arguments = {};
};

enum class ToolCallFormat {
  kNone,
  kHermes,  // <tool_call>{"name": …, "arguments": {…}}</tool_call> (Qwen)
  kGlm,  // <tool_call>name <arg_key>…</arg_key><arg_value>…</arg_value>…
};

}  // namespace fucina

#endif  // FUCINA_TEXT_TOOL_CALL_H_
