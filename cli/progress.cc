#include "cli/progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace fucina::cli {
namespace {

using Clock = std::chrono::steady_clock;
// A wait shorter than this needs no explanation.
constexpr auto kPatience = std::chrono::seconds(2);
constexpr auto kTick = std::chrono::milliseconds(50);

}  // namespace

Progress::Progress(absl::string_view what) : what_(what) {
  if (isatty(STDERR_FILENO)) watcher_ = std::thread([this] { Watch(); });
}

Progress::~Progress() { Finish(); }

void Progress::Set(int done, int total) {
  done_ = done;
  total_ = total;
}

void Progress::Finish() {
  finished_ = true;
  if (watcher_.joinable()) watcher_.join();
}

void Progress::Watch() {
  const Clock::time_point start = Clock::now();
  bool shown = false;
  while (!finished_) {
    std::this_thread::sleep_for(kTick);
    const auto elapsed = Clock::now() - start;
    if (elapsed < kPatience || finished_) continue;
    std::string line = absl::StrCat("\r\033[K", what_, " ");
    if (const int total = total_; total > 0) {
      absl::StrAppend(&line, done_.load(), "/", total, " (",
                      100LL * done_.load() / total, " %) ");
    }
    absl::StrAppend(
        &line,
        std::chrono::duration_cast<std::chrono::seconds>(elapsed).count(),
        " s");
    std::fwrite(line.data(), 1, line.size(), stderr);
    shown = true;
  }
  if (shown) std::fputs("\r\033[K", stderr);
}

}  // namespace fucina::cli
