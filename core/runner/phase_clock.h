#ifndef FUCINA_RUNNER_PHASE_CLOCK_H_
#define FUCINA_RUNNER_PHASE_CLOCK_H_

// Charges the time since the previous mark to a phase; free when nobody asks.

#include <chrono>
#include <cstdint>

#include "fucina/contract/phase_times.h"

namespace fucina {

class PhaseClock {
 public:
  explicit PhaseClock(PhaseTimes* times) : times_(times) {
    if (times_ != nullptr) last_ns_ = Now();
  }
  void Mark(Phase phase) {
    if (times_ == nullptr) return;
    const std::int64_t now = Now();
    times_->phase_ns[static_cast<std::size_t>(phase)] += now - last_ns_;
    last_ns_ = now;
  }

 private:
  static std::int64_t Now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  PhaseTimes* times_;
  std::int64_t last_ns_ = 0;
};

}  // namespace fucina

#endif  // FUCINA_RUNNER_PHASE_CLOCK_H_
