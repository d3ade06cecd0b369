#ifndef FUCINA_TEXT_REPLY_SPLITTER_H_
#define FUCINA_TEXT_REPLY_SPLITTER_H_

// Takes a reply apart while it is generated: thinking, answer and tool calls,
// and the stop string that ends it. Bytes go in as they are decoded, in any
// cut; what comes out, put together, does not depend on the cuts.
//
// Bytes that may still become a marker or a stop string are held back until it
// is known. A tool call that is malformed or cut comes out as plain text with
// its markers: nothing a model writes is an error here.
//
// Outside of raw mode some white space is layout and does not come out: around
// a block of thinking, and before, between and after tool calls.
//
// One splitter per reply, one thread at a time.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/export.h"
#include "fucina/text/chat_template.h"
#include "fucina/text/tool_call.h"

namespace fucina {

struct ReplySplitterOptions {
  // Everything is content; only stop strings act.
  bool raw = false;
  // From the rendered prompt.
  PromptThinking thinking = PromptThinking::kUndecided;
  // Empty markers switch the recognition of thinking off.
  std::string think_open = "<think>";
  std::string think_close = "</think>";
  ToolCallFormat tool_calls = ToolCallFormat::kNone;
  // The declarations that the prompt was rendered with (a JSON array), for the
  // types of arguments; empty for none. Without declarations no tool call is
  // looked for.
  std::string tools_json = {};
  // The reply ends before the first of these. At most 64, none empty.
  std::vector<std::string> stop = {};
};

struct ReplyPiece {
  enum class Kind : std::uint8_t { kThinking, kContent, kToolCall };
  Kind kind = Kind::kContent;
  std::string text = {};    // thinking or content; may end inside a character
  ToolCall tool_call = {};  // of kToolCall; `arguments` is one JSON object
};

class FUCINA_API ReplySplitter {
 public:
  // InvalidArgument for an empty stop string, too many, or tools that are not
  // a JSON array of declarations.
  static absl::StatusOr<std::unique_ptr<ReplySplitter>> Create(
      ReplySplitterOptions options);
  // Markers and tool-call style as `chat_template` has them, thinking as
  // `prompt` left it.
  static ReplySplitterOptions OptionsFor(const ChatTemplate& chat_template,
                                         const RenderedPrompt& prompt);

  ~ReplySplitter();
  ReplySplitter(const ReplySplitter&) = delete;
  ReplySplitter& operator=(const ReplySplitter&) = delete;

  // Takes the next bytes and returns what is certain now, in order; neighbours
  // of one kind are merged. Bytes after a stop string are ignored.
  std::vector<ReplyPiece> Push(absl::string_view bytes);
  // The reply is over: returns what was held back. Call once, then no Push.
  std::vector<ReplyPiece> Finish();

  // Index in `stop` of the string that ended the reply, -1 while none did.
  int stop_index() const;
  bool stopped() const { return stop_index() >= 0; }
  // True while what arrives is thinking; counts reasoning tokens.
  bool in_thinking() const;
  // Whether at least one tool call came out.
  bool has_tool_call() const;

 private:
  struct Impl;
  explicit ReplySplitter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fucina

#endif  // FUCINA_TEXT_REPLY_SPLITTER_H_
