// Prints the roofs of this machine: what memory and arithmetic units give at
// best, on one thread and on all. With --quick only the two that a measurement
// of a model runs against, in under a second, as one line of JSON: the paired
// gate runs it beside each of its samples.
//
//   roofline_probe [--threads N] [--rounds N] [--mb N] [--quick]

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "benchmarks/roofline.h"
#include "fucina/kernels/kernels.h"
#include "fucina/parallel/thread_plan.h"
#include "fucina/parallel/thread_pool.h"

namespace fucina {
namespace {

constexpr char kUsage[] =
    "usage: roofline_probe [--threads N] [--rounds N] [--mb N] [--quick]\n";

struct Flags {
  int threads = 0;
  int rounds = 5;
  int mb = 0;  // 0: by the number of threads
  bool quick = false;
};

bool Parse(int argc, char** argv, Flags& flags) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    int* value = name == "--threads"  ? &flags.threads
                 : name == "--rounds" ? &flags.rounds
                 : name == "--mb"     ? &flags.mb
                                      : nullptr;
    if (name == "--quick") {
      flags.quick = true;
    } else if (value == nullptr || i + 1 == argc ||
               !absl::SimpleAtoi(argv[++i], value) || *value < 1) {
      return false;
    }
  }
  return true;
}

double Dram(ThreadPool& pool, const Flags& flags) {
  const std::size_t bytes =
      flags.mb > 0 ? static_cast<std::size_t>((flags.mb + 7) / 8) << 23
                   : roofline::DramBytes(pool.num_threads());
  return roofline::DramRead(pool, bytes, flags.rounds);
}

void PrintTable(const Flags& flags) {
  const int all = PlanThreads(flags.threads).num_threads;
  std::vector<int> counts = {1};
  if (all > 1) counts.push_back(all);
  std::printf("| roof | level |");
  for (const int n : counts) std::printf(" %d thread%s |", n, n > 1 ? "s" : "");
  std::printf("\n| --- | --- |");
  for (std::size_t i = 0; i < counts.size(); ++i) std::printf(" ---: |");
  const auto row = [&](const char* name, const std::string& level,
                       const char* unit, auto measure) {
    std::printf("\n| %s | %s |", name, level.c_str());
    for (const int n : counts) {
      ThreadPool pool(n);
      std::printf(" %.1f %s |", measure(pool) / 1e9, unit);
      std::fflush(stdout);
    }
  };
  row("DRAM read", "", "GB/s",
      [&](ThreadPool& pool) { return Dram(pool, flags); });
  for (const KernelLevel level : kAllKernelLevels) {
    if (level == KernelLevel::kScalar || KernelsFor(level) == nullptr) continue;
    row("int8 dot products", std::string(Name(level)), "Gop/s",
        [&](ThreadPool& pool) { return roofline::Int8(pool, level); });
    row("f32 multiply-adds", std::string(Name(level)), "Gflop/s",
        [&](ThreadPool& pool) { return roofline::F32(pool, level); });
  }
  std::printf("\n");
}

}  // namespace
}  // namespace fucina

int main(int argc, char** argv) {
  fucina::Flags flags;
  if (!fucina::Parse(argc, argv, flags)) {
    std::fputs(fucina::kUsage, stderr);
    return 2;
  }
  if (!flags.quick) {
    fucina::PrintTable(flags);
    return 0;
  }
  fucina::ThreadPool pool(fucina::PlanThreads(flags.threads).num_threads);
  std::printf("{\"threads\": %d, \"dram_gb_s\": %.2f, \"int8_gop_s\": %.1f}\n",
              pool.num_threads(), fucina::Dram(pool, flags) / 1e9,
              fucina::roofline::Int8(pool, fucina::BestKernelLevel()) / 1e9);
  return 0;
}
