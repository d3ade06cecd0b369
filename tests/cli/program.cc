#include "tests/cli/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"

namespace fucina::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLimit = std::chrono::minutes(2);

ProgramResult Run(const std::vector<std::string>& argv,
                  const ProgramOptions& options) {
  ProgramResult result;
  int in[2];
  int out[2];
  int err[2];
  if (pipe(in) != 0 || pipe(out) != 0 || pipe(err) != 0) {
    ADD_FAILURE() << "pipe: " << std::strerror(errno);
    return result;
  }
  const pid_t child = fork();
  if (child == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    for (const int fd : {in[0], in[1], out[0], out[1], err[0], err[1]}) {
      close(fd);
    }
    signal(SIGPIPE, SIG_DFL);
    if (!options.directory.empty() && chdir(options.directory.c_str()) != 0) {
      _exit(127);
    }
    for (const std::string& variable : options.environment) {
      putenv(strdup(variable.c_str()));
    }
    std::vector<char*> pointers;
    for (const std::string& arg : argv) pointers.push_back(strdup(arg.c_str()));
    pointers.push_back(nullptr);
    execvp(pointers[0], pointers.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  close(err[1]);
  signal(SIGPIPE, SIG_IGN);
  fcntl(in[1], F_SETFL, O_NONBLOCK);

  const Clock::time_point start = Clock::now();
  bool interrupted = options.interrupt_after_ms < 0;
  std::size_t written = 0;
  bool in_open = true;
  bool out_open = true;
  bool err_open = true;
  while (out_open || err_open) {
    const auto elapsed = Clock::now() - start;
    if (elapsed > kLimit) {
      ADD_FAILURE() << argv[0] << " did not end";
      kill(child, SIGKILL);
      break;
    }
    if (!interrupted &&
        elapsed > std::chrono::milliseconds(options.interrupt_after_ms)) {
      kill(child, SIGINT);
      interrupted = true;
    }
    if (in_open && written == options.input.size()) {
      close(in[1]);
      in_open = false;
    }
    pollfd fds[3] = {{out_open ? out[0] : -1, POLLIN, 0},
                     {err_open ? err[0] : -1, POLLIN, 0},
                     {in_open ? in[1] : -1, POLLOUT, 0}};
    poll(fds, 3, 10);
    const auto drain = [](const pollfd& fd, std::string& text, bool& open) {
      if (fd.fd < 0 || fd.revents == 0) return;
      char buffer[4096];
      const ssize_t count = read(fd.fd, buffer, sizeof(buffer));
      if (count > 0) {
        text.append(buffer, static_cast<std::size_t>(count));
      } else {
        open = false;
      }
    };
    drain(fds[0], result.out, out_open);
    drain(fds[1], result.err, err_open);
    if (in_open && fds[2].revents != 0) {
      const ssize_t count = write(in[1], options.input.data() + written,
                                  options.input.size() - written);
      if (count > 0) {
        written += static_cast<std::size_t>(count);
      } else if (errno != EAGAIN) {
        written = options.input.size();  // it does not read any more
      }
    }
  }
  if (in_open) close(in[1]);
  close(out[0]);
  close(err[0]);
  int status = 0;
  waitpid(child, &status, 0);
  result.exit_code =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace

std::string BinDirectory() { return FUCINA_BINARY_DIR "/bin"; }

std::string EmbeddedModel() {
  return FUCINA_SOURCE_DIR "/models/atlas-6m-q8_0.gguf";
}

ProgramResult RunFucina(const std::vector<std::string>& args,
                        const ProgramOptions& options) {
  std::vector<std::string> argv = {BinDirectory() + "/fucina"};
  argv.insert(argv.end(), args.begin(), args.end());
  return Run(argv, options);
}

ProgramResult RunModel(std::vector<std::string> args,
                       const ProgramOptions& options) {
  args.insert(args.begin(), "run");
  return RunFucina(args, options);
}

ProgramResult RunShell(const std::string& command,
                       const ProgramOptions& options) {
  ProgramOptions with_path = options;
  const char* path = std::getenv("PATH");
  with_path.environment.push_back("PATH=" + BinDirectory() + ":" +
                                  (path != nullptr ? path : ""));
  return Run({"/bin/bash", "-e", "-o", "pipefail", "-c", command}, with_path);
}

std::string TemporaryDirectory() {
  // One parent for the process, so that one removal takes all.
  static const struct Parent {
    Parent() {
      std::string pattern =
          (std::filesystem::temp_directory_path() / "fucina-test-XXXXXX")
              .string();
      if (mkdtemp(pattern.data()) != nullptr) path = pattern;
    }
    ~Parent() {
      std::error_code ignored;
      if (!path.empty()) std::filesystem::remove_all(path, ignored);
    }
    std::string path;
  } parent;
  static int count = 0;
  const std::string path = parent.path + "/" + std::to_string(count++);
  std::filesystem::create_directory(path);
  return path;
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  ASSERT_TRUE(out.good()) << path;
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace fucina::testing
