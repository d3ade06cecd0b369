#ifndef FUCINA_TESTS_CLI_PROGRAM_H_
#define FUCINA_TESTS_CLI_PROGRAM_H_

// Runs the program as a user runs it: another process, its own streams.

#include <string>
#include <vector>

namespace fucina::testing {

struct ProgramResult {
  int exit_code = -1;  // 128 + signal when a signal ended it
  std::string out;
  std::string err;
};

struct ProgramOptions {
  std::string input;                     // standard input
  std::vector<std::string> environment;  // "NAME=value", added to ours
  int interrupt_after_ms = -1;           // sends SIGINT; negative: never
  std::string directory;                 // working directory; empty: ours
};

// Runs `fucina` of this build with `args`. Fails the test when it cannot start
// or does not end within two minutes.
ProgramResult RunFucina(const std::vector<std::string>& args,
                        const ProgramOptions& options = {});

// The same for `fucina run`.
ProgramResult RunModel(std::vector<std::string> args,
                       const ProgramOptions& options = {});

// The same for a shell command; the build's bin/ comes first in PATH.
ProgramResult RunShell(const std::string& command,
                       const ProgramOptions& options = {});

// The folder of the build's programs, and the embedded model.
std::string BinDirectory();
std::string EmbeddedModel();

// A new folder, removed at the end of the process.
std::string TemporaryDirectory();

void WriteFile(const std::string& path, const std::string& bytes);
std::string ReadFile(const std::string& path);

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_CLI_PROGRAM_H_
