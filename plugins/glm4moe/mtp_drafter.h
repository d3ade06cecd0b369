#ifndef FUCINA_PLUGINS_GLM4MOE_MTP_DRAFTER_H_
#define FUCINA_PLUGINS_GLM4MOE_MTP_DRAFTER_H_

// Drafts with the prediction layer of the model itself.
//
// The trunk's hidden rows come through the tap of the forwards that happen
// anyway. An entry of the layer needs the row of one position and the token of
// the next, so with n + 1 tokens committed and rows 0 … n - 1 seen, entries
// 0 … n - 1 can be made, and the logits of the last one are the first guess:
// drafting one token costs one pass of the layer over what was committed since
// the last time. Further guesses chain the layer's own output and are taken
// back afterwards.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fucina/contract/drafter.h"
#include "fucina/plugin/registrar.h"
#include "fucina/tensor/buffer.h"
#include "mtp_head.h"

namespace fucina::glm4moe {

// A descriptor with static storage: glm4moe_mtp, options depth and p_min.
const DrafterKind& MtpDrafterKind();

class MtpDrafter final : public Drafter, private LayerTap {
 public:
  struct Options {
    int depth = 2;     // guesses, at most
    double p_min = 0;  // a guess after one less likely than this is not made
  };

  // ResourceExhausted when memory lacks.
  static absl::StatusOr<std::unique_ptr<MtpDrafter>> Create(
      std::shared_ptr<const MtpHead> head, const Options& options);

  int Propose(std::span<const TokenId> context,
              std::span<TokenId> draft) override;
  void Commit(std::span<const TokenId> tokens) override;
  void Rewind(int length) override;
  LayerTap* tap() override { return this; }
  std::string Report() const override;

  // First guesses that were compared with what followed, and how many of them
  // were right.
  int guesses() const { return guesses_; }
  int hits() const { return hits_; }

 private:
  MtpDrafter(std::shared_ptr<const MtpHead> head, const Options& options,
             std::unique_ptr<DecodeState> state, MtpHead::Scratch scratch);

  TapRows Wants(int layer) const override;
  void OnLayer(int layer, int position, const Tensor& residual) override;
  // Room for rows [begin_, begin_ + count).
  bool Reserve(int count);
  // Begins anew at `position`: earlier entries cannot be made any more.
  void StartAt(int position);
  void DropEntries(int length);
  // Makes every entry that can be made; the logits of the last one, empty when
  // there was none.
  std::span<const float> Feed();

  const std::shared_ptr<const MtpHead> head_;
  const Options options_;
  const std::unique_ptr<DecodeState> state_;
  MtpHead::Scratch scratch_;
  std::vector<float> h1_;  // [hidden] of the last entry

  std::vector<TokenId> tokens_;  // committed
  int origin_ = 0;               // position of the state's first entry
  int fed_ = 0;                  // entries [origin_, fed_) are in the state
  // Hidden rows [begin_, end_), begin_ <= fed_.
  int begin_ = 0;
  int end_ = 0;
  Buffer memory_;
  int capacity_ = 0;  // rows

  int guess_at_ = -1;           // position of the guess that waits to be judged
  std::vector<TokenId> guess_;  // the draft that begins with it
  int guesses_ = 0;
  int hits_ = 0;
};

}  // namespace fucina::glm4moe

#endif  // FUCINA_PLUGINS_GLM4MOE_MTP_DRAFTER_H_
