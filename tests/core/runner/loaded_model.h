#ifndef FUCINA_TESTS_CORE_RUNNER_LOADED_MODEL_H_
#define FUCINA_TESTS_CORE_RUNNER_LOADED_MODEL_H_

// A tiny model ready to run, and short words for what tests do with it.

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fucina/contract/decoder.h"
#include "fucina/diag/check.h"
#include "fucina/kernels/kernels.h"
#include "fucina/parallel/thread_pool.h"
#include "fucina/runner/runner.h"
#include "tests/core/runner/families.h"
#include "tests/core/runner/file_edit.h"

namespace fucina::testing {

using Row = std::vector<float>;
using Rows = std::vector<Row>;

inline std::vector<KernelLevel> SupportedLevels() {
  std::vector<KernelLevel> levels;
  for (KernelLevel level : kAllKernelLevels) {
    if (KernelsFor(level) != nullptr) levels.push_back(level);
  }
  return levels;
}

// The rows that a forward left in `step`.
inline Rows LogitsOf(const SequenceStep& step) {
  Rows rows;
  if (step.logits.rank() == 0) return rows;
  for (std::int64_t r = 0; r < step.logits.num_rows(); ++r) {
    const float* row = step.logits.row_f32(r);
    rows.emplace_back(row, row + step.logits.row_size());
  }
  return rows;
}

// The lowest index of the largest value.
inline TokenId Argmax(const Row& row) {
  return static_cast<TokenId>(std::max_element(row.begin(), row.end()) -
                              row.begin());
}

class LoadedModel {
 public:
  LoadedModel(OwnedFile owned, const RunnerOptions& options,
              int num_threads = 1)
      : file_(std::move(owned)),
        pool_(std::make_unique<ThreadPool>(num_threads)) {
    const auto architecture = file_.file->GetString("general.architecture");
    auto descriptor =
        Descriptor::FromGguf(*file_.file, RulesFor(architecture->value()));
    FUCINA_CHECK(descriptor.ok()) << descriptor.status().ToString();
    auto runner =
        Runner::Load(*file_.file, *std::move(descriptor), *pool_, options);
    FUCINA_CHECK(runner.ok()) << runner.status().ToString();
    runner_ = *std::move(runner);
  }
  LoadedModel(const TinyModelSpec& spec, const RunnerOptions& options,
              int num_threads = 1)
      : LoadedModel(OwnedFile(TinyModelBytes(spec)), options, num_threads) {}

  Runner& runner() { return *runner_; }
  const GgufFile& file() const { return *file_.file; }

  std::unique_ptr<DecodeState> NewState(int capacity = 256) {
    auto state = runner_->NewState(capacity);
    FUCINA_CHECK(state.ok()) << state.status().ToString();
    return *std::move(state);
  }

  // One forward of one sequence.
  Rows Forward(DecodeState& state, std::span<const TokenId> tokens,
               LogitRows rows = LogitRows::kLast) {
    SequenceStep step = {.tokens = tokens, .state = &state, .rows = rows};
    const absl::Status status = runner_->Forward({&step, 1});
    FUCINA_CHECK(status.ok()) << status.ToString();
    return LogitsOf(step);
  }

  // All rows of `tokens` on a fresh state.
  Rows All(std::span<const TokenId> tokens) {
    const auto state = NewState();
    return Forward(*state, tokens, LogitRows::kAll);
  }

 private:
  OwnedFile file_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Runner> runner_;
};

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_CORE_RUNNER_LOADED_MODEL_H_
