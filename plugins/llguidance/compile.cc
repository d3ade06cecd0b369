#include "compile.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "fucina/diag/printable.h"
#include "llguidance.h"

namespace fucina::llguidance {
namespace {

// The engine recurses by the depth of a grammar, and through chains of rules or
// references as long as the 50,000 that a text may have. Those take 250 MiB of
// stack; memory that is not touched costs nothing.
constexpr std::size_t kStackBytes = std::size_t{512} << 20;

const char* EngineName(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::kJsonSchema:
      return "json_schema";
    case GrammarKind::kLark:
      return "lark";
    case GrammarKind::kRegex:
      return "regex";
  }
  return "";
}

LlgConstraintInit InitFor(const EngineTokenizer& engine) {
  LlgConstraintInit init = {};
  llg_constraint_init_set_defaults(&init, engine.handle());
  // We report errors ourselves, and a reply's tokens are not for a log.
  init.log_stderr_level = 0;
  init.log_buffer_level = 0;
  init.limits.verbose_errors = false;
  return init;
}

// Shared by the caller and the thread, which may outlive the call.
struct Job {
  std::shared_ptr<const EngineTokenizer> engine;
  Grammar grammar;

  std::mutex mutex;
  std::condition_variable changed;
  std::optional<clockid_t> clock;  // the thread's own, while it runs
  bool done = false;
  MatcherHandle matcher;
  std::string error;
  std::string warning;
};

// Why no reply can begin, or empty: a rule that never ends, such as one of
// itself alone, compiles. Leaves the matcher as it is.
std::string DeadEnd(LlgMatcher* matcher) {
  const MatcherHandle probe(llg_clone_matcher(matcher));
  std::vector<std::uint32_t> mask(llg_matcher_get_mask_byte_size(matcher) /
                                  sizeof(std::uint32_t));
  LlgToken forced = 0;
  const bool begins =
      llg_matcher_compute_ff_tokens(probe.get(), &forced, 1) >= 0 &&
      llg_matcher_compute_mask_into(probe.get(), mask.data(),
                                    mask.size() * sizeof(std::uint32_t)) == 0;
  if (begins) return "";
  const std::string error = ErrorOf(probe.get());
  return error == kNothingFollows ? "no reply satisfies it" : error;
}

void Run(Job& job) {
  clockid_t clock;
  if (pthread_getcpuclockid(pthread_self(), &clock) == 0) {
    const std::lock_guard lock(job.mutex);
    job.clock = clock;
  }
  const LlgConstraintInit init = InitFor(*job.engine);
  const char* kind = EngineName(job.grammar.kind);
  MatcherHandle matcher(llg_new_matcher(&init, kind, job.grammar.text.c_str()));
  std::string error = ErrorOf(matcher.get());
  std::string warning;
  if (error.empty()) error = DeadEnd(matcher.get());
  if (error.empty()) {
    // A matcher does not tell warnings.
    char message[2048] = "";
    const int result = llg_validate_grammar(
        &init, kind, job.grammar.text.c_str(), message, sizeof(message));
    (result < 0 ? error : warning) = message;
  }
  const std::lock_guard lock(job.mutex);
  job.matcher = std::move(matcher);
  job.error = std::move(error);
  job.warning = std::move(warning);
  job.done = true;
  job.changed.notify_one();
}

void* ThreadMain(void* argument) {
  // The thread's own share of the job.
  const std::unique_ptr<std::shared_ptr<Job>> job(
      static_cast<std::shared_ptr<Job>*>(argument));
  Run(**job);
  return nullptr;
}

// How long the thread has worked, which a machine that is busy with other
// things does not lengthen. REQUIRES: the mutex is held and it is not done.
std::chrono::nanoseconds Worked(const Job& job) {
  timespec time = {};
  if (!job.clock.has_value() || clock_gettime(*job.clock, &time) != 0) {
    return {};
  }
  return std::chrono::seconds(time.tv_sec) +
         std::chrono::nanoseconds(time.tv_nsec);
}

// Whether it is done before it has worked for `time`.
bool Await(Job& job, std::unique_lock<std::mutex>& lock,
           std::chrono::milliseconds time) {
  // Beyond this it is no matter why.
  const auto latest = std::chrono::steady_clock::now() + 10 * time;
  while (!job.done) {
    const auto left = time - Worked(job);
    if (left <= left.zero() || std::chrono::steady_clock::now() >= latest) {
      return false;
    }
    job.changed.wait_for(lock, left, [&job] { return job.done; });
  }
  return true;
}

bool StartThread(const std::shared_ptr<Job>& job) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  auto share = std::make_unique<std::shared_ptr<Job>>(job);
  pthread_t thread;
  const bool started =
      pthread_attr_setstacksize(&attributes, kStackBytes) == 0 &&
      pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
      pthread_create(&thread, &attributes, &ThreadMain, share.get()) == 0;
  pthread_attr_destroy(&attributes);
  if (started) share.release();
  return started;
}

// The path of a keyword that the engine does not know, behind its message.
std::string KeywordPath(const Grammar& grammar, const std::string& error) {
  static constexpr char kUnknown[] = "Unimplemented keys: [\"";
  const std::size_t at = error.find(kUnknown);
  if (at == std::string::npos) return "";
  const std::size_t start = at + sizeof(kUnknown) - 1;
  const std::string keyword =
      error.substr(start, error.find('"', start) - start);
  const std::string path = FindKeyword(grammar.text, keyword);
  return path.empty() ? "" : absl::StrCat(" at ", path);
}

// What the engine draws of a regular expression, on several lines:
//   at 1(8): invalid regex "a(" (in regex): regex parse error:
//       a(
//        ^
//   error: unclosed group
//      1 | start: /a(/
//                 ^
struct Picture {
  std::string expression;
  std::string column;  // "column 2", where the first caret stands
  std::string reason;  // empty: no picture
};

Picture ReadPicture(const std::vector<std::string>& lines) {
  constexpr std::size_t kIndent = 4;
  Picture picture;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    // Carets and nothing else: an expression may have its own.
    const bool marks = lines[i].find_first_not_of(" ^") == std::string::npos;
    const std::size_t caret = marks ? lines[i].find('^') : std::string::npos;
    if (i > 0 && caret != std::string::npos && caret >= kIndent &&
        picture.column.empty()) {
      picture.column = absl::StrCat("column ", caret - kIndent + 1);
      picture.expression =
          lines[i - 1].substr(std::min(kIndent, lines[i - 1].size()));
    }
    if (absl::StartsWith(lines[i + 1], "error: ")) {
      picture.reason = lines[i + 1].substr(7);
    }
  }
  return picture;
}

// What the engine says, in one line.
std::string OneLine(const Grammar& grammar, const std::string& error) {
  const std::vector<std::string> lines = absl::StrSplit(error, '\n');
  const Picture picture = ReadPicture(lines);
  if (grammar.kind == GrammarKind::kJsonSchema) {
    if (picture.reason.empty()) {
      return absl::StrCat(error, KeywordPath(grammar, error));
    }
    return absl::StrCat("in the expression '",
                        Printable(picture.expression, 80), "', ",
                        picture.column, ": ", picture.reason);
  }
  if (grammar.kind == GrammarKind::kRegex && !picture.reason.empty()) {
    return absl::StrCat(picture.column, ": ", picture.reason);
  }
  // "at 2(8): …" or "2(8): …".
  absl::string_view first = lines[0];
  absl::ConsumePrefix(&first, "at ");
  int line = 0;
  int place = 0;
  const std::size_t open = first.find('(');
  const std::size_t close = first.find("): ");
  std::string where;
  if (open != absl::string_view::npos && close != absl::string_view::npos &&
      open < close && absl::SimpleAtoi(first.substr(0, open), &line) &&
      absl::SimpleAtoi(first.substr(open + 1, close - open - 1), &place)) {
    // The engine's text around an expression is not the user's.
    if (grammar.kind == GrammarKind::kLark) {
      where = absl::StrCat("line ", line, ", column ", place, ": ");
    }
    first.remove_prefix(close + 3);
  }
  return absl::StrCat(
      where, first,
      picture.reason.empty()
          ? ""
          : absl::StrCat(" ", picture.column, ": ", picture.reason));
}

}  // namespace

absl::StatusOr<Compiled> Compile(std::shared_ptr<const EngineTokenizer> engine,
                                 const Grammar& grammar,
                                 std::chrono::milliseconds time) {
  const std::string prefix = absl::StrCat("invalid ", Name(grammar.kind), ": ");
  auto job = std::make_shared<Job>();
  job->engine = std::move(engine);
  job->grammar = grammar;
  if (!StartThread(job)) {
    return absl::ResourceExhaustedError(
        "no thread could be started to compile the grammar");
  }
  std::unique_lock lock(job->mutex);
  if (!Await(*job, lock, time)) {
    job->engine->bridge().Disconnect();
    return absl::InvalidArgumentError(
        absl::StrCat(prefix, "too complex: not compiled within ", time.count(),
                     " ms; simplify or split it"));
  }
  if (!job->error.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(prefix, Printable(OneLine(grammar, job->error), 4096)));
  }
  return Compiled{std::move(job->matcher), std::move(job->warning)};
}

}  // namespace fucina::llguidance
