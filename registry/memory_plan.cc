#include "registry/memory_plan.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace fucina {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

std::vector<std::string> Lines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::optional<std::int64_t> Number(const std::string& path) {
  const std::vector<std::string> lines = Lines(path);
  std::int64_t value = 0;
  // "max" is no number and no limit.
  if (lines.empty() || !absl::SimpleAtoi(lines[0], &value)) return std::nullopt;
  return value;
}

// The value behind `key` in lines of "key value …".
std::optional<std::int64_t> Field(const std::string& path,
                                  absl::string_view key) {
  for (const std::string& line : Lines(path)) {
    std::istringstream in(line);
    std::string name;
    std::int64_t value = 0;
    if (in >> name >> value && name == key) return value;
  }
  return std::nullopt;
}

// What one control group leaves, kNoLimit when it sets none.
std::int64_t Left(const std::string& group, absl::string_view limit_file,
                  absl::string_view usage_file,
                  absl::string_view reclaimable_key) {
  const auto limit = Number(absl::StrCat(group, "/", limit_file));
  if (!limit.has_value()) return kNoLimit;
  const std::int64_t used =
      Number(absl::StrCat(group, "/", usage_file)).value_or(0);
  // File pages that nobody uses count as used and go when memory is wanted.
  const std::int64_t reclaimable =
      Field(absl::StrCat(group, "/memory.stat"), reclaimable_key).value_or(0);
  return std::max<std::int64_t>(
      0, *limit - std::max<std::int64_t>(0, used - reclaimable));
}

// The smallest over `path` and its ancestors below `root`.
std::int64_t LeftAlong(const std::string& root, std::string path,
                       absl::string_view limit_file,
                       absl::string_view usage_file,
                       absl::string_view reclaimable_key) {
  std::int64_t left = kNoLimit;
  for (;;) {
    left = std::min(left, Left(absl::StrCat(root, path), limit_file, usage_file,
                               reclaimable_key));
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return left;
    path.resize(slash);
  }
}

}  // namespace

AvailableMemory ReadAvailableMemory(const MemorySources& sources) {
  AvailableMemory available{kNoLimit, "no known limit"};
  if (const auto kib = Field(sources.meminfo, "MemAvailable:")) {
    available = {*kib * 1024, "free memory of this machine"};
  }
  for (const std::string& line : Lines(sources.cgroup_file)) {
    // "0::/path" for v2, "5:cpu,memory:/path" for v1.
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    std::string path = parts[2] == "/" ? "" : parts[2];
    std::int64_t left = kNoLimit;
    if (parts[1].empty()) {
      left = LeftAlong(sources.cgroup_root, path, "memory.max",
                       "memory.current", "inactive_file");
    } else {
      const std::vector<std::string> controllers =
          absl::StrSplit(parts[1], ',');
      if (std::find(controllers.begin(), controllers.end(), "memory") ==
          controllers.end()) {
        continue;
      }
      left = LeftAlong(sources.cgroup_root + "/memory", path,
                       "memory.limit_in_bytes", "memory.usage_in_bytes",
                       "total_inactive_file");
    }
    if (left < available.bytes) {
      available = {left, "memory limit of the container"};
    }
  }
  return available;
}

std::string HumanBytes(std::int64_t bytes) {
  constexpr absl::string_view kUnits[] = {"B",   "KiB", "MiB", "GiB",
                                          "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 || value >= 100
             ? absl::StrFormat("%.0f %s", value, kUnits[unit])
             : absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

}  // namespace fucina
