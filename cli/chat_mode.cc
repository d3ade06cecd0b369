#include "cli/chat_mode.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/constraint_figures.h"
#include "cli/draft_figures.h"
#include "cli/exit_code.h"
#include "cli/generation_options.h"
#include "cli/line_editor.h"
#include "cli/progress.h"
#include "fucina/diag/log.h"
#include "fucina/diag/status_macros.h"

namespace fucina::cli {
namespace {

// From this share of the context on the user is told that it ends.
constexpr double kContextWarning = 0.9;

// Whether all of it went out.
bool Print(absl::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

double PerSecond(int count, double ms) { return ms > 0 ? count * 1e3 / ms : 0; }

void PrintFigures(const Reply& reply, const Drafter* drafter) {
  const GenerationStats& stats = reply.stats;
  const int read = stats.prompt_tokens - stats.reused_tokens;
  std::string line = absl::StrFormat(
      "[%d tokens, %.1f tok/s; prompt %d tokens", stats.new_tokens,
      PerSecond(stats.new_tokens - 1, stats.decode_ms), stats.prompt_tokens);
  if (stats.reused_tokens > 0) {
    absl::StrAppend(&line, " (", stats.reused_tokens, " reused)");
  }
  absl::StrAppend(&line, absl::StrFormat(", %.1f tok/s",
                                         PerSecond(read, stats.prefill_ms)));
  if (reply.thinking_tokens > 0) {
    absl::StrAppend(&line, "; thinking ", reply.thinking_tokens, " tokens");
  }
  if (drafter != nullptr) {
    absl::StrAppend(&line, "; drafts ", DraftFigures(stats, *drafter));
  }
  if (stats.masks.count() > 0) {
    absl::StrAppend(&line, "; constraint ",
                    ConstraintFigures(stats, reply.complete));
  }
  absl::StrAppend(&line, "; ended by ",
                  reply.stop_index >= 0 ? absl::string_view("stop string")
                                        : Name(reply.finish_reason),
                  "]\n");
  std::fputs(line.c_str(), stderr);
}

// What a user should hear about how the reply ended.
void PrintHints(const Reply& reply) {
  switch (reply.finish_reason) {
    case FinishReason::kLength:
      std::fputs(reply.content.empty() && reply.thinking_tokens > 0
                     ? "fucina: the reply reached its limit while thinking; "
                       "raise --gen or use --no-think\n"
                     : "fucina: the reply reached its limit; raise --gen\n",
                 stderr);
      break;
    case FinishReason::kContextFull:
      std::fputs("fucina: the reply filled the context; raise --ctx\n", stderr);
      break;
    default:
      break;
  }
  if (!reply.complete) {
    std::fprintf(stderr, "fucina: %s\n", kIncompleteReply);
  }
}

void PrintPrompt(const TurnPrompt& prompt) {
  std::fprintf(stderr,
               "--- prompt (%zu tokens) ---\n%s\n--- ids ---\n%s\n---\n",
               prompt.tokens.size(), prompt.rendered.Text().c_str(),
               absl::StrJoin(prompt.tokens, ",").c_str());
}

absl::StatusOr<Reply> Turn(Conversation& conversation,
                           const std::string& message,
                           const ChatOptions& options, Interrupt& interrupt) {
  if (options.show_prompt) {
    FUCINA_ASSIGN_OR_RETURN(const TurnPrompt prompt,
                            conversation.Preview(message));
    PrintPrompt(prompt);
  }
  Progress progress("reading the prompt");
  bool wrote = false;
  int lost = 0;  // errno of standard output
  ReplyListener listener;
  listener.on_text = [&](absl::string_view text) {
    progress.Finish();
    if (lost == 0 && !Print(text)) {
      lost = errno;
      interrupt.Raise();  // nobody reads the rest
    }
    wrote = true;
  };
  listener.on_progress = [&](int done, int total) {
    progress.Set(done, total);
    if (done == total) progress.Finish();
  };
  listener.cancel = &interrupt.flag();
  absl::StatusOr<Reply> reply = conversation.Send(message, listener);
  progress.Finish();
  if ((reply.ok() || wrote) && lost == 0 && !Print("\n")) lost = errno;
  if (!reply.ok()) return reply;
  if (lost != 0) {
    return WithExitCode(
        absl::ResourceExhaustedError(absl::StrCat(
            "standard output cannot be written: ", std::strerror(lost))),
        ExitCode::kMemory);
  }
  for (const std::string& note : reply->notes) {
    std::fprintf(stderr, "fucina: note: %s\n", note.c_str());
  }
  PrintHints(*reply);
  if (!options.quiet) PrintFigures(*reply, options.drafter);
  return reply;
}

absl::Status Interrupted() {
  return WithExitCode(absl::CancelledError("interrupted"),
                      ExitCode::kInterrupted);
}

}  // namespace

absl::Status RunChat(Conversation& conversation, const std::string& message,
                     const ChatOptions& options, Interrupt& interrupt) {
  FUCINA_ASSIGN_OR_RETURN(const Reply reply,
                          Turn(conversation, message, options, interrupt));
  if (reply.finish_reason == FinishReason::kCancelled) return Interrupted();
  return absl::OkStatus();
}

absl::Status RunRepl(Conversation& conversation, const ChatOptions& options,
                     Interrupt& interrupt) {
  LineEditor editor(interrupt);
  if (editor.interactive()) {
    std::fputs(
        "chat — type a message; \\ at the end of a line continues it; an empty "
        "line or Ctrl-D quits, Ctrl-C stops a reply\n",
        stderr);
  }
  bool warned = false;
  std::string message;
  while (true) {
    FUCINA_ASSIGN_OR_RETURN(const LineEditor::Event event,
                            editor.Read(message));
    switch (event) {
      case LineEditor::Event::kEnd:
        return absl::OkStatus();
      case LineEditor::Event::kInterrupted:
        return Interrupted();
      case LineEditor::Event::kMessage:
        break;
    }
    if (absl::StripAsciiWhitespace(message).empty()) return absl::OkStatus();
    const absl::StatusOr<Reply> reply =
        Turn(conversation, message, options, interrupt);
    if (absl::IsOutOfRange(reply.status())) {
      std::fprintf(stderr, "[context full — restart to continue] %s\n",
                   std::string(reply.status().message()).c_str());
      return absl::OkStatus();
    }
    // An error ends the turn, not the conversation; piped input has nobody to
    // try again, so there it ends the run, and so does a lost answer.
    if (!reply.ok()) {
      if (!editor.interactive() || std::ferror(stdout) != 0) {
        return reply.status();
      }
      FUCINA_LOG(ERROR) << reply.status().message();
    }
    interrupt.Take();
    const double used = static_cast<double>(conversation.length()) /
                        static_cast<double>(conversation.capacity());
    if (used >= kContextWarning && !warned) {
      std::fprintf(stderr, "fucina: %d of %d tokens of the context are used\n",
                   conversation.length(), conversation.capacity());
      warned = true;
    }
  }
}

}  // namespace fucina::cli
