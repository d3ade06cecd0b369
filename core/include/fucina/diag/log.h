#ifndef FUCINA_DIAG_LOG_H_
#define FUCINA_DIAG_LOG_H_

// FUCINA_LOG(INFO) << "…" writes one line to stderr. Standard output belongs to
// generated text, so nothing here ever goes there. Libraries log facts that a
// user would want on the second reading, at most once per load, never per
// token. Thread-safe: a line is written with one call.

#include <sstream>

#include "fucina/export.h"

namespace fucina {

enum class LogLevel { kInfo, kWarning, kError, kSilent };

// Lines below `level` are dropped. The default is kWarning.
FUCINA_API void SetLogLevel(LogLevel level);
FUCINA_API LogLevel GetLogLevel();

namespace diag {

class FUCINA_API LogLine {
 public:
  explicit LogLine(LogLevel level) : level_(level) {}
  ~LogLine();
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;
  std::ostream& stream() { return stream_; }

 private:
  LogLevel level_;
  std::ostringstream stream_;
};

inline constexpr LogLevel kINFO = LogLevel::kInfo;
inline constexpr LogLevel kWARNING = LogLevel::kWarning;
inline constexpr LogLevel kERROR = LogLevel::kError;

}  // namespace diag
}  // namespace fucina

#define FUCINA_LOG(severity)                                   \
  if (::fucina::diag::k##severity < ::fucina::GetLogLevel()) { \
  } else                                                       \
    ::fucina::diag::LogLine(::fucina::diag::k##severity).stream()

#endif  // FUCINA_DIAG_LOG_H_
