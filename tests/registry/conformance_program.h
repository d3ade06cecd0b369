#ifndef FUCINA_TESTS_REGISTRY_CONFORMANCE_PROGRAM_H_
#define FUCINA_TESTS_REGISTRY_CONFORMANCE_PROGRAM_H_

// fucina-conformance as an author runs it.

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace fucina::testing {

struct Outcome {
  int exit_code = -1;
  std::string output;  // both streams
};

// Through a shell: quote what it would read.
inline Outcome RunConformance(const std::string& arguments) {
  const std::string command = std::string(FUCINA_BINARY_DIR) +
                              "/bin/fucina-conformance " + arguments + " 2>&1";
  Outcome outcome;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  while (const std::size_t n =
             std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    outcome.output.append(buffer.data(), n);
  }
  outcome.exit_code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

// A plugin of this tree.
inline std::string OwnPlugin(const std::string& name) {
  return std::string(FUCINA_BINARY_DIR) + "/lib/fucina/plugins/libfucina_" +
         name + ".so";
}

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_REGISTRY_CONFORMANCE_PROGRAM_H_
