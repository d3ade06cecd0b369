#include "core/runner/model_tensors.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "fucina/diag/log.h"
#include "fucina/diag/status_macros.h"

namespace fucina {
namespace {

// Finds the tensors of one block.
class LayerFinder {
 public:
  LayerFinder(const Weights& weights, const Descriptor& descriptor, int layer)
      : weights_(weights), d_(descriptor), layer_(layer) {}

  absl::StatusOr<LayerTensors> Run() const {
    const std::int64_t hidden = d_.hidden_size;
    LayerTensors t;
    FUCINA_ASSIGN_OR_RETURN(t.attn_norm,
                            weights_.Vector(At("attn_norm.weight"), hidden));
    FUCINA_ASSIGN_OR_RETURN(
        t.q, Linear("attn_q", hidden, d_.query_size(), d_.qkv_bias));
    FUCINA_ASSIGN_OR_RETURN(
        t.k, Linear("attn_k", hidden, d_.kv_size(), d_.qkv_bias));
    FUCINA_ASSIGN_OR_RETURN(
        t.v, Linear("attn_v", hidden, d_.kv_size(), d_.qkv_bias));
    FUCINA_ASSIGN_OR_RETURN(
        t.o, Linear("attn_output", d_.query_size(), hidden, d_.attn_out_bias));
    if (d_.qk_norm) {
      FUCINA_ASSIGN_OR_RETURN(
          t.q_norm, weights_.Vector(At("attn_q_norm.weight"), d_.head_dim));
      FUCINA_ASSIGN_OR_RETURN(
          t.k_norm, weights_.Vector(At("attn_k_norm.weight"), d_.head_dim));
    }
    FUCINA_ASSIGN_OR_RETURN(
        t.ffn_norm,
        weights_.Vector(At(absl::StrCat(d_.ffn_norm, ".weight")), hidden));
    if (d_.HasExperts(layer_)) {
      FUCINA_ASSIGN_OR_RETURN(t.experts, Experts());
    } else {
      FUCINA_ASSIGN_OR_RETURN(t.dense,
                              FeedForward("", d_.ffn_size, d_.ffn_bias));
    }
    return t;
  }

 private:
  std::string At(absl::string_view name) const {
    return absl::StrCat("blk.", d_.first_block + layer_, ".", name);
  }

  absl::StatusOr<LinearTensor> Linear(absl::string_view name, std::int64_t in,
                                      std::int64_t out, bool bias) const {
    LinearTensor linear;
    FUCINA_ASSIGN_OR_RETURN(
        linear.weight,
        weights_.Matrix(At(absl::StrCat(name, ".weight")), {out, in}));
    if (bias) {
      FUCINA_ASSIGN_OR_RETURN(
          linear.bias, weights_.Vector(At(absl::StrCat(name, ".bias")), out));
    }
    return linear;
  }

  absl::StatusOr<FeedForwardTensors> FeedForward(absl::string_view suffix,
                                                 std::int64_t width,
                                                 bool bias) const {
    const std::int64_t hidden = d_.hidden_size;
    FeedForwardTensors t;
    FUCINA_ASSIGN_OR_RETURN(
        t.gate, Linear(absl::StrCat("ffn_gate", suffix), hidden, width, bias));
    FUCINA_ASSIGN_OR_RETURN(
        t.up, Linear(absl::StrCat("ffn_up", suffix), hidden, width, bias));
    FUCINA_ASSIGN_OR_RETURN(
        t.down, Linear(absl::StrCat("ffn_down", suffix), width, hidden, bias));
    return t;
  }

  absl::StatusOr<ExpertTensors> Experts() const {
    const std::int64_t hidden = d_.hidden_size;
    const std::int64_t count = d_.num_experts;
    const std::int64_t width = d_.expert_ffn_size;
    ExpertTensors t;
    FUCINA_ASSIGN_OR_RETURN(t.router,
                            Linear("ffn_gate_inp", hidden, count, false));
    if (d_.router_bias) {
      FUCINA_ASSIGN_OR_RETURN(
          t.selection_bias,
          weights_.Vector(weights_.NameOf(At("exp_probs_b.bias")), count));
    }
    const std::string merged = At("ffn_gate_up_exps.weight");
    if (weights_.Has(merged)) {
      FUCINA_ASSIGN_OR_RETURN(
          t.gate_up, weights_.Matrix(merged, {count, 2 * width, hidden}));
    } else {
      FUCINA_ASSIGN_OR_RETURN(
          t.gate,
          weights_.Matrix(At("ffn_gate_exps.weight"), {count, width, hidden}));
      FUCINA_ASSIGN_OR_RETURN(t.up, weights_.Matrix(At("ffn_up_exps.weight"),
                                                    {count, width, hidden}));
    }
    FUCINA_ASSIGN_OR_RETURN(t.down, weights_.Matrix(At("ffn_down_exps.weight"),
                                                    {count, hidden, width}));
    if (d_.num_shared_experts > 0) {
      t.has_shared = true;
      FUCINA_ASSIGN_OR_RETURN(
          t.shared,
          FeedForward("_shexp", width * d_.num_shared_experts, false));
    }
    return t;
  }

  const Weights& weights_;
  const Descriptor& d_;
  const int layer_;
};

// Blocks behind the trunk: announced by the file or found in it.
void SkipPredictionLayers(const Weights& weights, const Descriptor& d) {
  int skipped = 0;
  int layer = d.num_layers;
  for (; layer < d.num_layers + d.nextn_layers; ++layer) {
    skipped += weights.Ignore(absl::StrCat("blk.", layer, "."));
  }
  const std::string unannounced = absl::StrCat("blk.", layer, ".");
  if (weights.Has(
          weights.NameOf(absl::StrCat(unannounced, "nextn.eh_proj.weight")))) {
    skipped += weights.Ignore(unannounced);
  }
  if (skipped > 0) {
    FUCINA_LOG(WARNING) << weights.file().display_name() << ": " << skipped
                        << " tensors of the prediction layer are not used "
                           "unless a drafter asks for them";
  }
}

}  // namespace

absl::StatusOr<ModelTensors> FindModelTensors(const Weights& weights,
                                              const Descriptor& d,
                                              bool strict) {
  const std::int64_t hidden = d.hidden_size;
  const std::int64_t vocab = d.vocab_size;
  ModelTensors t;
  FUCINA_ASSIGN_OR_RETURN(t.embedding,
                          weights.Matrix("token_embd.weight", {vocab, hidden}));
  FUCINA_ASSIGN_OR_RETURN(
      t.output_norm,
      weights.Vector(weights.NameOf(absl::StrCat(d.output_norm, ".weight")),
                     hidden));
  t.output.weight = t.embedding;
  if (!d.tied_output) {
    FUCINA_ASSIGN_OR_RETURN(
        t.output.weight,
        weights.Matrix(weights.NameOf(absl::StrCat(d.output, ".weight")),
                       {vocab, hidden}));
  }
  if (d.output_bias) {
    FUCINA_ASSIGN_OR_RETURN(t.output.bias,
                            weights.Vector("output.bias", vocab));
  }
  if (d.rope_factors) {
    constexpr absl::string_view kFactors = "rope_freqs.weight";
    FUCINA_ASSIGN_OR_RETURN(t.rope_factors,
                            weights.Vector(kFactors, d.rope_dims / 2));
    for (float factor : t.rope_factors) {
      if (!(factor > 0) || factor > 1e30F) {
        return absl::InvalidArgumentError(
            absl::StrCat(weights.file().display_name(), ": tensor '", kFactors,
                         "' holds ", factor, "; expected numbers above 0"));
      }
    }
  }
  t.layers.reserve(static_cast<std::size_t>(d.num_layers));
  bool merged = false;
  for (int layer = 0; layer < d.num_layers; ++layer) {
    FUCINA_ASSIGN_OR_RETURN(LayerTensors found,
                            LayerFinder(weights, d, layer).Run());
    merged = merged || found.experts.gate_up != nullptr;
    t.layers.push_back(std::move(found));
  }
  if (merged) {
    FUCINA_LOG(INFO) << weights.file().display_name()
                     << ": experts with gate and up in one tensor, gate rows "
                        "taken as the first half";
  }
  if (strict && d.num_experts > 0 && d.gating == ExpertGating::kSigmoid &&
      !d.router_bias) {
    return absl::InvalidArgumentError(absl::StrCat(
        weights.file().display_name(),
        ": a sigmoid router has no 'exp_probs_b.bias'; loading is strict, so "
        "the file is refused"));
  }
  if (d.is_part()) return t;
  SkipPredictionLayers(weights, d);
  FUCINA_RETURN_IF_ERROR(weights.Finish(strict));
  return t;
}

}  // namespace fucina
