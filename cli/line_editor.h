#ifndef FUCINA_CLI_LINE_EDITOR_H_
#define FUCINA_CLI_LINE_EDITOR_H_

// Messages typed by a person or piped in. On a terminal lines are edited with
// history (libedit, the user's ~/.editrc applies), several pasted lines are one
// message, and a line that ends in a backslash goes on in the next one. Piped
// input is one message per line.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/interrupt.h"

namespace fucina::cli {

class LineEditor {
 public:
  enum class Event { kMessage, kEnd, kInterrupted };

  // `interrupt` outlives the editor.
  explicit LineEditor(Interrupt& interrupt);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Whether a person types.
  bool interactive() const;
  // The next message, without its line end. Any bytes are accepted. NotFound
  // when standard input cannot be read, InvalidArgument for a line that is
  // longer than any message may be.
  absl::StatusOr<Event> Read(std::string& message);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fucina::cli

#endif  // FUCINA_CLI_LINE_EDITOR_H_
