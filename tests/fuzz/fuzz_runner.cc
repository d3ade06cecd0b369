// Any bytes as a model: described with the rules of every family, loaded in
// both block styles, and run for a few tokens. Errors are fine, anything else
// is not.

#include <cstddef>
#include <cstdint>
#include <span>

#include "fucina/diag/check.h"
#include "fucina/diag/log.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/parallel/thread_pool.h"
#include "fucina/runner/runner.h"
#include "tests/core/runner/families.h"

namespace fucina {
namespace {

void Run(const GgufFile& file, const Descriptor& descriptor, ThreadPool& pool,
         BlockStyle style) {
  const auto runner =
      Runner::Load(file, descriptor, pool, {.block_style = style});
  if (!runner.ok()) {
    FUCINA_CHECK(!runner.status().message().empty());
    return;
  }
  const auto state = (*runner)->NewState(8);
  if (!state.ok()) return;
  const TokenId tokens[] = {0, descriptor.vocab_size - 1, 0};
  SequenceStep step = {
      .tokens = tokens, .state = state->get(), .rows = LogitRows::kAll};
  const absl::Status status = (*runner)->Forward({&step, 1});
  FUCINA_CHECK(status.ok()) << status.ToString();
  FUCINA_CHECK_EQ(step.logits.num_rows(), 3);
  FUCINA_CHECK_EQ((*state)->length(), 3);
}

void RunAll(const GgufFile& file) {
  static ThreadPool pool(1);
  for (const FamilyRules* rules :
       {&testing::kQwen3, &testing::kQwen3Moe, &testing::kGlm4Moe,
        &testing::kLlama, &testing::kQwen2}) {
    const auto descriptor = Descriptor::FromGguf(file, *rules);
    if (!descriptor.ok()) {
      FUCINA_CHECK(!descriptor.status().message().empty());
      continue;
    }
    Run(file, *descriptor, pool, BlockStyle::kFused);
    Run(file, *descriptor, pool, BlockStyle::kHostReference);
  }
}

}  // namespace
}  // namespace fucina

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  fucina::SetLogLevel(fucina::LogLevel::kSilent);
  // Larger models are slower and no different.
  if (size > std::size_t{1} << 20) return 0;
  const auto file =
      fucina::GgufFile::Parse("fuzz", std::as_bytes(std::span(data, size)));
  if (file.ok()) fucina::RunAll(**file);
  return 0;
}
