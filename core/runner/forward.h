#ifndef FUCINA_RUNNER_FORWARD_H_
#define FUCINA_RUNNER_FORWARD_H_

// One forward of a Runner: steps are checked, cut into batches of rows, and run
// through the layers. Split from runner.cc, which loads.

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/runner/fused_block.h"
#include "core/runner/model_tensors.h"
#include "core/runner/phase_clock.h"
#include "core/runner/reference_block.h"
#include "core/runner/row_batch.h"
#include "core/runner/runner_state.h"
#include "fucina/contract/decoder.h"
#include "fucina/ops/context.h"
#include "fucina/runner/descriptor.h"
#include "fucina/tensor/buffer.h"
#include "fucina/tensor/tensor.h"

namespace fucina {

// Memory of one forward. Forwards on different threads use different ones.
struct ForwardScratch {
  int max_rows = 0;
  Buffer memory;
  Tensor x;  // [max_rows, hidden] residual
  Buffer logits_memory;
  std::int64_t logits_rows = 0;
  Tensor logits;  // [logits_rows, vocab] of several sequences
  RowBatch batch;

  // What an item of the batch is a part of.
  struct Source {
    int step = 0;
    int offset = 0;      // of its first row in the step's input
    int logit_rows = 0;  // its last rows whose logits are wanted
  };
  std::vector<Source> sources;  // by item
  std::vector<int> logit_rows;  // by item
  std::vector<int> order;       // of steps: those with equal adapters together
  std::vector<const DecodeState*> states;  // for the search of duplicates

  std::unique_ptr<FusedScratch> fused;
  std::unique_ptr<ReferenceScratch> reference;
};

// The loaded model as the forward needs it. Everything borrowed but the
// scratch.
class ForwardPass {
 public:
  struct Model {
    const Descriptor& descriptor;
    const DecoderInfo& info;
    const ModelTensors& tensors;
    const void* owner = nullptr;                // of the states
    const FusedBlock* fused = nullptr;          // one of
    const ReferenceBlock* reference = nullptr;  // the two
    ops::Context context;
  };

  explicit ForwardPass(const Model& model) : m_(model) {}

  absl::Status Run(std::span<SequenceStep> batch, PhaseTimes* times);

 private:
  absl::Status Check(std::span<const SequenceStep> batch,
                     ForwardScratch& scratch) const;
  absl::Status CheckAdapter(const AdapterSet& adapter) const;
  absl::Status CheckStep(const SequenceStep& step, std::size_t index) const;
  absl::StatusOr<std::unique_ptr<ForwardScratch>> TakeScratch();
  void ReturnScratch(std::unique_ptr<ForwardScratch> scratch);
  absl::Status SizeScratch(std::span<const SequenceStep> batch,
                           ForwardScratch& scratch) const;
  absl::Status RunSteps(std::span<SequenceStep> batch, ForwardScratch& scratch,
                        PhaseTimes* times) const;
  void GatherRows(std::span<const SequenceStep> batch, ForwardScratch& s,
                  std::size_t& next, int& offset) const;
  void Embed(std::span<const SequenceStep> batch, ForwardScratch& s) const;
  void RunLayers(std::span<const SequenceStep> batch, ForwardScratch& s,
                 PhaseClock& clock) const;
  void WriteLogits(std::span<const SequenceStep> batch,
                   ForwardScratch& s) const;

  const Model m_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ForwardScratch>> free_;  // guarded by mutex_
};

}  // namespace fucina

#endif  // FUCINA_RUNNER_FORWARD_H_
