#include "cli/file_fault.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "fucina/diag/printable.h"

namespace fucina::cli {
namespace {

// A handler has no argument to carry it and may not allocate.
char message[2048];
std::size_t message_size = 0;

void OnFault(int) {
  // Nothing is left to do when it cannot be written.
  if (write(STDERR_FILENO, message, message_size) < 0) _exit(1);
  _exit(static_cast<int>(ExitCode::kFile));
}

}  // namespace

void ReportFileFaults(const std::string& path) {
  const std::string text = absl::StrCat(
      "\nfucina: error: ", path.empty() ? "the model file" : Printable(path),
      ": a part of it that is in use is gone: it was cut short since it was "
      "opened, or the disk fails; replace files by renaming new ones over "
      "them\n");
  message_size = std::min(text.size(), sizeof(message));
  std::memcpy(message, text.data(), message_size);
  struct sigaction action = {};
  action.sa_handler = OnFault;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace fucina::cli
