#ifndef FUCINA_TESTS_CONFORMANCE_STDOUT_TRAP_H_
#define FUCINA_TESTS_CONFORMANCE_STDOUT_TRAP_H_

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

namespace fucina::conformance {

// Everything written to standard output while it lives goes to a file instead.
class StdoutTrap {
 public:
  StdoutTrap() : saved_(dup(STDOUT_FILENO)), file_(std::tmpfile()) {
    std::fflush(stdout);
    if (file_ != nullptr) dup2(fileno(file_), STDOUT_FILENO);
  }
  // Restores standard output and returns how many bytes were caught.
  long Release() {
    std::cout.flush();
    std::fflush(stdout);
    const long caught =
        file_ == nullptr ? 0
                         : static_cast<long>(lseek(fileno(file_), 0, SEEK_END));
    dup2(saved_, STDOUT_FILENO);
    close(saved_);
    if (file_ != nullptr) std::fclose(file_);
    return caught;
  }

 private:
  int saved_;
  std::FILE* file_;
};

}  // namespace fucina::conformance

#endif  // FUCINA_TESTS_CONFORMANCE_STDOUT_TRAP_H_
