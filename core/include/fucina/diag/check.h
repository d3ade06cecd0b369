#ifndef FUCINA_DIAG_CHECK_H_
#define FUCINA_DIAG_CHECK_H_

// FUCINA_CHECK stops the program when a caller inside it is wrong: continuing
// would be worse than stopping. It never judges files, users or the operating
// system; those get an absl::Status. Checks behave the same in every build
// type.

#include <sstream>
#include <string>

#include "fucina/export.h"

namespace fucina::diag {

// Prints "file:line: check failed: condition detail" to stderr and aborts.
[[noreturn]] FUCINA_API void CheckFailed(const char* file, int line,
                                         const char* condition,
                                         const std::string& detail);

// Collects what is streamed after a failed check, then stops the program.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition)
      : file_(file), line_(line), condition_(condition) {}
  [[noreturn]] ~CheckFailure() {
    CheckFailed(file_, line_, condition_, stream_.str());
  }
  std::ostream& stream() { return stream_; }

 private:
  const char* file_;
  int line_;
  const char* condition_;
  std::ostringstream stream_;
};

}  // namespace fucina::diag

#define FUCINA_CHECK(condition)                                             \
  while (!(condition))                                                      \
  [[unlikely]] ::fucina::diag::CheckFailure(__FILE__, __LINE__, #condition) \
      .stream()

#define FUCINA_CHECK_OP_(a, op, b) \
  FUCINA_CHECK((a)op(b)) << (a) << " against " << (b) << " "
#define FUCINA_CHECK_EQ(a, b) FUCINA_CHECK_OP_(a, ==, b)
#define FUCINA_CHECK_NE(a, b) FUCINA_CHECK_OP_(a, !=, b)
#define FUCINA_CHECK_LT(a, b) FUCINA_CHECK_OP_(a, <, b)
#define FUCINA_CHECK_LE(a, b) FUCINA_CHECK_OP_(a, <=, b)
#define FUCINA_CHECK_GT(a, b) FUCINA_CHECK_OP_(a, >, b)
#define FUCINA_CHECK_GE(a, b) FUCINA_CHECK_OP_(a, >=, b)

#endif  // FUCINA_DIAG_CHECK_H_
