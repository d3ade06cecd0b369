#ifndef FUCINA_PARALLEL_THREAD_PLAN_H_
#define FUCINA_PARALLEL_THREAD_PLAN_H_

// How many threads to compute with on this machine, and why: the smallest of
// the processors the scheduler allows, the physical cores among them, and the
// processor quota of the container.

#include <optional>
#include <string>
#include <vector>

#include "fucina/export.h"

namespace fucina {

struct ThreadPlan {
  int num_threads = 1;
  // For --version and the log: "4: processor quota of 4.00 (cgroup cpu.max)".
  std::string reason;
};

// Where the facts come from; tests point it at fixture folders.
struct ThreadPlanSources {
  std::string cpu_dir = "/sys/devices/system/cpu";
  std::string cgroup_file = "/proc/self/cgroup";
  std::string cgroup_root = "/sys/fs/cgroup";
  // Processor numbers this process may run on; nullopt asks the scheduler.
  std::optional<std::vector<int>> allowed_cpus = std::nullopt;
};

// `requested` > 0 is taken as it is (a caller that asks for more threads than
// there are cores gets them); 0 or less asks for the plan. Never fails: a fact
// that cannot be read does not limit.
FUCINA_API ThreadPlan PlanThreads(int requested);
FUCINA_API ThreadPlan PlanThreads(int requested,
                                  const ThreadPlanSources& sources);

// Processors that the quota of the control group of this process, or of any of
// its ancestors, allows: the tightest of cgroup v2 cpu.max and v1
// cpu.cfs_quota_us / cpu.cfs_period_us. nullopt when none limits.
FUCINA_API std::optional<double> CgroupCpuQuota(
    const ThreadPlanSources& sources);

// The physical cores among `cpus`: processors that share a core, by the
// sibling lists of `cpu_dir`, count once. Without lists each counts.
FUCINA_API int CountPhysicalCores(const std::vector<int>& cpus,
                                  const std::string& cpu_dir);

}  // namespace fucina

#endif  // FUCINA_PARALLEL_THREAD_PLAN_H_
