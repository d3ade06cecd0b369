#include "cli/bench_report.h"

#include <sys/resource.h>
#include <sys/utsname.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "cli/output_file.h"
#include "fucina/diag/printable.h"
#include "fucina/version.h"

namespace fucina::cli {
namespace {

using nlohmann::ordered_json;

// Tells files of one name and size apart without reading gigabytes.
constexpr std::size_t kHashedBytes = std::size_t{1} << 20;

ordered_json HashPrefix(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> bytes(kHashedBytes);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (in.gcount() <= 0) return nullptr;
  std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
  for (std::streamsize i = 0; i < in.gcount(); ++i) {
    hash = (hash ^ static_cast<unsigned char>(bytes[i])) * 0x100000001B3U;
  }
  return absl::StrFormat("%016x", hash);
}

ordered_json FirstLine(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line)) return nullptr;
  return Printable(line);
}

ordered_json CpuModel() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line)) {
    if (!absl::StartsWith(line, "model name")) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    return Printable(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return nullptr;
}

ordered_json System() {
  struct utsname name;
  if (uname(&name) != 0) return nullptr;
  return absl::StrCat(name.sysname, " ", name.release, " ", name.machine);
}

}  // namespace

ordered_json RunFacts(const Pipeline& pipeline,
                      std::span<const std::string> args, double load_seconds) {
  const StartupReport& report = pipeline.report;
  ordered_json types = ordered_json::object();
  for (const auto& [type, bytes] : report.weight_types) types[type] = bytes;
  std::vector<std::string> command = {"fucina", "run"};
  for (const std::string& arg : args) command.push_back(Printable(arg));
  const ordered_json model = {
      {"path", pipeline.file->display_name()},
      {"bytes", pipeline.file->file_bytes()},
      {"fnv1a64_of_first_mib", HashPrefix(pipeline.file->part_name(0))},
      {"architecture", report.architecture},
      {"weight_types", types}};
  const ordered_json machine = {
      {"cpu", CpuModel()},
      {"system", System()},
      {"governor",
       FirstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")},
      {"huge_pages", FirstLine("/sys/kernel/mm/transparent_hugepage/enabled")},
      {"threads", report.num_threads},
      {"threads_reason", report.threads_reason},
      {"pinned", false},
      {"kernel_level", report.kernel_level}};
  return {{"version", 1},
          {"fucina", FUCINA_VERSION_STRING},
          {"revision", FUCINA_REVISION},
          {"command", command},
          {"model", model},
          {"machine", machine},
          {"load_s", load_seconds}};
}

absl::Status WriteBenchReport(const std::string& path,
                              const ordered_json& facts,
                              const ordered_json& figures) {
  ordered_json report = facts;
  report.update(figures);
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  report["peak_rss_bytes"] = std::int64_t{usage.ru_maxrss} * 1024;
  // None after a load from the page cache.
  report["major_page_faults"] = usage.ru_majflt;
  return WriteOutputFile("--bench-json", path, report.dump(2) + "\n");
}

}  // namespace fucina::cli
