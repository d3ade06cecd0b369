// The program: picks the command and prints the one error.

#include <cstdio>
#include <exception>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cli/exit_code.h"
#include "cli/file_fault.h"
#include "cli/inspect_command.h"
#include "cli/plugins_command.h"
#include "cli/run_command.h"
#include "cli/standard_streams.h"
#include "cli/version_command.h"
#include "fucina/contract/options.h"
#include "fucina/diag/printable.h"

namespace {

using fucina::Printable;
using fucina::cli::ExitCode;

constexpr char kUsage[] =
    R"(usage: fucina COMMAND [arguments]

Runs large language models on CPUs.

commands:
  run       chat with a model, complete a text, compare and measure
  inspect   show what a model file holds
  plugins   list plugins, what they offer and what was refused
  version   version, binary interface and instruction sets (also --version)
  help      this text, or the help of a command

Start with:   fucina run --chat "What is the capital of France?" --no-think
More:         fucina COMMAND --help
)";

absl::Status Dispatch(const std::string& command,
                      std::span<const std::string> args) {
  if (command == "run") return fucina::cli::RunRun(args);
  if (command == "inspect") return fucina::cli::RunInspect(args, std::cout);
  if (command == "plugins") return fucina::cli::RunPlugins(args, std::cout);
  if (command == "version" || command == "--version") {
    return fucina::cli::RunVersion(args, std::cout);
  }
  if (command == "help" || command == "--help" || command == "-h") {
    if (args.empty()) {
      std::cout << kUsage;
      return absl::OkStatus();
    }
    if (command == "help" && args.size() == 1 && args[0] != "help") {
      const std::string flag = "--help";
      return Dispatch(args[0], {&flag, 1});
    }
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected argument of ", command, ": ",
                     Printable(args.back()), "; expected at most a command"));
  }
  const std::vector<std::string> known = {"run", "inspect", "plugins",
                                          "version", "help"};
  const std::string nearest = fucina::NearestName(command, known);
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown command: ", Printable(command),
      nearest.empty() ? std::string("; see fucina --help")
                      : absl::StrCat("; did you mean '", nearest, "'")));
}

int Main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    std::cout << kUsage;
    return 0;
  }
  absl::Status status = Dispatch(arguments[0], std::span(arguments).subspan(1));
  std::cout.flush();
  if (status.ok() && (!std::cout || std::fflush(stdout) != 0)) {
    status = fucina::cli::WithExitCode(
        absl::ResourceExhaustedError("standard output cannot be written"),
        ExitCode::kMemory);
  }
  if (status.ok()) return 0;
  const ExitCode code = fucina::cli::ExitCodeOf(status);
  // The user knows what the key was for.
  if (code != ExitCode::kInterrupted) {
    std::cerr << "fucina: error: " << status.message() << "\n";
  }
  return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
  fucina::cli::OccupyClosedStreams();
  fucina::cli::ReportFileFaults("");
  try {
    return Main(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("fucina: error: out of memory\n", stderr);
    return static_cast<int>(ExitCode::kMemory);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fucina: error: %s\n", error.what());
    return static_cast<int>(ExitCode::kFailure);
  }
}
