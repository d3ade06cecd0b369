#include "mtp_drafter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fucina/diag/status_macros.h"
#include "glm4moe_decoder.h"

namespace fucina::glm4moe {
namespace {

constexpr int kMaxDepth = 8;

// So many entries are worth a pass of their own while nobody asks for a guess:
// they bound the rows that are kept.
constexpr int kPendingEntries = 256;

constexpr OptionSpec kOptions[] = {
    {.name = "depth",
     .type = OptionType::kInt,
     .default_value = "2",
     .doc = "tokens to draft, at most; 1 to 8"},
    {.name = "p_min",
     .type = OptionType::kFloat,
     .default_value = "0.75",
     .doc = "draft no further after a guess less likely than this; 0 to 1"}};

TokenId Best(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) -
                              logits.begin());
}

// Whether the best token has at least that probability under softmax.
bool IsLikely(std::span<const float> logits, TokenId best, double p_min) {
  // Logits so far below add less than a thousandth in all.
  constexpr float kFar = 20;
  const float floor = logits[best] - kFar;
  double sum = 0;
  for (const float logit : logits) {
    if (logit < floor) continue;
    sum += std::exp(static_cast<double>(logit) - logits[best]);
    if (sum * p_min > 1) return false;
  }
  return true;
}

absl::StatusOr<std::unique_ptr<Drafter>> Make(const Decoder& target,
                                              const Options& options) {
  const auto* const decoder = dynamic_cast<const Glm4MoeDecoder*>(&target);
  if (decoder == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        "drafts with the prediction layer of glm4moe models only; this one is "
        "of architecture '",
        target.info().architecture, "'"));
  }
  const std::int64_t depth = options.GetInt("depth");
  if (depth < 1 || depth > kMaxDepth) {
    return absl::InvalidArgumentError(absl::StrCat(
        "option 'depth': expected 1 to ", kMaxDepth, ", found ", depth));
  }
  const double p_min = options.GetFloat("p_min");
  if (!(p_min >= 0 && p_min <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("option 'p_min': expected 0 to 1, found ", p_min));
  }
  FUCINA_ASSIGN_OR_RETURN(std::shared_ptr<const MtpHead> head, decoder->Head());
  return MtpDrafter::Create(std::move(head),
                            {.depth = static_cast<int>(depth), .p_min = p_min});
}

}  // namespace

const DrafterKind& MtpDrafterKind() {
  static const DrafterKind kind = {
      .name = "glm4moe_mtp",
      .summary = "the prediction layer of GLM-4.5 models",
      .options = kOptions,
      .make = &Make};
  return kind;
}

MtpDrafter::MtpDrafter(std::shared_ptr<const MtpHead> head,
                       const Options& options,
                       std::unique_ptr<DecodeState> state,
                       MtpHead::Scratch scratch)
    : head_(std::move(head)),
      options_(options),
      state_(std::move(state)),
      scratch_(std::move(scratch)),
      h1_(static_cast<std::size_t>(head_->hidden_size())) {
  // Growing later would allocate in the middle of a reply.
  tokens_.reserve(static_cast<std::size_t>(head_->context_length()) + 1);
  guess_.reserve(static_cast<std::size_t>(options_.depth));
}

absl::StatusOr<std::unique_ptr<MtpDrafter>> MtpDrafter::Create(
    std::shared_ptr<const MtpHead> head, const Options& options) {
  FUCINA_ASSIGN_OR_RETURN(std::unique_ptr<DecodeState> state,
                          head->NewState(head->context_length()));
  FUCINA_ASSIGN_OR_RETURN(MtpHead::Scratch scratch, head->NewScratch());
  std::unique_ptr<MtpDrafter> drafter(new MtpDrafter(
      std::move(head), options, std::move(state), std::move(scratch)));
  if (!drafter->Reserve(kPendingEntries + kMaxDepth + 1)) {
    return absl::ResourceExhaustedError(
        "no memory for the hidden rows of the prediction layer");
  }
  // Once now, so that the first draft need not fetch the layer's weights.
  constexpr TokenId kAny = 0;
  const Tensor row(DType::kF32, {1, drafter->head_->hidden_size()},
                   drafter->h1_.data());
  FUCINA_RETURN_IF_ERROR(drafter->head_
                             ->Forward({&kAny, 1}, row, *drafter->state_,
                                       drafter->scratch_, drafter->h1_)
                             .status());
  FUCINA_RETURN_IF_ERROR(drafter->state_->Truncate(0));
  return drafter;
}

// --- what was committed -----------------------------------------------------

void MtpDrafter::Commit(std::span<const TokenId> tokens) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  if (guess_at_ >= 0 && guess_at_ < static_cast<int>(tokens_.size())) {
    ++guesses_;
    if (tokens_[static_cast<std::size_t>(guess_at_)] == guess_[0]) ++hits_;
    guess_at_ = -1;
  }
  const int ready = std::min(end_, static_cast<int>(tokens_.size()) - 1) - fed_;
  // Entries of a prompt are made while it is read: later they would make the
  // first draft slow.
  const bool prompt = tokens.size() > kMaxDepth + 1;
  if (ready >= kPendingEntries || (prompt && ready > 0)) Feed();
}

void MtpDrafter::Rewind(int length) {
  if (static_cast<std::size_t>(length) < tokens_.size()) {
    tokens_.resize(static_cast<std::size_t>(length));
    guess_at_ = -1;
  }
  end_ = std::min(end_, std::max(length, begin_));
  // Entry length - 1 was made with a token that is gone. Where its hidden row
  // is gone too, the entry stays: it can make a guess worse and nothing else.
  const bool can_be_made_again = length - 1 >= begin_ && length - 1 < end_;
  DropEntries(can_be_made_again ? length - 1 : length);
}

void MtpDrafter::DropEntries(int length) {
  if (length >= fed_) return;
  if (length < begin_) {
    // Their rows are gone, so what follows cannot join them.
    StartAt(std::max(length, 0));
    return;
  }
  fed_ = length;
  if (!state_->Truncate(fed_ - origin_).ok()) StartAt(fed_);
}

void MtpDrafter::StartAt(int position) {
  origin_ = fed_ = begin_ = end_ = position;
  // Cutting everything off cannot fail.
  state_->Truncate(0).IgnoreError();
}

std::string MtpDrafter::Report() const {
  return absl::StrCat("feed hits ", hits_, "/", guesses_);
}

// --- hidden rows ------------------------------------------------------------

bool MtpDrafter::Reserve(int count) {
  if (count <= capacity_) return true;
  const std::size_t row_bytes = h1_.size() * sizeof(float);
  auto memory = Buffer::Allocate(static_cast<std::size_t>(count) * row_bytes);
  if (!memory.ok()) return false;
  if (end_ > begin_) {
    std::memcpy(memory->data(), memory_.data(),
                static_cast<std::size_t>(end_ - begin_) * row_bytes);
  }
  memory_ = *std::move(memory);
  capacity_ = count;
  return true;
}

TapRows MtpDrafter::Wants(int layer) const {
  return layer + 1 == head_->trunk_layers() ? TapRows::kAll : TapRows::kNone;
}

void MtpDrafter::OnLayer(int /*layer*/, int position, const Tensor& residual) {
  const int count = static_cast<int>(residual.num_rows());
  // Rows of drafts that were not accepted are written over.
  if (position < begin_ || position > end_) StartAt(position);
  const int first = position - begin_;
  if (!Reserve(first + count)) {
    StartAt(position + count);
    return;
  }
  end_ = position;
  const auto hidden = static_cast<std::int64_t>(h1_.size());
  head_->NormTrunk(residual, Tensor(DType::kF32, {count, hidden},
                                    memory_.as<float>() + first * hidden));
  end_ = position + count;
}

std::span<const float> MtpDrafter::Feed() {
  const auto hidden = static_cast<std::int64_t>(h1_.size());
  std::span<const float> logits;
  const int last = std::min(end_, static_cast<int>(tokens_.size()) - 1);
  while (fed_ < last) {
    const int count = std::min(last - fed_, MtpHead::kMaxEntries);
    const Tensor rows(DType::kF32, {count, hidden},
                      memory_.as<float>() + (fed_ - begin_) * hidden);
    auto made = head_->Forward(
        std::span(tokens_).subspan(static_cast<std::size_t>(fed_) + 1,
                                   static_cast<std::size_t>(count)),
        rows, *state_, scratch_, h1_);
    if (!made.ok()) {  // the state is full, or memory lacks
      StartAt(end_);
      return {};
    }
    logits = *made;
    fed_ += count;
  }
  // Rows in front are of no more use; those behind move up.
  if (fed_ > begin_) {
    std::memmove(
        memory_.data(), memory_.as<float>() + (fed_ - begin_) * hidden,
        static_cast<std::size_t>((end_ - fed_) * hidden) * sizeof(float));
    begin_ = fed_;
  }
  return logits;
}

// --- drafting ---------------------------------------------------------------

int MtpDrafter::Propose(std::span<const TokenId> context,
                        std::span<TokenId> draft) {
  const int newest = static_cast<int>(tokens_.size()) - 1;
  if (draft.empty() || context.size() != tokens_.size()) return 0;
  if (guess_at_ == newest + 1) {  // asked before: entries are made once
    const std::size_t same = std::min(draft.size(), guess_.size());
    std::copy_n(guess_.begin(), same, draft.begin());
    return static_cast<int>(same);
  }
  std::span<const float> logits = Feed();
  if (logits.empty() || fed_ != newest) return 0;
  const auto hidden = static_cast<std::int64_t>(h1_.size());
  const int most = std::min(options_.depth, static_cast<int>(draft.size()));
  int count = 0;
  while (true) {
    const TokenId best = Best(logits);
    draft[static_cast<std::size_t>(count++)] = best;
    if (count == most || !IsLikely(logits, best, options_.p_min)) break;
    auto made =
        head_->Forward({&best, 1}, Tensor(DType::kF32, {1, hidden}, h1_.data()),
                       *state_, scratch_, h1_);
    if (!made.ok()) break;
    logits = *made;
  }
  // Entries of guesses were made from guesses.
  if (!state_->Truncate(fed_ - origin_).ok()) StartAt(end_);
  guess_at_ = newest + 1;
  guess_.assign(draft.begin(), draft.begin() + count);
  return count;
}

}  // namespace fucina::glm4moe
