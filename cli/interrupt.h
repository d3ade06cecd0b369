#ifndef FUCINA_CLI_INTERRUPT_H_
#define FUCINA_CLI_INTERRUPT_H_

// The interrupt key. While an Interrupt exists, SIGINT raises its flag instead
// of ending the program; a second one that nobody took still ends it, so that a
// program that hangs can always be left. At most one exists at a time.

#include <atomic>

namespace fucina::cli {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Raised by the key; pass it to what should stop.
  const std::atomic<bool>& flag() const;
  // Raises it as the key does.
  void Raise();
  // Lowers the flag and tells whether it was raised.
  bool Take();
};

}  // namespace fucina::cli

#endif  // FUCINA_CLI_INTERRUPT_H_
