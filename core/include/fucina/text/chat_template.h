#ifndef FUCINA_TEXT_CHAT_TEMPLATE_H_
#define FUCINA_TEXT_CHAT_TEMPLATE_H_

// Messages to prompt text through the model file's own chat template. The
// template is the truth: one that is missing, does not parse or uses something
// unsupported is an error, and another one is used only when the user names it.
//
// A ChatTemplate is immutable and may be used from several threads.

#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/export.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/jinja/template.h"
#include "fucina/text/tool_call.h"

namespace fucina {

struct ChatMessage {
  // system, user, assistant or tool; developer means system.
  std::string role = {};
  std::string content = {};
  // Absent where the client sent none; then the template itself looks for
  // thinking inside `content`.
  std::optional<std::string> reasoning_content = std::nullopt;
  std::vector<ToolCall> tool_calls = {};
  std::string name = {};          // of a tool or a participant; empty for none
  std::string tool_call_id = {};  // of a tool result; empty for none
};

struct ChatRenderOptions {
  bool add_generation_prompt = true;
  // nullopt leaves the variable undefined, which a template may treat
  // differently from both true and false.
  std::optional<bool> enable_thinking = std::nullopt;
  // Ends the prompt right after the content of the final assistant message, so
  // that the model goes on writing it. Excludes a generation prompt.
  bool continue_final_message = false;
  // A JSON array of {"type":"function","function":{…}}; empty for no tools.
  std::string tools_json = {};
  // A JSON object of further template variables (chat_template_kwargs); empty
  // for none. Wins over enable_thinking.
  std::string arguments_json = {};
  jinja::RenderOptions render = {};
};

// Where the end of the prompt leaves the model.
enum class PromptThinking {
  kUndecided,  // a leading think block in the reply is thinking
  kOpen,       // the prompt opened the block: the reply starts inside it
  kClosed,     // the prompt closed it: the reply is the answer
};

struct RenderedPrompt {
  // Who wrote which bytes. Control tokens count only in template text.
  std::vector<jinja::Segment> segments;
  PromptThinking thinking = PromptThinking::kUndecided;
  // What a user should hear once: arguments that the template never reads.
  std::vector<std::string> notes;

  std::string Text() const { return jinja::JoinSegments(segments); }
};

// The texts of tokens that templates name. Empty where the model has none.
struct ChatTokens {
  std::string bos = {};
  std::string eos = {};
  std::string pad = {};
  std::string unk = {};
};

class FUCINA_API ChatTemplate {
 public:
  // From `tokenizer.chat_template` (and `tokenizer.chat_template.tool_use`,
  // which is taken when tools are given). NotFound when the file has no
  // template; InvalidArgument with line and column when one does not parse.
  // Both messages suggest a built-in by name where the text allows a guess.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> FromGguf(
      const GgufFile& file);

  // From template text that the user supplied; `name` stands in messages.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> FromText(
      absl::string_view name, absl::string_view source,
      const ChatTokens& tokens = {});

  // One of BuiltInNames(): "chatml", "gemma", "glm4", "llama3". Only for users
  // who ask for it by name. NotFound lists the names.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> BuiltIn(
      absl::string_view name, const ChatTokens& tokens = {});
  static std::span<const absl::string_view> BuiltInNames();

  // What `arguments_json` says about thinking: its 'enable_thinking', if that
  // is true or false. InvalidArgument for what is no JSON.
  static absl::StatusOr<std::optional<bool>> ThinkingArgument(
      absl::string_view arguments_json);

  // The texts of the file's special tokens; empty where it names none.
  static absl::StatusOr<ChatTokens> TokensFromGguf(const GgufFile& file);

  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  // Renders the conversation. Messages are normalised first: developer becomes
  // system, and tool-call arguments that are JSON objects are passed as such.
  //
  // InvalidArgument for no messages, a template that raises (its text is
  // quoted), JSON that does not parse, an option that does not fit the
  // messages; ResourceExhausted when a render limit is reached.
  absl::StatusOr<RenderedPrompt> Render(
      std::span<const ChatMessage> messages,
      const ChatRenderOptions& options = {}) const;

  // Where it came from: "tokenizer.chat_template", a path, "built-in chatml".
  const std::string& name() const;
  // Whether the template reads this variable: has it a switch for thinking
  // ("enable_thinking"), does it take tools ("tools")?
  bool Reads(absl::string_view variable) const;
  bool supports_thinking_switch() const;
  bool supports_tools() const;
  // How replies spell tool calls, judged by the template's text.
  ToolCallFormat tool_call_format() const;
  // The markers around thinking; both empty when the template names none.
  const std::string& think_open() const;
  const std::string& think_close() const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fucina

#endif  // FUCINA_TEXT_CHAT_TEMPLATE_H_
