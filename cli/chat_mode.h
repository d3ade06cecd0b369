#ifndef FUCINA_CLI_CHAT_MODE_H_
#define FUCINA_CLI_CHAT_MODE_H_

// `--chat` and `--repl`: replies go to standard output as they grow, everything
// else to standard error.

#include <string>

#include "absl/status/status.h"
#include "cli/interrupt.h"
#include "fucina/chat/conversation.h"

namespace fucina::cli {

struct ChatOptions {
  bool quiet = false;        // no figures after a reply
  bool show_prompt = false;  // prints the rendered prompt and its ids first
  const Drafter* drafter = nullptr;  // for the figures; null for none
};

// One turn. An interrupted reply ends with the status kCancelled.
absl::Status RunChat(Conversation& conversation, const std::string& message,
                     const ChatOptions& options, Interrupt& interrupt);

// Turns until an empty line or the end of input. The interrupt key ends a
// reply, and at the prompt the loop, with kCancelled. A full context ends the
// loop with a note and OK.
absl::Status RunRepl(Conversation& conversation, const ChatOptions& options,
                     Interrupt& interrupt);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_CHAT_MODE_H_
