// The plan on fixture folders that look like /sys and /proc.
#include "fucina/parallel/thread_plan.h"

#include <sched.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace fucina {
namespace {

namespace fs = std::filesystem;

class ThreadPlanTest : public testing::Test {
 protected:
  ThreadPlanTest()
      : root_(fs::path(testing::TempDir()) /
              (std::string("thread_plan_") +
               testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(root_);
    fs::create_directories(root_);
    sources_.cpu_dir = (root_ / "cpu").string();
    sources_.cgroup_file = (root_ / "self_cgroup").string();
    sources_.cgroup_root = (root_ / "cgroup").string();
  }
  ~ThreadPlanTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const fs::path file = root_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void Allow(int count) {
    std::vector<int> cpus(static_cast<std::size_t>(count));
    std::iota(cpus.begin(), cpus.end(), 0);
    sources_.allowed_cpus = cpus;
  }
  void Siblings(int cpu, const std::string& list) {
    Write("cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
          list + "\n");
  }

  fs::path root_;
  ThreadPlanSources sources_;
};

TEST_F(ThreadPlanTest, RequestIsTakenAsItIs) {
  Allow(2);
  const ThreadPlan plan = PlanThreads(7, sources_);
  EXPECT_EQ(plan.num_threads, 7);
  EXPECT_EQ(plan.reason, "7: as requested");
}

TEST_F(ThreadPlanTest, WithoutFactsEveryAllowedProcessorCounts) {
  Allow(6);
  const ThreadPlan plan = PlanThreads(0, sources_);
  EXPECT_EQ(plan.num_threads, 6);
  EXPECT_EQ(plan.reason, "6: processors allowed");
}

TEST_F(ThreadPlanTest, BothHardwareThreadsOfACoreCountOnce) {
  Allow(8);
  for (int cpu = 0; cpu < 8; ++cpu) {
    Siblings(cpu, std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
  }
  const ThreadPlan plan = PlanThreads(0, sources_);
  EXPECT_EQ(plan.num_threads, 4);
  EXPECT_EQ(plan.reason, "4: physical cores of the 8 processors allowed");
}

TEST_F(ThreadPlanTest, ACoreCountsByTheThreadThatIsAllowed) {
  // Cores {0,1} {2,3} {4,5}; processors 1, 2 and 3 are allowed: two cores.
  for (int cpu = 0; cpu < 6; ++cpu) {
    const int first = cpu / 2 * 2;
    Siblings(cpu, std::to_string(first) + "-" + std::to_string(first + 1));
  }
  EXPECT_EQ(CountPhysicalCores({1, 2, 3}, sources_.cpu_dir), 2);
  EXPECT_EQ(CountPhysicalCores({1}, sources_.cpu_dir), 1);
  EXPECT_EQ(CountPhysicalCores({1, 3, 5}, sources_.cpu_dir), 3);
}

TEST_F(ThreadPlanTest, NewerNameOfTheSiblingListIsRead) {
  Write("cpu/cpu0/topology/core_cpus_list", "0-1");
  Write("cpu/cpu1/topology/core_cpus_list", "0-1");
  EXPECT_EQ(CountPhysicalCores({0, 1}, sources_.cpu_dir), 1);
}

TEST_F(ThreadPlanTest, MalformedSiblingListsDoNotLimit) {
  Siblings(0, "zero");
  Siblings(1, "3-1");
  Siblings(2, "0-99999999999");
  Siblings(3, "");
  EXPECT_EQ(CountPhysicalCores({0, 1, 2, 3}, sources_.cpu_dir), 4);
}

TEST_F(ThreadPlanTest, QuotaOfTheGroupLimits) {
  Allow(8);
  Write("self_cgroup", "0::/docker/abc\n");
  Write("cgroup/docker/abc/cpu.max", "400000 100000\n");
  const ThreadPlan plan = PlanThreads(0, sources_);
  EXPECT_EQ(plan.num_threads, 4);
  EXPECT_EQ(plan.reason,
            "4: processor quota of 4.00 (control group), 8 physical cores "
            "allowed");
}

TEST_F(ThreadPlanTest, TightestQuotaOfAnyAncestorLimits) {
  Write("self_cgroup", "0::/a/b/c\n");
  Write("cgroup/a/b/c/cpu.max", "max 100000\n");
  Write("cgroup/a/b/cpu.max", "600000 100000\n");
  Write("cgroup/a/cpu.max", "150000 50000\n");
  Write("cgroup/cpu.max", "800000 100000\n");
  EXPECT_EQ(CgroupCpuQuota(sources_), 3.0);
}

TEST_F(ThreadPlanTest, InsideAContainerTheGroupIsTheRoot) {
  Write("self_cgroup", "0::/\n");
  Write("cgroup/cpu.max", "250000 100000\n");
  EXPECT_EQ(CgroupCpuQuota(sources_), 2.5);
  Allow(8);
  EXPECT_EQ(PlanThreads(0, sources_).num_threads, 2);
}

TEST_F(ThreadPlanTest, QuotaBelowOneProcessorStillGivesAThread) {
  Allow(4);
  Write("self_cgroup", "0::/\n");
  Write("cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(PlanThreads(0, sources_).num_threads, 1);
}

TEST_F(ThreadPlanTest, VersionOneQuotaLimits) {
  Write("self_cgroup",
        "12:memory:/x\n"
        "4:cpu,cpuacct:/docker/abc\n"
        "1:name=systemd:/docker/abc\n");
  Write("cgroup/cpu/docker/abc/cpu.cfs_quota_us", "-1\n");
  Write("cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpuQuota(sources_), std::nullopt);
  Write("cgroup/cpu/docker/cpu.cfs_quota_us", "300000\n");
  Write("cgroup/cpu/docker/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpuQuota(sources_), 3.0);
  Write("cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "200000\n");
  Write("cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpuQuota(sources_), 2.0);
}

TEST_F(ThreadPlanTest, UnreadableFactsDoNotLimit) {
  Allow(3);
  Write("self_cgroup", "0::/a\nnonsense\n::\n");
  for (const char* text : {"", "max", "many 100000", "100000 none", "0 100000",
                           "-5 100000", "100000 0"}) {
    Write("cgroup/a/cpu.max", text);
    EXPECT_EQ(PlanThreads(0, sources_).num_threads, 3) << text;
  }
}

TEST_F(ThreadPlanTest, QuotaAboveTheCoresDoesNotRaise) {
  Allow(2);
  Write("self_cgroup", "0::/\n");
  Write("cgroup/cpu.max", "1600000 100000\n");
  EXPECT_EQ(PlanThreads(0, sources_).num_threads, 2);
}

// CPU-1: the smallest of quota, allowed set and the cores in it, whichever of
// the three that is. Eight processors, two to a core.
TEST_F(ThreadPlanTest, TheSmallestOfQuotaSetAndCoresCounts) {
  for (int cpu = 0; cpu < 8; ++cpu) {
    Siblings(cpu, std::to_string(cpu / 2 * 2) + "-" +
                      std::to_string(cpu / 2 * 2 + 1));
  }
  Write("self_cgroup", "0::/docker/abc\n");
  const struct {
    std::vector<int> allowed;
    const char* quota;
    int threads;
  } cases[] = {
      {{0, 1, 2, 3, 4, 5, 6, 7}, "max 100000", 4},     // cores
      {{0, 1, 2, 3, 4, 5, 6, 7}, "400000 100000", 4},  // both
      {{0, 1, 2, 3, 4, 5, 6, 7}, "300000 100000", 3},  // quota
      {{0, 1, 2, 3, 4, 5, 6, 7}, "600000 100000", 4},  // cores below quota
      {{0, 1, 2}, "400000 100000", 2},                 // cores of the set
      {{1, 3, 5}, "400000 100000", 3},                 // the set
      {{1, 3, 5}, "200000 100000", 2},                 // quota below the set
      {{6, 7}, "400000 100000", 1},                    // one core
  };
  for (const auto& c : cases) {
    sources_.allowed_cpus = c.allowed;
    Write("cgroup/docker/abc/cpu.max", std::string(c.quota) + "\n");
    EXPECT_EQ(PlanThreads(0, sources_).num_threads, c.threads)
        << c.allowed.size() << " allowed, " << c.quota;
  }
}

// As under `taskset -c`: the set is asked of the system.
TEST_F(ThreadPlanTest, TheAffinityOfTheProcessIsTheAllowedSet) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const ThreadPlan plan = PlanThreads(0, sources_);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(plan.num_threads, 1);
  EXPECT_EQ(plan.reason, "1: processors allowed");
  EXPECT_EQ(PlanThreads(0, sources_).num_threads, CPU_COUNT(&before));
}

TEST(ThreadPlan, ThisMachineHasAPlan) {
  const ThreadPlan plan = PlanThreads(0);
  EXPECT_GE(plan.num_threads, 1);
  EXPECT_FALSE(plan.reason.empty());
}

}  // namespace
}  // namespace fucina
