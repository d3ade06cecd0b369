#ifndef FUCINA_RUNNER_RUNNER_H_
#define FUCINA_RUNNER_RUNNER_H_

// The descriptor runner: one Decoder for every family that can be said as data.
// A family plugin makes a Descriptor from a file and hands both to Load.
//
// All rows of all sequences of a forward go through each linear map together;
// attention is by sequence. Long inputs are cut into pieces inside. Neither
// changes a bit: every row is computed by one fixed sequence of operations.

#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fucina/contract/decoder.h"
#include "fucina/contract/options.h"
#include "fucina/contract/phase_times.h"
#include "fucina/export.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/kernels/kernels.h"
#include "fucina/ops/context.h"
#include "fucina/ops/rope.h"
#include "fucina/parallel/thread_pool.h"
#include "fucina/runner/descriptor.h"
#include "fucina/tensor/dtype.h"

namespace fucina {

struct RunnerOptions {
  std::optional<BlockStyle> block_style = {};         // none: the descriptor's
  std::optional<KernelLevel> kernel_level = {};       // none: the best here
  DType cache_type = DType::kF16;                     // kF16 or kF32
  bool strict = false;                                // refuse unknown tensors
  double expert_top_p = 1;                            // in (0, 1]; 1 is off
  std::optional<ops::RopePairing> rope_pairing = {};  // over the family's
};

// The options that every family of this runner offers: a family puts these
// specs into its descriptor, with its own behind them if it has any.
//
//   block_style   auto, fused, host_reference
//   kernel_level  auto, scalar, avx2, avx-vnni, avx512-vnni
//   cache_type    f16, f32
//   strict        refuse files with tensors that the model does not use
//   expert_top_p  share of the routing weight that is kept, (0, 1]
FUCINA_API std::span<const OptionSpec> RunnerOptionSpecs();

// Reads the values of RunnerOptionSpecs. InvalidArgument, naming the option,
// for a word or number outside what its spec says; FailedPrecondition for a
// kernel level that this machine lacks; Unimplemented for a cache type that is
// known and not supported.
FUCINA_API absl::StatusOr<RunnerOptions> ParseRunnerOptions(
    const Options& options);

class FUCINA_API Runner final : public Decoder, public PhaseReporter {
 public:
  // Loads the weights of `descriptor` from `file`. Both `file` and `pool` must
  // outlive the runner: embedding rows, and in host_reference style every
  // weight, stay in the mapping. NotFound or InvalidArgument, naming the
  // tensor, when one is missing or has another type or shape;
  // ResourceExhausted when memory lacks. Uses the pool.
  static absl::StatusOr<std::unique_ptr<Runner>> Load(
      const GgufFile& file, Descriptor descriptor, ThreadPool& pool,
      const RunnerOptions& options);
  ~Runner() override;

  const DecoderInfo& info() const override;
  absl::StatusOr<std::unique_ptr<DecodeState>> NewState(
      int capacity) const override;
  absl::Status Forward(std::span<SequenceStep> batch) const override;

  const Descriptor& descriptor() const;
  // What was chosen.
  BlockStyle block_style() const;
  KernelLevel kernel_level() const;
  // For ops that a family computes around the runner.
  const ops::Context& context() const;

  void set_phase_times(PhaseTimes* times) override;

 private:
  struct Impl;
  explicit Runner(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

// The cache inside a state that a Runner made, for saving and sharing
// prefixes; null for another state.
class KvCache;
FUCINA_API KvCache* CacheOf(DecodeState& state);

}  // namespace fucina

#endif  // FUCINA_RUNNER_RUNNER_H_
