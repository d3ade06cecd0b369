#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "cli/exit_code.h"
#include "fucina/diag/check.h"

namespace fucina::cli {
namespace {

// A handler has no argument to carry them, so both are of the process.
std::atomic<bool> raised{false};
std::atomic<bool> installed{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void OnInterrupt(int) {
  if (raised.exchange(true)) _exit(static_cast<int>(ExitCode::kInterrupted));
}

}  // namespace

Interrupt::Interrupt() {
  FUCINA_CHECK(!installed.exchange(true));
  raised = false;
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  sigemptyset(&action.sa_mask);
  // Without SA_RESTART a read at the prompt returns and sees the flag.
  sigaction(SIGINT, &action, nullptr);
}

Interrupt::~Interrupt() {
  signal(SIGINT, SIG_DFL);
  installed = false;
}

const std::atomic<bool>& Interrupt::flag() const { return raised; }

void Interrupt::Raise() { raised = true; }

bool Interrupt::Take() { return raised.exchange(false); }

}  // namespace fucina::cli
