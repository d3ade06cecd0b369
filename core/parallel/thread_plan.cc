#include "fucina/parallel/thread_plan.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace fucina {
namespace {

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

// The numbers of a list such as "0-3,8,10-11"; empty when it is malformed.
std::vector<int> ParseCpuList(absl::string_view text) {
  std::vector<int> cpus;
  for (absl::string_view piece :
       absl::StrSplit(absl::StripAsciiWhitespace(text), ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(piece, '-');
    int first = 0;
    int last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends[0], &first)) return {};
    if (!absl::SimpleAtoi(ends.back(), &last)) return {};
    if (first < 0 || last < first || last > 65535) return {};
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<int> AllowedCpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) {
    const int count = std::max(1U, std::thread::hardware_concurrency());
    for (int cpu = 0; cpu < count; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::optional<double> QuotaOf(double quota, double period) {
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

// "max 100000" or "400000 100000".
std::optional<double> V2Quota(const std::string& folder) {
  const std::optional<std::string> text = ReadFile(folder + "/cpu.max");
  if (!text) return std::nullopt;
  const std::vector<absl::string_view> words =
      absl::StrSplit(absl::StripAsciiWhitespace(*text), ' ', absl::SkipEmpty());
  double quota = 0;
  double period = 100000;
  if (words.empty() || !absl::SimpleAtod(words[0], &quota)) return std::nullopt;
  if (words.size() > 1 && !absl::SimpleAtod(words[1], &period)) {
    return std::nullopt;
  }
  return QuotaOf(quota, period);
}

std::optional<double> V1Quota(const std::string& folder) {
  const std::optional<std::string> quota_text =
      ReadFile(folder + "/cpu.cfs_quota_us");
  const std::optional<std::string> period_text =
      ReadFile(folder + "/cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (!quota_text || !period_text ||
      !absl::SimpleAtod(absl::StripAsciiWhitespace(*quota_text), &quota) ||
      !absl::SimpleAtod(absl::StripAsciiWhitespace(*period_text), &period)) {
    return std::nullopt;
  }
  return QuotaOf(quota, period);
}

// The tightest quota from `group` up to the root of the hierarchy.
template <typename Quota>
std::optional<double> Tightest(const std::string& root, std::string group,
                               Quota quota_of) {
  std::optional<double> tightest;
  for (;;) {
    while (!group.empty() && group.back() == '/') group.pop_back();
    const std::optional<double> quota = quota_of(root + group);
    if (quota && (!tightest || *quota < *tightest)) tightest = quota;
    if (group.empty()) return tightest;
    const std::size_t slash = group.rfind('/');
    group.resize(slash == std::string::npos ? 0 : slash);
  }
}

}  // namespace

std::optional<double> CgroupCpuQuota(const ThreadPlanSources& sources) {
  const std::optional<std::string> groups = ReadFile(sources.cgroup_file);
  if (!groups) return std::nullopt;
  std::optional<double> tightest;
  const auto tighten = [&tightest](std::optional<double> quota) {
    if (quota && (!tightest || *quota < *tightest)) tightest = quota;
  };
  // Lines are "hierarchy:controllers:path"; v2 is hierarchy 0, no controllers.
  for (absl::string_view line : absl::StrSplit(*groups, '\n')) {
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    if (fields[0] == "0" && fields[1].empty()) {
      tighten(Tightest(sources.cgroup_root, fields[2], V2Quota));
      // A hybrid system mounts v2 one folder deeper.
      tighten(Tightest(sources.cgroup_root + "/unified", fields[2], V2Quota));
      continue;
    }
    const std::vector<absl::string_view> controllers =
        absl::StrSplit(fields[1], ',');
    if (std::find(controllers.begin(), controllers.end(), "cpu") ==
        controllers.end()) {
      continue;
    }
    for (const std::string& mount : {std::string("cpu"), fields[1]}) {
      tighten(Tightest(absl::StrCat(sources.cgroup_root, "/", mount), fields[2],
                       V1Quota));
    }
  }
  return tightest;
}

int CountPhysicalCores(const std::vector<int>& cpus,
                       const std::string& cpu_dir) {
  const std::set<int> allowed(cpus.begin(), cpus.end());
  int cores = 0;
  for (int cpu : allowed) {
    const std::string topology =
        absl::StrCat(cpu_dir, "/cpu", cpu, "/topology/");
    std::optional<std::string> text =
        ReadFile(topology + "thread_siblings_list");
    if (!text) text = ReadFile(topology + "core_cpus_list");
    // A core is counted by its lowest processor that is allowed.
    bool lowest = true;
    if (text) {
      for (int sibling : ParseCpuList(*text)) {
        if (sibling < cpu && allowed.count(sibling) > 0) lowest = false;
      }
    }
    if (lowest) ++cores;
  }
  return std::max(1, cores);
}

ThreadPlan PlanThreads(int requested) {
  return PlanThreads(requested, ThreadPlanSources());
}

ThreadPlan PlanThreads(int requested, const ThreadPlanSources& sources) {
  if (requested > 0) {
    return {requested, absl::StrCat(requested, ": as requested")};
  }
  const std::vector<int> cpus =
      sources.allowed_cpus ? *sources.allowed_cpus : AllowedCpus();
  const int allowed = std::max<int>(1, static_cast<int>(cpus.size()));
  const int cores = CountPhysicalCores(cpus, sources.cpu_dir);
  ThreadPlan plan;
  plan.num_threads = cores;
  plan.reason = cores < allowed
                    ? absl::StrCat(cores, ": physical cores of the ", allowed,
                                   " processors allowed")
                    : absl::StrCat(cores, ": processors allowed");
  const std::optional<double> quota = CgroupCpuQuota(sources);
  if (quota) {
    // A fraction of a processor more than whole ones does not carry another
    // thread: all would wait for the one that is stopped.
    const double whole = std::floor(*quota + 1e-9);
    const int limit = static_cast<int>(std::clamp(whole, 1.0, 65536.0));
    if (limit < plan.num_threads) {
      plan.num_threads = limit;
      plan.reason = absl::StrFormat(
          "%d: processor quota of %.2f (control group), %d physical cores "
          "allowed",
          limit, *quota, cores);
    }
  }
  return plan;
}

}  // namespace fucina
