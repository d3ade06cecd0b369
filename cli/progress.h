#ifndef FUCINA_CLI_PROGRESS_H_
#define FUCINA_CLI_PROGRESS_H_

// Shows that something long is going on: one line on stderr that is rewritten,
// only on a terminal, only once two seconds have passed, and erased at the end.

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"

namespace fucina::cli {

class Progress {
 public:
  // Starts to watch; `what` says what is being done, such as "loading model".
  explicit Progress(absl::string_view what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // How far it is, `done` of `total` units. Any thread.
  void Set(int done, int total);
  // Erases the line and stops showing; a no-op when called again.
  void Finish();

 private:
  void Watch();

  std::string what_;
  std::atomic<int> done_{0};
  std::atomic<int> total_{0};
  std::atomic<bool> finished_{false};
  std::thread watcher_;  // not joinable where stderr is no terminal
};

}  // namespace fucina::cli

#endif  // FUCINA_CLI_PROGRESS_H_
