#include "cli/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cli/text_input.h"
#include "registry/text_file.h"

namespace fucina::cli {
namespace {

constexpr int kHistoryLines = 1000;
// A person cannot type the next line so fast; a terminal that pastes can.
constexpr int kPasteGapMs = 20;
// How late an interrupt may be seen that arrives between two waits.
constexpr int kInterruptPollMs = 100;
constexpr char kEndOfInputKey = '\x04';  // Ctrl-D

bool MoreWaiting() {
  pollfd in = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return poll(&in, 1, kPasteGapMs) > 0 && (in.revents & POLLIN) != 0;
}

}  // namespace

struct LineEditor::Impl {
  explicit Impl(Interrupt& interrupt_flag) : interrupt(interrupt_flag) {}

  static char* Prompt(EditLine* editor) {
    static char first[] = "> ";
    static char next[] = "| ";
    Impl* self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return self->continued ? next : first;
  }

  // One wide character from the terminal. libedit's own reader swallows the
  // interrupted read that the interrupt key causes; this one reports it.
  static int GetCharacter(EditLine* editor, wchar_t* character) {
    Impl* self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    std::mbstate_t state = {};
    while (true) {
      // The key may come just before the wait and interrupt nothing, so the
      // wait is a short one.
      if (self->interrupt.flag()) return -1;
      pollfd in = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
      if (poll(&in, 1, kInterruptPollMs) <= 0) continue;
      char byte = 0;
      const ssize_t count = read(STDIN_FILENO, &byte, 1);
      if (count == 0) return 0;
      if (count < 0) {
        if (errno == EINTR) continue;
        return -1;
      }
      // Pressed while no line was edited, the end-of-input key waits in the
      // terminal as a zero.
      if (byte == '\0') byte = kEndOfInputKey;
      const std::size_t length = std::mbrtowc(character, &byte, 1, &state);
      if (length == static_cast<std::size_t>(-2)) continue;
      if (length == static_cast<std::size_t>(-1)) {
        // Not the terminal's encoding: pass the byte on as it is.
        *character = static_cast<unsigned char>(byte);
      }
      return 1;
    }
  }

  Event ReadTyped(std::string& message) {
    message.clear();
    continued = false;
    while (true) {
      int count = 0;
      const char* text = el_gets(editor, &count);
      if (interrupt.Take()) return Event::kInterrupted;
      if (text == nullptr || count <= 0) {
        return message.empty() ? Event::kEnd : Event::kMessage;
      }
      absl::string_view line(text, static_cast<std::size_t>(count));
      while (absl::EndsWith(line, "\n") || absl::EndsWith(line, "\r")) {
        line.remove_suffix(1);
      }
      const bool goes_on = absl::EndsWith(line, "\\");
      if (goes_on) line.remove_suffix(1);
      message.append(line.data(), line.size());
      if (!goes_on && !MoreWaiting()) break;
      message.push_back('\n');
      continued = true;
    }
    if (!message.empty()) {
      HistEvent event = {};
      history(lines, &event, H_ENTER, message.c_str());
    }
    return Event::kMessage;
  }

  absl::StatusOr<Event> ReadPiped(std::string& message) {
    message.clear();
    while (true) {
      const int c = std::getc(stdin);
      if (c == EOF) {
        if (interrupt.Take()) return Event::kInterrupted;
        if (std::ferror(stdin) != 0 && errno == EINTR) {
          std::clearerr(stdin);
          continue;
        }
        if (std::ferror(stdin) != 0) {
          return absl::NotFoundError(absl::StrCat(
              "--repl: standard input cannot be read: ", std::strerror(errno)));
        }
        return message.empty() ? Event::kEnd : Event::kMessage;
      }
      if (c == '\n') break;
      message.push_back(static_cast<char>(c));
      if (message.size() > kMaxMessageBytes) {
        return fucina::TooLong("--repl: a line of standard input",
                               kMaxMessageBytes);
      }
    }
    if (absl::EndsWith(message, "\r")) message.pop_back();
    return Event::kMessage;
  }

  Interrupt& interrupt;
  EditLine* editor = nullptr;  // null when input is piped
  History* lines = nullptr;
  bool continued = false;
};

LineEditor::LineEditor(Interrupt& interrupt)
    : impl_(std::make_unique<Impl>(interrupt)) {
  if (!isatty(STDIN_FILENO)) return;
  std::setlocale(LC_CTYPE, "");
  impl_->editor = el_init("fucina", stdin, stderr, stderr);
  if (impl_->editor == nullptr) return;
  impl_->lines = history_init();
  HistEvent event = {};
  history(impl_->lines, &event, H_SETSIZE, kHistoryLines);
  el_set(impl_->editor, EL_CLIENTDATA, impl_.get());
  el_set(impl_->editor, EL_PROMPT, &Impl::Prompt);
  el_set(impl_->editor, EL_EDITOR, "emacs");
  el_set(impl_->editor, EL_SIGNAL, 0);
  el_set(impl_->editor, EL_HIST, history, impl_->lines);
  el_wset(impl_->editor, EL_GETCFN, &Impl::GetCharacter);
  el_source(impl_->editor, nullptr);
}

LineEditor::~LineEditor() {
  if (impl_->lines != nullptr) history_end(impl_->lines);
  if (impl_->editor != nullptr) el_end(impl_->editor);
}

bool LineEditor::interactive() const { return impl_->editor != nullptr; }

absl::StatusOr<LineEditor::Event> LineEditor::Read(std::string& message) {
  if (interactive()) return impl_->ReadTyped(message);
  return impl_->ReadPiped(message);
}

}  // namespace fucina::cli
