#include "tests/cli/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "gtest/gtest.h"
#include "tests/cli/program.h"

namespace fucina::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLimit = std::chrono::minutes(1);

}  // namespace

Terminal::Terminal(const std::vector<std::string>& args) {
  int out[2] = {-1, -1};
  terminal_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal_ < 0 || grantpt(terminal_) != 0 || unlockpt(terminal_) != 0 ||
      pipe2(out, O_CLOEXEC) != 0) {
    ADD_FAILURE() << "no pseudo terminal: " << std::strerror(errno);
    return;
  }
  const std::string name = ptsname(terminal_);
  std::vector<std::string> argv = {BinDirectory() + "/fucina"};
  argv.insert(argv.end(), args.begin(), args.end());
  child_ = fork();
  if (child_ == 0) {
    // The terminal becomes the controlling one: Ctrl-C is a signal.
    setsid();
    const int fd = open(name.c_str(), O_RDWR);
    if (fd < 0 || ioctl(fd, TIOCSCTTY, 0) != 0) _exit(127);
    dup2(fd, STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    setenv("TERM", "vt100", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    std::vector<char*> pointers;
    for (const std::string& arg : argv) pointers.push_back(strdup(arg.c_str()));
    pointers.push_back(nullptr);
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  close(out[1]);
  output_ = out[0];
}

Terminal::~Terminal() {
  if (child_ > 0) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  if (terminal_ >= 0) close(terminal_);
  if (output_ >= 0) close(output_);
}

void Terminal::Type(const std::string& keys) {
  ASSERT_EQ(write(terminal_, keys.data(), keys.size()),
            static_cast<ssize_t>(keys.size()))
      << std::strerror(errno);
}

bool Terminal::Read() {
  pollfd fds[2] = {{terminal_, POLLIN, 0}, {output_, POLLIN, 0}};
  poll(fds, 2, 50);
  const auto drain = [](pollfd& fd, std::string& text, int& ours) {
    if (fd.fd < 0 || fd.revents == 0) return;
    char buffer[4096];
    const ssize_t count = read(fd.fd, buffer, sizeof(buffer));
    if (count > 0) {
      text.append(buffer, static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      // A terminal whose other side is closed reads as an error.
      close(ours);
      ours = -1;
    }
  };
  drain(fds[0], screen_, terminal_);
  drain(fds[1], reply_, output_);
  return terminal_ >= 0 || output_ >= 0;
}

bool Terminal::WaitFor(const std::string& text, const std::string& where,
                       std::size_t* from) {
  const Clock::time_point start = Clock::now();
  while (true) {
    const std::size_t found = where.find(text, *from);
    if (found != std::string::npos) {
      *from = found + text.size();
      return true;
    }
    if (!Read() || Clock::now() - start > kLimit) {
      // What the last read brought may hold it.
      if (where.find(text, *from) != std::string::npos) continue;
      ADD_FAILURE() << "never came: " << text << "\nscreen:\n"
                    << screen_ << "\nreply:\n"
                    << reply_;
      return false;
    }
  }
}

bool Terminal::WaitForScreen(const std::string& text) {
  return WaitFor(text, screen_, &screen_seen_);
}

bool Terminal::WaitForPrompt() {
  if (!WaitForScreen("> ")) return false;
  // The sign is drawn a moment before the editor takes single keys.
  const Clock::time_point start = Clock::now();
  termios mode = {};
  while (tcgetattr(terminal_, &mode) == 0 && (mode.c_lflag & ICANON) != 0) {
    if (!Read() || Clock::now() - start > kLimit) {
      ADD_FAILURE() << "no line editor\nscreen:\n" << screen_;
      return false;
    }
  }
  return true;
}

bool Terminal::WaitForReply(const std::string& text) {
  return WaitFor(text, reply_, &reply_seen_);
}

bool Terminal::WaitForMoreReply(std::size_t bytes) {
  const std::size_t enough = reply_.size() + bytes;
  const Clock::time_point start = Clock::now();
  while (reply_.size() < enough) {
    if (!Read() || Clock::now() - start > kLimit) {
      ADD_FAILURE() << "no more reply\nscreen:\n" << screen_;
      return false;
    }
  }
  return true;
}

int Terminal::WaitForEnd() {
  const Clock::time_point start = Clock::now();
  while (Read()) {
    if (Clock::now() - start > kLimit) {
      ADD_FAILURE() << "it did not end\nscreen:\n"
                    << screen_ << "\nreply:\n"
                    << reply_;
      return -1;
    }
  }
  int status = 0;
  waitpid(child_, &status, 0);
  child_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace fucina::testing
