#include "glm4moe_decoder.h"

#include <utility>

#include "fucina/diag/status_macros.h"

namespace fucina::glm4moe {

Glm4MoeDecoder::Glm4MoeDecoder(const GgufFile& file, Descriptor descriptor,
                               ThreadPool& pool, const RunnerOptions& options,
                               std::unique_ptr<Runner> trunk)
    : file_(file),
      descriptor_(std::move(descriptor)),
      pool_(pool),
      options_(options),
      trunk_(std::move(trunk)) {}

absl::StatusOr<std::unique_ptr<Decoder>> Glm4MoeDecoder::Load(
    const GgufFile& file, Descriptor descriptor, ThreadPool& pool,
    const RunnerOptions& options) {
  FUCINA_ASSIGN_OR_RETURN(std::unique_ptr<Runner> trunk,
                          Runner::Load(file, descriptor, pool, options));
  return std::unique_ptr<Decoder>(new Glm4MoeDecoder(
      file, std::move(descriptor), pool, options, std::move(trunk)));
}

absl::StatusOr<std::shared_ptr<const MtpHead>> Glm4MoeDecoder::Head() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (head_ == nullptr) {
    FUCINA_ASSIGN_OR_RETURN(head_,
                            MtpHead::Load(file_, descriptor_, pool_, options_));
  }
  return head_;
}

}  // namespace fucina::glm4moe
