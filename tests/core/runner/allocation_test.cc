// After the first steps, a decode step takes no memory from the heap.

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "fucina/decode/generator.h"
#include "gtest/gtest.h"
#include "tests/core/runner/loaded_model.h"
#include "tests/core/runner/model_variants.h"

namespace {

std::atomic<bool> counting = false;
std::atomic<int> allocations = 0;

void* Allocate(std::size_t size, std::size_t alignment) {
  if (counting) ++allocations;
  void* memory = alignment <= alignof(std::max_align_t)
                     ? std::malloc(size)
                     : std::aligned_alloc(alignment, (size + alignment - 1) /
                                                         alignment * alignment);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

// Calls from the library come here too: an executable's definitions win.
void* operator new(std::size_t size) { return Allocate(size, 1); }
void* operator new[](std::size_t size) { return Allocate(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace fucina {
namespace {

using testing::LoadedModel;

TEST(Allocation, TheCounterSeesTheLibrary) {
  allocations = 0;
  counting = true;
  LoadedModel model(testing::SeededFixture("D"), {});
  counting = false;
  EXPECT_GT(allocations, 100);
}

TEST(Allocation, DecodeStepsTakeNone) {
  for (const char* fixture : {"D", "M", "Gq"}) {
    for (BlockStyle style : {BlockStyle::kFused, BlockStyle::kHostReference}) {
      LoadedModel model(testing::SeededFixture(fixture), {.block_style = style},
                        2);
      const auto prompt = testing::RandomTokens(1, 20, 64);
      const auto a = model.NewState(1024);
      const auto b = model.NewState(1024);
      model.Forward(*a, prompt);
      model.Forward(*b, prompt);
      const TokenId drafts[] = {1, 2, 3, 4};
      // One token, four with all rows, two sequences together.
      const auto round = [&] {
        SequenceStep one = {.tokens = {drafts, 1}, .state = a.get()};
        SequenceStep four = {
            .tokens = drafts, .state = a.get(), .rows = LogitRows::kAll};
        SequenceStep two[] = {{.tokens = {drafts, 1}, .state = a.get()},
                              {.tokens = {drafts, 2}, .state = b.get()}};
        return model.runner().Forward({&one, 1}).ok() &&
               model.runner().Forward({&four, 1}).ok() &&
               a->Truncate(a->length() - 2).ok() &&
               model.runner().Forward(two).ok();
      };
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(round());
      // Across the border of a run of the cache and of the rotations.
      const int rounds = style == BlockStyle::kFused ? 150 : 20;
      allocations = 0;
      counting = true;
      bool ok = true;
      for (int i = 0; i < rounds; ++i) ok = ok && round();
      counting = false;
      EXPECT_TRUE(ok);
      EXPECT_EQ(allocations, 0) << fixture << " " << Name(style);
    }
  }
}

// What a generation of several sequences takes does not grow with its length.
TEST(Allocation, LockstepTakesNonePerToken) {
  for (const char* fixture : {"D", "M"}) {
    LoadedModel model(testing::SeededFixture(fixture), {}, 2);
    constexpr int kStreams = 5;
    std::vector<std::vector<TokenId>> prompts;
    std::vector<std::unique_ptr<DecodeState>> states;
    std::vector<Sampler> samplers;
    std::vector<std::unique_ptr<Sequence>> sequences;
    samplers.reserve(kStreams);
    for (int i = 0; i < kStreams; ++i) {
      prompts.push_back(testing::RandomTokens(i, 3 + i, 64));
      states.push_back(model.NewState());
      samplers.emplace_back(
          SamplerConfig{.temperature = 0.2 * i, .repeat_penalty = 1.1}, 64);
      sequences.push_back(std::make_unique<Sequence>(
          model.runner(), SequenceParts{.state = states.back().get(),
                                        .sampler = &samplers.back()}));
    }
    std::vector<Stream> streams(kStreams);
    const auto taken = [&](int max_tokens) {
      for (int i = 0; i < kStreams; ++i) {
        EXPECT_TRUE(sequences[i]->Truncate(0).ok());
        streams[i].sequence = sequences[i].get();
        streams[i].prompt = prompts[i];
        streams[i].limits.max_tokens = max_tokens + i;
      }
      allocations = 0;
      counting = true;
      Generator(model.runner()).Generate(streams);
      counting = false;
      for (const Stream& stream : streams) EXPECT_TRUE(stream.status.ok());
      return allocations.load();
    };
    for (int i = 0; i < 2; ++i) taken(200);
    EXPECT_EQ(taken(200), taken(10)) << fixture;
    EXPECT_LT(taken(200), 10) << fixture;
  }
}

}  // namespace
}  // namespace fucina
