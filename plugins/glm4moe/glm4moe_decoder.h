#ifndef FUCINA_PLUGINS_GLM4MOE_GLM4MOE_DECODER_H_
#define FUCINA_PLUGINS_GLM4MOE_GLM4MOE_DECODER_H_

// The trunk of a GLM-4.5 file, and where its prediction layer comes from. The
// trunk is the descriptor runner as it is; the layer is read when a drafter
// first asks for it, and never without one.

#include <memory>
#include <mutex>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fucina/contract/decoder.h"
#include "fucina/contract/phase_times.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/parallel/thread_pool.h"
#include "fucina/runner/descriptor.h"
#include "fucina/runner/runner.h"
#include "mtp_head.h"

namespace fucina::glm4moe {

class Glm4MoeDecoder final : public Decoder, public PhaseReporter {
 public:
  // Errors of Runner::Load. `file` and `pool` outlive the decoder.
  static absl::StatusOr<std::unique_ptr<Decoder>> Load(
      const GgufFile& file, Descriptor descriptor, ThreadPool& pool,
      const RunnerOptions& options);

  const DecoderInfo& info() const override { return trunk_->info(); }
  absl::StatusOr<std::unique_ptr<DecodeState>> NewState(
      int capacity) const override {
    return trunk_->NewState(capacity);
  }
  absl::Status Forward(std::span<SequenceStep> batch) const override {
    return trunk_->Forward(batch);
  }
  void set_phase_times(PhaseTimes* times) override {
    trunk_->set_phase_times(times);
  }

  // The prediction layer, read at the first call; safe to call from several
  // threads. FailedPrecondition when the file has none; errors of
  // MtpHead::Load.
  absl::StatusOr<std::shared_ptr<const MtpHead>> Head() const;

 private:
  Glm4MoeDecoder(const GgufFile& file, Descriptor descriptor, ThreadPool& pool,
                 const RunnerOptions& options, std::unique_ptr<Runner> trunk);

  const GgufFile& file_;
  const Descriptor descriptor_;
  ThreadPool& pool_;
  const RunnerOptions options_;
  const std::unique_ptr<Runner> trunk_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const MtpHead> head_;  // guarded by mutex_
};

}  // namespace fucina::glm4moe

#endif  // FUCINA_PLUGINS_GLM4MOE_GLM4MOE_DECODER_H_
