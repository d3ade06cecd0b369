#include "registry/memory_plan.h"

#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "tests/registry/scratch_dir.h"

namespace fucina {
namespace {

class MemoryPlan : public ::testing::Test {
 protected:
  MemoryPlan() {
    dir_.Write("meminfo",
               "MemTotal:       16000 kB\nMemAvailable:    8000 kB\n");
  }
  void Group(const std::string& path, const std::string& file,
             const std::string& text) {
    std::filesystem::create_directories(dir_.File("cgroup" + path));
    dir_.Write("cgroup" + path + "/" + file, text);
  }
  AvailableMemory Read() {
    return ReadAvailableMemory({.meminfo = dir_.File("meminfo"),
                                .cgroup_file = dir_.File("self"),
                                .cgroup_root = dir_.File("cgroup")});
  }
  ScratchDir dir_;
};

TEST_F(MemoryPlan, WithoutContainerTheMachineLimits) {
  EXPECT_EQ(Read().bytes, 8000 * 1024);
  EXPECT_EQ(Read().reason, "free memory of this machine");
}

TEST_F(MemoryPlan, TheContainersLimitLessWhatIsUsed) {
  dir_.Write("self", "0::/a/b\n");
  Group("/a/b", "memory.max", "3000000\n");
  Group("/a/b", "memory.current", "1500000\n");
  Group("/a/b", "memory.stat", "anon 500000\ninactive_file 1000000\n");
  EXPECT_EQ(Read().bytes, 3000000 - (1500000 - 1000000));
  EXPECT_EQ(Read().reason, "memory limit of the container");
}

TEST_F(MemoryPlan, TheTightestAncestorCounts) {
  dir_.Write("self", "0::/a/b\n");
  Group("/a/b", "memory.max", "max\n");
  Group("/a", "memory.max", "2000000\n");
  Group("/a", "memory.current", "2500000\n");
  EXPECT_EQ(Read().bytes, 0);  // over the limit: nothing is left, not less
  dir_.Write("cgroup/a/memory.current", "1\n");
  EXPECT_EQ(Read().bytes, 1999999);
}

TEST_F(MemoryPlan, TheRootOfANamespaceCounts) {
  dir_.Write("self", "0::/\n");
  Group("", "memory.max", "1000000\n");
  EXPECT_EQ(Read().bytes, 1000000);
}

TEST_F(MemoryPlan, VersionOneIsRead) {
  dir_.Write("self", "7:cpu:/x\n5:memory,hugetlb:/docker/y\n");
  Group("/memory/docker/y", "memory.limit_in_bytes", "4000000\n");
  Group("/memory/docker/y", "memory.usage_in_bytes", "1000000\n");
  EXPECT_EQ(Read().bytes, 3000000);
}

TEST_F(MemoryPlan, AbsentFactsDoNotLimit) {
  dir_.Write("meminfo", "nothing here\n");
  EXPECT_EQ(Read().reason, "no known limit");
  EXPECT_GT(Read().bytes, 1LL << 60);
}

TEST(HumanBytes, IsShort) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(1023), "1023 B");
  EXPECT_EQ(HumanBytes(1536), "1.5 KiB");
  EXPECT_EQ(HumanBytes(512LL << 20), "512 MiB");
  EXPECT_EQ(HumanBytes((47LL << 30) / 10), "4.7 GiB");
}

}  // namespace
}  // namespace fucina
