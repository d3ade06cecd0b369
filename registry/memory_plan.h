#ifndef FUCINA_REGISTRY_MEMORY_PLAN_H_
#define FUCINA_REGISTRY_MEMORY_PLAN_H_

// How much memory this process may still take, asked before weights are loaded:
// the system kills without a message, so the refusal must come first.

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace fucina {

struct AvailableMemory {
  std::int64_t bytes = 0;
  std::string
      reason;  // "free memory of this machine", "limit of the container"
};

// Where the facts come from; tests point it at fixture folders.
struct MemorySources {
  std::string meminfo = "/proc/meminfo";
  std::string cgroup_file = "/proc/self/cgroup";
  std::string cgroup_root = "/sys/fs/cgroup";
};

// The smallest of the machine's MemAvailable and, for the control group of this
// process and each of its ancestors (v2 memory.max or v1
// memory.limit_in_bytes), the limit less what is used and cannot be reclaimed.
// A fact that cannot be read does not limit; without any, the largest integer.
AvailableMemory ReadAvailableMemory(const MemorySources& sources = {});

// "4.7 GiB", "512 MiB", "730 KiB": three significant digits at most.
std::string HumanBytes(std::int64_t bytes);

}  // namespace fucina

#endif  // FUCINA_REGISTRY_MEMORY_PLAN_H_
