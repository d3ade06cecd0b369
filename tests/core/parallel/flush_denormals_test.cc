#include "fucina/parallel/flush_denormals.h"

#include <vector>

#include "fucina/parallel/thread_pool.h"
#include "gtest/gtest.h"

namespace fucina {
namespace {

// A product that is subnormal, kept from the compiler.
bool SubnormalsAreZero() {
  volatile float tiny = 0x1p-100F;
  volatile float product = tiny * 0x1p-30F;
  volatile float input = 0x1p-130F;
  return product == 0.0F && input * 0x1p100F == 0.0F;
}

#if defined(__SSE2__)
TEST(FlushDenormals, OnlyWithinTheScope) {
  EXPECT_FALSE(SubnormalsAreZero());
  {
    const ScopedFlushDenormals outer;
    EXPECT_TRUE(SubnormalsAreZero());
    {
      const ScopedFlushDenormals inner;
      EXPECT_TRUE(SubnormalsAreZero());
    }
    EXPECT_TRUE(SubnormalsAreZero());
  }
  EXPECT_FALSE(SubnormalsAreZero());
}

TEST(FlushDenormals, HoldsInEveryBodyOfATeam) {
  ThreadPool pool(3);
  std::vector<char> flushed(200, 0);
  pool.ParallelFor(200, 1, [&](std::int64_t begin, std::int64_t, int) {
    flushed[static_cast<std::size_t>(begin)] = SubnormalsAreZero() ? 1 : 2;
  });
  for (char f : flushed) EXPECT_EQ(f, 1);
  EXPECT_FALSE(SubnormalsAreZero());
}
#endif

}  // namespace
}  // namespace fucina
