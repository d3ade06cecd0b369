#ifndef FUCINA_TESTS_CLI_TERMINAL_H_
#define FUCINA_TESTS_CLI_TERMINAL_H_

// Runs the program as a person does who types at a terminal: keys go in through
// a pseudo terminal, which also shows the prompt and the messages; standard
// output is a pipe, so that replies can be told from what the keys echo.

#include <sys/types.h>

#include <string>
#include <vector>

namespace fucina::testing {

class Terminal {
 public:
  // Starts `fucina` of this build with `args`. Fails the test when it cannot.
  explicit Terminal(const std::vector<std::string>& args);
  // Ends the program if it still runs.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Presses keys: '\r' is the return key, '\x03' Ctrl-C, '\x04' Ctrl-D.
  void Type(const std::string& keys);

  // Waits until `text` shows up behind everything waited for before, on the
  // terminal or in the reply. False, and a failed test, after a minute.
  bool WaitForScreen(const std::string& text);
  // Waits for the prompt sign and for the line editor behind it.
  bool WaitForPrompt();
  bool WaitForReply(const std::string& text);
  // Waits until the reply has grown by `bytes`.
  bool WaitForMoreReply(std::size_t bytes);

  // Waits for the end of the program: its exit code, 128 + signal when a signal
  // ended it, -1 and a failed test when it does not end within a minute.
  int WaitForEnd();

  // All that was shown and written so far.
  const std::string& screen() const { return screen_; }
  const std::string& reply() const { return reply_; }

 private:
  // Reads what is there, waiting a little for more. False when both are closed.
  bool Read();
  bool WaitFor(const std::string& text, const std::string& where,
               std::size_t* from);

  pid_t child_ = -1;
  int terminal_ = -1;
  int output_ = -1;
  std::string screen_;
  std::string reply_;
  std::size_t screen_seen_ = 0;
  std::size_t reply_seen_ = 0;
};

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_CLI_TERMINAL_H_
