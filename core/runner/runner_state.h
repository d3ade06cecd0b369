#ifndef FUCINA_RUNNER_RUNNER_STATE_H_
#define FUCINA_RUNNER_RUNNER_STATE_H_

// What one sequence of a Runner remembers: its cache, and the memory of the
// logits handed out last.

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "fucina/contract/decoder.h"
#include "fucina/model/kv_cache.h"
#include "fucina/tensor/buffer.h"

namespace fucina {

class RunnerState final : public DecodeState {
 public:
  // `owner` tells the states of different runners apart; it is only compared.
  RunnerState(const void* owner, std::unique_ptr<KvCache> cache)
      : owner_(owner), cache_(std::move(cache)) {}
  ~RunnerState() override;

  int length() const override { return cache_->length(); }
  int capacity() const override { return cache_->capacity(); }
  absl::Status Truncate(int length) override {
    return cache_->Truncate(length);
  }

  const void* owner() const { return owner_; }
  KvCache& cache() const { return *cache_; }

  // Room for `rows` rows of `vocab_size` logits. ResourceExhausted, naming the
  // bytes, when memory lacks; the rows there before stay.
  absl::Status ReserveLogits(std::int64_t rows, std::int64_t vocab_size);
  float* logits() const { return logits_.as<float>(); }

 private:
  const void* owner_;
  std::unique_ptr<KvCache> cache_;
  Buffer logits_;
  std::int64_t logit_rows_ = 0;
};

}  // namespace fucina

#endif  // FUCINA_RUNNER_RUNNER_STATE_H_
