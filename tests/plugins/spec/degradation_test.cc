// An index that memory fails: at whichever allocation, it answers nothing from
// then on and never looks at what is half built; drafting goes on without it.

#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plugins/spec/cascade.h"
#include "plugins/spec/suffix_index.h"

// Calls from the library come here too: an executable's definitions win. Those
// of the thread sanitizer come before it is ready to watch them.
#define FUCINA_TEST_UNWATCHED __attribute__((no_sanitize("thread")))
#define FUCINA_TEST_VISIBLE \
  __attribute__((visibility("default"))) FUCINA_TEST_UNWATCHED

namespace {

// Allocations until one fails; negative: none does.
int g_left = -1;
int g_allocations = 0;

FUCINA_TEST_UNWATCHED bool Fails() {
  ++g_allocations;
  return g_left >= 0 && g_left-- == 0;
}

}  // namespace

extern "C" FUCINA_TEST_VISIBLE void* aligned_alloc(std::size_t alignment,
                                                   std::size_t size) {
  void* memory = nullptr;
  if (Fails() || posix_memalign(&memory, alignment, size) != 0) return nullptr;
  return memory;
}

extern "C" FUCINA_TEST_VISIBLE void* mmap(void* address, std::size_t size,
                                          int protection, int flags, int fd,
                                          off_t offset) noexcept {
  if (Fails()) return MAP_FAILED;
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, size, protection, flags, fd, offset));
}

namespace fucina::spec {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Tokens = std::vector<TokenId>;

Tokens Stream(std::size_t count) {
  std::mt19937 random(9);
  Tokens tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 300);
  return tokens;
}

class Degradation : public ::testing::Test {
 protected:
  ~Degradation() override { g_left = -1; }
};

// Long enough that some of its arrays are mapped.
TEST_F(Degradation, ComesAtEveryAllocation) {
  const Tokens stream = Stream(60'000);
  g_allocations = 0;
  {
    SuffixIndex whole;
    for (const TokenId token : stream) ASSERT_TRUE(whole.Append(token));
  }
  const int allocations = g_allocations;
  ASSERT_GT(allocations, 30);
  int degraded = 0;
  for (int fail = 0; fail < allocations; ++fail) {
    SuffixIndex index;
    g_left = fail;
    std::size_t held = 0;
    while (held < stream.size() && index.Append(stream[held])) ++held;
    g_left = -1;
    if (held == stream.size()) continue;  // a smaller step was possible
    ++degraded;
    ASSERT_TRUE(index.degraded());
    EXPECT_EQ(index.match_length(), 0);
    Tokens draft(8, -7);
    EXPECT_EQ(index.Continue(draft), 0);
    SuffixIndex::Cursor cursor;
    index.Advance(cursor, stream[0]);
    EXPECT_EQ(cursor.length, 0);
    EXPECT_EQ(index.ContinueFrom({.state = 0, .length = 3}, draft), 0);
    EXPECT_FALSE(index.Append(1));
    EXPECT_EQ(draft, Tokens(8, -7));
    // Whole again, with fewer tokens.
    index.Truncate(std::min<std::size_t>(held, 100));
    ASSERT_FALSE(index.degraded());
    SuffixIndex fresh;
    for (std::size_t i = 0; i < std::min<std::size_t>(held, 100); ++i) {
      ASSERT_TRUE(fresh.Append(stream[i]));
    }
    EXPECT_EQ(index.match_length(), fresh.match_length());
    EXPECT_EQ(index.num_transitions(), fresh.num_transitions());
  }
  EXPECT_GT(degraded, 30);
}

TEST_F(Degradation, LeavesTheCascadeWithItsOtherSources) {
  Cascade cascade(400, {});
  const Tokens stream = Stream(500);
  cascade.Commit(std::span(stream).first(100));
  g_left = 0;
  cascade.Commit(std::span(stream).subspan(100));
  g_left = -1;
  EXPECT_THAT(cascade.Report(), HasSubstr("conversation (index full)"));
  Tokens draft(4);
  // The table has seen every pair.
  EXPECT_EQ(cascade.Propose(stream, draft), 4);
  // A document that comes now begins where the stream is unknown.
  ASSERT_TRUE(cascade.AddReference(Tokens{1, 2, 3, 4, 5, 6}).ok());
  Tokens more = stream;
  more.insert(more.end(), {2, 3});
  cascade.Commit(std::span(more).last(2));
  ASSERT_EQ(cascade.Propose(more, draft), 3);
  EXPECT_EQ(draft[0], 4);
}

TEST_F(Degradation, ADocumentThatDoesNotFitIsRefused) {
  Cascade cascade(400, {.recycling = false});
  const Tokens document = Stream(5000);
  g_allocations = 0;
  ASSERT_TRUE(cascade.AddReference(document).ok());
  const int allocations = g_allocations;
  int refused = 0;
  for (int fail = 0; fail < allocations; ++fail) {
    Cascade other(400, {.recycling = false});
    g_left = fail;
    const absl::Status status = other.AddReference(document);
    g_left = -1;
    if (status.ok()) continue;  // room ahead that was not needed
    ++refused;
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("no memory for an index of 5000 tokens"));
    // Nothing of it is left.
    other.Commit(std::span(document).first(10));
    Tokens draft(4);
    EXPECT_EQ(other.Propose(std::span(document).first(10), draft), 0);
  }
  EXPECT_GT(refused, 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Sanitizers replace the allocator whose statistics this reads.
TEST_F(Degradation, TheReportIsWhatTheAllocatorGave) {
  for (const std::size_t count : {10, 1000, 8000}) {
    const Tokens stream = Stream(count);
    // Large blocks are mappings of their own, counted elsewhere.
    const auto held = [] {
      const struct mallinfo2 info = mallinfo2();
      return info.uordblks + info.hblkhd;
    };
    const std::size_t before = held();
    SuffixIndex index;
    for (const TokenId token : stream) ASSERT_TRUE(index.Append(token));
    const std::size_t taken = held() - before;
    EXPECT_GE(taken, index.bytes()) << count;
    // Four arrays, each with the allocator's own words and whole pages.
    EXPECT_LE(taken, index.bytes() + 4 * 4096) << count;
  }
}
#endif

}  // namespace
}  // namespace fucina::spec
