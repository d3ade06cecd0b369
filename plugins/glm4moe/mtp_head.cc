#include "mtp_head.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fucina/diag/check.h"
#include "fucina/diag/status_macros.h"
#include "fucina/model/weights.h"
#include "fucina/ops/embedding.h"
#include "fucina/ops/norm.h"

namespace fucina::glm4moe {
namespace {

// Keeps the last row that leaves the layer.
class LastRow final : public LayerTap {
 public:
  explicit LastRow(std::span<float> out) : out_(out) {}
  TapRows Wants(int /*layer*/) const override { return TapRows::kLast; }
  void OnLayer(int /*layer*/, int /*position*/,
               const Tensor& residual) override {
    std::copy_n(residual.row_f32(0), out_.size(), out_.begin());
  }

 private:
  const std::span<float> out_;
};

// The layer as a decoder of its own: one layer of experts, the block behind the
// trunk.
Descriptor DescribeHead(const Weights& weights, Descriptor d) {
  d.first_block = d.num_layers;
  d.num_layers = 1;
  d.nextn_layers = 0;
  d.leading_dense_layers = 0;
  d.notes.clear();
  const std::string nextn = absl::StrCat("blk.", d.first_block, ".nextn.");
  const std::string norm = absl::StrCat(nextn, "shared_head_norm");
  const auto has = [&weights](absl::string_view name) {
    return weights.Has(weights.NameOf(absl::StrCat(name, ".weight")));
  };
  if (has(norm)) d.output_norm = norm;
  const std::string output = absl::StrCat(nextn, "shared_head_head");
  if (has(output)) {
    d.output = output;
    d.tied_output = false;
  }
  return d;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MtpHead>> MtpHead::Load(
    const GgufFile& file, const Descriptor& trunk, ThreadPool& pool,
    const RunnerOptions& options) {
  const Weights weights(file);
  const std::string nextn = absl::StrCat("blk.", trunk.num_layers, ".nextn.");
  // Some files spell these tensors without the suffix.
  const auto name = [&](absl::string_view of) {
    return weights.NameOf(absl::StrCat(nextn, of, ".weight"));
  };
  const std::string proj = name("eh_proj");
  if (!weights.Has(proj)) {
    return absl::FailedPreconditionError(absl::StrCat(
        file.display_name(), ": has no prediction layer (no tensor '", proj,
        "'), so there is nothing to draft with"));
  }
  const std::int64_t hidden = trunk.hidden_size;
  std::shared_ptr<MtpHead> head(new MtpHead());
  head->trunk_layers_ = trunk.num_layers;
  head->hidden_size_ = trunk.hidden_size;
  head->norm_eps_ = trunk.norm_eps;
  FUCINA_ASSIGN_OR_RETURN(
      head->trunk_norm_,
      weights.Vector(absl::StrCat(trunk.output_norm, ".weight"), hidden));
  FUCINA_ASSIGN_OR_RETURN(head->enorm_, weights.Vector(name("enorm"), hidden));
  FUCINA_ASSIGN_OR_RETURN(head->hnorm_, weights.Vector(name("hnorm"), hidden));
  FUCINA_ASSIGN_OR_RETURN(const GgufTensorInfo* eh_proj,
                          weights.Matrix(proj, {hidden, 2 * hidden}));
  FUCINA_ASSIGN_OR_RETURN(
      head->eh_proj_, ops::PackedLinear::Pack(GgufFile::View(*eh_proj), pool));
  const std::string own = name("embed_tokens");
  FUCINA_ASSIGN_OR_RETURN(
      const GgufTensorInfo* embedding,
      weights.Matrix(weights.Has(own) ? own : "token_embd.weight",
                     {trunk.vocab_size, hidden}));
  head->embedding_ = GgufFile::View(*embedding);
  FUCINA_ASSIGN_OR_RETURN(
      head->block_,
      Runner::Load(file, DescribeHead(weights, trunk), pool, options));
  return std::shared_ptr<const MtpHead>(std::move(head));
}

absl::StatusOr<MtpHead::Scratch> MtpHead::NewScratch() const {
  const std::int64_t hidden = hidden_size_;
  const std::int64_t row_bytes =
      hidden * static_cast<std::int64_t>(sizeof(float));
  Scratch scratch;
  FUCINA_ASSIGN_OR_RETURN(
      scratch.memory,
      Buffer::Allocate(static_cast<std::size_t>(4 * kMaxEntries * row_bytes)));
  std::byte* next = scratch.memory.data();
  const auto take = [&](std::int64_t rows_of_hidden) {
    const Tensor tensor(DType::kF32, {kMaxEntries, rows_of_hidden * hidden},
                        next);
    next += kMaxEntries * rows_of_hidden * row_bytes;
    return tensor;
  };
  scratch.rows = take(1);
  scratch.joined = take(2);
  scratch.input = take(1);
  FUCINA_ASSIGN_OR_RETURN(
      scratch.prepared,
      ops::ActivationRows::Create(kMaxEntries, 2 * hidden,
                                  block_->context().pool.num_threads()));
  return scratch;
}

absl::StatusOr<std::unique_ptr<DecodeState>> MtpHead::NewState(
    int capacity) const {
  return block_->NewState(capacity);
}

void MtpHead::NormTrunk(const Tensor& residual, const Tensor& z) const {
  ops::RmsNorm(block_->context(), residual, trunk_norm_, norm_eps_, z);
}

absl::StatusOr<std::span<const float>> MtpHead::Forward(
    std::span<const TokenId> tokens, const Tensor& hidden, DecodeState& state,
    Scratch& scratch, std::span<float> last_h1) const {
  const auto count = static_cast<std::int64_t>(tokens.size());
  FUCINA_CHECK(count >= 1 && count <= kMaxEntries) << count;
  FUCINA_CHECK_EQ(hidden.num_rows(), count);
  const ops::Context& context = block_->context();
  const Tensor rows = scratch.rows.Slice(0, count);
  const Tensor joined = scratch.joined.Slice(0, count);
  const Tensor input = scratch.input.Slice(0, count);
  const auto half = [&](std::int64_t which) {
    return Tensor::Strided(DType::kF32, count, hidden_size_,
                           joined.row_stride_bytes(),
                           joined.mutable_row_f32(0) + which * hidden_size_);
  };
  ops::Embedding(context, embedding_, tokens, rows);
  ops::RmsNorm(context, rows, enorm_, norm_eps_, half(0));
  ops::RmsNorm(context, hidden, hnorm_, norm_eps_, half(1));
  scratch.prepared.Assign(joined);
  ops::Linear(context, scratch.prepared, eh_proj_, input);

  LastRow tap(last_h1);
  SequenceStep step = {
      .state = &state, .suffix_embeddings = input, .tap = &tap};
  FUCINA_RETURN_IF_ERROR(block_->Forward({&step, 1}));
  return std::span<const float>(
      step.logits.row_f32(0), static_cast<std::size_t>(step.logits.row_size()));
}

}  // namespace fucina::glm4moe
