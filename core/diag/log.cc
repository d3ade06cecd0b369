#include "fucina/diag/log.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fucina/diag/check.h"

namespace fucina {
namespace {

std::atomic<LogLevel> log_level{LogLevel::kWarning};

const char* Prefix(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return "fucina: ";
    case LogLevel::kWarning:
      return "fucina: warning: ";
    case LogLevel::kError:
    case LogLevel::kSilent:
      return "fucina: error: ";
  }
  return "";
}

}  // namespace

void SetLogLevel(LogLevel level) {
  log_level.store(level, std::memory_order_relaxed);
}

LogLevel GetLogLevel() { return log_level.load(std::memory_order_relaxed); }

namespace diag {

LogLine::~LogLine() {
  const std::string line = Prefix(level_) + stream_.str() + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void CheckFailed(const char* file, int line, const char* condition,
                 const std::string& detail) {
  std::fprintf(stderr, "%s:%d: check failed: %s %s\n", file, line, condition,
               detail.c_str());
  std::abort();
}

}  // namespace diag
}  // namespace fucina
