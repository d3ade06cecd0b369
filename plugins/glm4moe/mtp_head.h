#ifndef FUCINA_PLUGINS_GLM4MOE_MTP_HEAD_H_
#define FUCINA_PLUGINS_GLM4MOE_MTP_HEAD_H_

// The next-token-prediction layer of GLM-4.5: what follows a token, guessed
// from that token and from what the trunk thought one position earlier.
//
// Entry i combines token[i + 1] with the trunk's hidden row z[i] (behind its
// last norm):
//
//   x0 = eh_proj [ norm(embed(token[i + 1]), enorm) ; norm(z[i], hnorm) ]
//   h1 = block(x0)                  one more layer, its own keys and values
//   logits = head(norm(h1, shared_head_norm))    of token[i + 2]
//
// To guess further, h1 takes the place of z. Source: GLM-4.5 technical report,
// arXiv 2508.06471, and DeepSeek-V3 technical report, arXiv 2412.19437, §2.2.
//
// Immutable; safe to share between threads, each with its own Scratch and
// state.

#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fucina/contract/decoder.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/ops/linear.h"
#include "fucina/parallel/thread_pool.h"
#include "fucina/runner/descriptor.h"
#include "fucina/runner/runner.h"
#include "fucina/tensor/buffer.h"
#include "fucina/tensor/tensor.h"

namespace fucina::glm4moe {

class MtpHead {
 public:
  // Entries of one forward.
  static constexpr int kMaxEntries = 512;

  // Memory of forwards, sized once.
  struct Scratch {
    Buffer memory = {};
    Tensor rows = {};    // [kMaxEntries, hidden] embedded tokens
    Tensor joined = {};  // [kMaxEntries, 2 hidden]
    Tensor input = {};   // [kMaxEntries, hidden] x0
    ops::ActivationRows prepared = {};
  };

  // Reads the layer behind `trunk`, whose embedding, norm and output matrix
  // serve where the layer has none of its own. The output matrix is packed once
  // more. FailedPrecondition when the file has no such layer; NotFound or
  // InvalidArgument, naming the tensor, when a part of it is missing or has
  // another shape; ResourceExhausted when memory lacks.
  static absl::StatusOr<std::shared_ptr<const MtpHead>> Load(
      const GgufFile& file, const Descriptor& trunk, ThreadPool& pool,
      const RunnerOptions& options);

  // Layers of the trunk: the last of them makes the hidden rows.
  int trunk_layers() const { return trunk_layers_; }
  int hidden_size() const { return hidden_size_; }
  int context_length() const { return block_->info().context_length; }

  absl::StatusOr<Scratch> NewScratch() const;
  absl::StatusOr<std::unique_ptr<DecodeState>> NewState(int capacity) const;

  // z = norm(residual). Both [n, hidden] f32.
  void NormTrunk(const Tensor& residual, const Tensor& z) const;

  // Appends one entry for each token to the state. `hidden` [n, hidden] f32 is
  // z, or h1 of the entry before. Returns the logits [vocab] of the last entry,
  // which are valid until the state's next use, and writes its h1 to `last_h1`
  // [hidden]. Errors of Decoder::Forward, the state as before.
  // REQUIRES: 1 <= n <= kMaxEntries.
  absl::StatusOr<std::span<const float>> Forward(
      std::span<const TokenId> tokens, const Tensor& hidden, DecodeState& state,
      Scratch& scratch, std::span<float> last_h1) const;

 private:
  MtpHead() = default;

  int trunk_layers_ = 0;
  int hidden_size_ = 0;
  float norm_eps_ = 0;
  std::vector<float> trunk_norm_;  // [hidden] each
  std::vector<float> enorm_;
  std::vector<float> hnorm_;
  ops::PackedLinear eh_proj_;  // [hidden, 2 hidden]
  Tensor embedding_;           // [vocab, hidden], in the file
  std::unique_ptr<Runner> block_;
};

}  // namespace fucina::glm4moe

#endif  // FUCINA_PLUGINS_GLM4MOE_MTP_HEAD_H_
