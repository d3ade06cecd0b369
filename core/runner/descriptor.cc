#include "fucina/runner/descriptor.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/runner/key_reader.h"
#include "fucina/diag/status_macros.h"
#include "fucina/model/weights.h"

namespace fucina {
namespace {

// The keys every decoder family shares, without the "<architecture>." prefix.
constexpr absl::string_view kBlockCount = "block_count";
constexpr absl::string_view kContextLength = "context_length";
constexpr absl::string_view kEmbeddingLength = "embedding_length";
constexpr absl::string_view kFeedForwardLength = "feed_forward_length";
constexpr absl::string_view kVocabSize = "vocab_size";
constexpr absl::string_view kHeadCount = "attention.head_count";
constexpr absl::string_view kHeadCountKv = "attention.head_count_kv";
constexpr absl::string_view kKeyLength = "attention.key_length";
constexpr absl::string_view kValueLength = "attention.value_length";
constexpr absl::string_view kNormEps = "attention.layer_norm_rms_epsilon";
constexpr absl::string_view kRopeTheta = "rope.freq_base";
constexpr absl::string_view kRopeDims = "rope.dimension_count";
constexpr absl::string_view kScalingType = "rope.scaling.type";
constexpr absl::string_view kScalingFactor = "rope.scaling.factor";
constexpr absl::string_view kScalingFactorOld = "rope.scale_linear";
constexpr absl::string_view kScalingOriginal =
    "rope.scaling.original_context_length";
constexpr absl::string_view kScalingAttn = "rope.scaling.attn_factor";
constexpr absl::string_view kYarnExt = "rope.scaling.yarn_ext_factor";
constexpr absl::string_view kYarnAttn = "rope.scaling.yarn_attn_factor";
constexpr absl::string_view kYarnBetaFast = "rope.scaling.yarn_beta_fast";
constexpr absl::string_view kYarnBetaSlow = "rope.scaling.yarn_beta_slow";
constexpr absl::string_view kYarnLog = "rope.scaling.yarn_log_multiplier";
constexpr absl::string_view kExpertCount = "expert_count";
constexpr absl::string_view kExpertUsed = "expert_used_count";
constexpr absl::string_view kExpertFfn = "expert_feed_forward_length";
constexpr absl::string_view kExpertShared = "expert_shared_count";
constexpr absl::string_view kLeadingDense = "leading_dense_block_count";
constexpr absl::string_view kExpertGating = "expert_gating_func";
constexpr absl::string_view kExpertNorm = "expert_weights_norm";
constexpr absl::string_view kExpertScale = "expert_weights_scale";
constexpr absl::string_view kExpertGroups = "expert_group_count";

constexpr absl::string_view kKnownKeys[] = {
    kBlockCount, kContextLength, kEmbeddingLength, kFeedForwardLength,
    kVocabSize, kHeadCount, kHeadCountKv, kKeyLength, kValueLength, kNormEps,
    kRopeTheta, kRopeDims, kScalingType, kScalingFactor, kScalingFactorOld,
    kScalingOriginal, kScalingAttn, kYarnExt, kYarnAttn, kYarnBetaFast,
    kYarnBetaSlow, kYarnLog, kExpertCount, kExpertUsed, kExpertFfn,
    kExpertShared, kLeadingDense, kExpertGating, kExpertNorm, kExpertScale,
    kExpertGroups,
    // Says how many groups a grouped router keeps; without groups, nothing.
    "expert_group_used_count",
    // States that a fine-tuned model was cut from its context; no arithmetic.
    "rope.scaling.finetuned"};

// Caps that only nonsense exceeds; the first two as other engines have them.
constexpr std::int64_t kMaxLayers = 512;
constexpr std::int64_t kMaxExperts = 512;
constexpr std::int64_t kMaxHeadDim = 1024;
constexpr std::int64_t kMaxInt = KeyReader::kMaxInt;

std::string BlockTensor(std::int64_t layer, absl::string_view name) {
  return absl::StrCat("blk.", layer, ".", name);
}

// The tensor by which a prediction layer is known.
std::string PredictionTensor(std::int64_t layer) {
  return BlockTensor(layer, "nextn.eh_proj.weight");
}

// One compilation: fields are filled in the order in which they depend on each
// other, each step returning the first contradiction.
class Compiler {
 public:
  Compiler(const GgufFile& file, const FamilyRules& rules)
      : file_(file),
        rules_(rules),
        keys_(file, rules.architecture, kBlockCount) {}

  absl::StatusOr<Descriptor> Run() {
    FUCINA_RETURN_IF_ERROR(ReadArchitecture());
    FUCINA_RETURN_IF_ERROR(ReadSizes());
    FUCINA_RETURN_IF_ERROR(ReadLayers());
    FUCINA_RETURN_IF_ERROR(ReadHeads());
    FUCINA_RETURN_IF_ERROR(ReadNorm());
    FUCINA_RETURN_IF_ERROR(ReadRope());
    FUCINA_RETURN_IF_ERROR(ReadRopeScaling());
    FUCINA_RETURN_IF_ERROR(ReadFeedForward());
    ReadOptionalTensors();
    NoteUnknownKeys();
    return std::move(d_);
  }

 private:
  absl::Status TensorError(absl::string_view name, absl::string_view found,
                           absl::string_view expected) const {
    return absl::InvalidArgumentError(
        absl::StrCat(file_.display_name(), ": tensor '", name, "' has ", found,
                     "; expected ", expected));
  }
  absl::StatusOr<const GgufTensorInfo*> NeedTensor(
      absl::string_view name, absl::string_view why) const {
    const GgufTensorInfo* info = file_.FindTensor(name);
    if (info == nullptr) {
      return absl::NotFoundError(absl::StrCat(
          file_.display_name(), ": tensor '", name, "' is missing; ", why));
    }
    return info;
  }
  bool BlockPredicts(std::int64_t layer) const {
    return file_.FindTensor(NameInFile(file_, PredictionTensor(layer))) !=
           nullptr;
  }
  // Whether any block of the trunk has one of `names`.
  bool AnyBlockHas(std::initializer_list<absl::string_view> names) const {
    for (int layer = 0; layer < d_.num_layers; ++layer) {
      for (absl::string_view name : names) {
        if (file_.FindTensor(BlockTensor(layer, name)) != nullptr) return true;
      }
    }
    return false;
  }
  bool Decide(Presence presence,
              std::initializer_list<absl::string_view> names) const {
    switch (presence) {
      case Presence::kNever:
        return false;
      case Presence::kByTensor:
        return AnyBlockHas(names);
      case Presence::kAlways:
        return true;
    }
    return false;
  }

  absl::Status ReadArchitecture() {
    FUCINA_ASSIGN_OR_RETURN(std::optional<absl::string_view> architecture,
                            file_.GetString("general.architecture"));
    if (architecture.value_or("") != rules_.architecture) {
      return keys_.Error(
          "general.architecture",
          architecture.has_value()
              ? absl::StrCat("'", absl::Utf8SafeCHexEscape(*architecture), "'")
              : "missing",
          absl::StrCat("'", rules_.architecture, "'"));
    }
    d_.architecture = std::string(rules_.architecture);
    d_.block_style = rules_.block_style;
    d_.rope_pairing = rules_.rope_pairing;
    d_.ffn_norm = std::string(rules_.ffn_norm);
    return absl::OkStatus();
  }

  absl::Status ReadSizes() {
    FUCINA_ASSIGN_OR_RETURN(std::int64_t hidden,
                            keys_.RequiredCount(kEmbeddingLength));
    FUCINA_ASSIGN_OR_RETURN(std::int64_t context,
                            keys_.RequiredCount(kContextLength));
    d_.hidden_size = static_cast<int>(hidden);
    d_.context_length = static_cast<int>(context);

    constexpr absl::string_view kEmbedding = "token_embd.weight";
    FUCINA_ASSIGN_OR_RETURN(
        const GgufTensorInfo* embedding,
        NeedTensor(kEmbedding, "it holds one row for each token"));
    if (embedding->ne[0] != static_cast<std::uint64_t>(hidden)) {
      return TensorError(kEmbedding, absl::StrCat("rows of ", embedding->ne[0]),
                         absl::StrCat(hidden, ", the value of '",
                                      keys_.Key(kEmbeddingLength), "'"));
    }
    if (embedding->ne[1] > static_cast<std::uint64_t>(kMaxInt)) {
      return TensorError(kEmbedding, absl::StrCat(embedding->ne[1], " rows"),
                         absl::StrCat("at most ", kMaxInt));
    }
    d_.vocab_size = static_cast<int>(embedding->ne[1]);
    d_.tied_output = file_.FindTensor("output.weight") == nullptr;

    // More rows than tokens is padding; fewer would leave tokens without a row.
    const std::string rows = absl::StrCat("at most the ", d_.vocab_size,
                                          " rows of tensor '", kEmbedding, "'");
    FUCINA_ASSIGN_OR_RETURN(std::optional<std::int64_t> stated,
                            file_.GetInt(keys_.Key(kVocabSize), 0, kMaxInt));
    if (stated.value_or(0) > d_.vocab_size) {
      return keys_.Error(keys_.Key(kVocabSize), absl::StrCat(*stated), rows);
    }
    constexpr absl::string_view kTokens = "tokenizer.ggml.tokens";
    const GgufValue* tokens = file_.Find(kTokens);
    if (tokens != nullptr && tokens->type == GgufType::kArray &&
        tokens->count > static_cast<std::uint64_t>(d_.vocab_size)) {
      return keys_.Error(
          kTokens, absl::StrCat("a list of ", tokens->count, " tokens"), rows);
    }
    return absl::OkStatus();
  }

  absl::Status ReadLayers() {
    FUCINA_ASSIGN_OR_RETURN(std::int64_t blocks,
                            keys_.RequiredCount(kBlockCount, kMaxLayers));
    std::int64_t nextn = 0;
    if (!rules_.nextn_key.empty()) {
      FUCINA_ASSIGN_OR_RETURN(std::optional<std::int64_t> announced,
                              keys_.Count(rules_.nextn_key, kMaxInt));
      nextn = announced.value_or(0);
      if (nextn >= blocks) {
        return keys_.Error(
            keys_.Key(rules_.nextn_key), absl::StrCat(nextn),
            absl::StrCat("less than the ", blocks, " blocks of '",
                         keys_.Key(kBlockCount), "'"));
      }
      if (nextn > 0 && !BlockPredicts(blocks - nextn)) {
        if (BlockPredicts(blocks)) {
          d_.notes.push_back(absl::StrCat(
              "'", keys_.Key(kBlockCount), "' does not count the ", nextn,
              " prediction layer(s) behind its ", blocks, " blocks"));
          d_.num_layers = static_cast<int>(blocks);
          d_.nextn_layers = static_cast<int>(nextn);
          return absl::OkStatus();
        }
        d_.notes.push_back(
            absl::StrCat("the file announces ", nextn,
                         " prediction layer(s) but holds no tensor '",
                         PredictionTensor(blocks - nextn),
                         "': drafting with them is not possible"));
      }
      // Unannounced: some writers count the layer among the blocks, some do
      // not. A block with these tensors is never one of the trunk.
      if (nextn == 0) {
        while (nextn + 1 < blocks && BlockPredicts(blocks - nextn - 1)) {
          ++nextn;
        }
        if (nextn > 0) {
          d_.notes.push_back(absl::StrCat(
              "the last ", nextn, " of ", blocks,
              " blocks are prediction layers that the file does not announce "
              "with '",
              keys_.Key(rules_.nextn_key), "'"));
        }
      }
    }
    d_.num_layers = static_cast<int>(blocks - nextn);
    d_.nextn_layers = static_cast<int>(nextn);
    return absl::OkStatus();
  }

  absl::Status ReadHeads() {
    FUCINA_ASSIGN_OR_RETURN(std::int64_t heads,
                            keys_.RequiredCount(kHeadCount));
    FUCINA_ASSIGN_OR_RETURN(std::optional<std::int64_t> kv,
                            keys_.Count(kHeadCountKv));
    const std::int64_t kv_heads = kv.value_or(heads);
    if (heads % kv_heads != 0) {
      return keys_.Error(keys_.Key(kHeadCountKv), absl::StrCat(kv_heads),
                         absl::StrCat("a divisor of the ", heads, " heads of '",
                                      keys_.Key(kHeadCount), "'"));
    }
    d_.num_heads = static_cast<int>(heads);
    d_.num_kv_heads = static_cast<int>(kv_heads);

    const std::string q_name = BlockTensor(0, "attn_q.weight");
    FUCINA_ASSIGN_OR_RETURN(
        const GgufTensorInfo* q,
        NeedTensor(q_name, "its rows are the heads of a query"));
    FUCINA_ASSIGN_OR_RETURN(std::optional<std::int64_t> key_length,
                            keys_.Count(kKeyLength));
    std::int64_t head_dim = 0;
    if (key_length.has_value()) {
      head_dim = *key_length;
    } else if (rules_.head_dim_default == HeadDimDefault::kFromQueryTensor) {
      if (q->ne[1] % static_cast<std::uint64_t>(heads) != 0) {
        return TensorError(
            q_name, absl::StrCat(q->ne[1], " rows"),
            absl::StrCat("a multiple of the ", heads, " heads, since '",
                         keys_.Key(kKeyLength), "' is missing"));
      }
      head_dim = static_cast<std::int64_t>(std::min<std::uint64_t>(
          q->ne[1] / static_cast<std::uint64_t>(heads), kMaxInt));
      d_.notes.push_back(absl::StrCat("key '", keys_.Key(kKeyLength),
                                      "' is missing: heads of ", head_dim,
                                      " taken from tensor '", q_name, "'"));
    } else {
      if (d_.hidden_size % heads != 0) {
        return keys_.Error(
            keys_.Key(kHeadCount), absl::StrCat(heads),
            absl::StrCat("a divisor of the hidden size ", d_.hidden_size,
                         ", since '", keys_.Key(kKeyLength), "' is missing"));
      }
      head_dim = d_.hidden_size / heads;
    }
    if (head_dim < 2 || head_dim > kMaxHeadDim || head_dim % 2 != 0) {
      return keys_.Error(
          keys_.Key(kKeyLength), absl::StrCat(head_dim),
          absl::StrCat("an even head size from 2 to ", kMaxHeadDim));
    }
    d_.head_dim = static_cast<int>(head_dim);
    if (q->ne[1] != static_cast<std::uint64_t>(d_.query_size())) {
      return TensorError(q_name, absl::StrCat(q->ne[1], " rows"),
                         absl::StrCat(d_.query_size(), ", which is ", heads,
                                      " heads of ", head_dim));
    }
    FUCINA_ASSIGN_OR_RETURN(std::optional<std::int64_t> value_length,
                            keys_.Count(kValueLength));
    if (value_length.value_or(head_dim) != head_dim) {
      return keys_.Error(keys_.Key(kValueLength), absl::StrCat(*value_length),
                         absl::StrCat(head_dim, ", the size of a key"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadNorm() {
    const std::string key = keys_.Key(kNormEps);
    FUCINA_ASSIGN_OR_RETURN(std::optional<double> eps, file_.GetFloat(key));
    if (!eps.has_value() || !std::isfinite(*eps) || *eps <= 0 || *eps >= 1) {
      return keys_.Error(key, eps.has_value() ? absl::StrCat(*eps) : "missing",
                         "a number above 0 and below 1");
    }
    d_.norm_eps = static_cast<float>(*eps);
    if (d_.norm_eps <= 0) {
      return keys_.Error(key, absl::StrCat(*eps),
                         "a number that f32 can tell from 0");
    }
    return absl::OkStatus();
  }

  absl::Status ReadRope() {
    const std::string key = keys_.Key(kRopeTheta);
    FUCINA_ASSIGN_OR_RETURN(d_.rope_theta,
                            keys_.Float(kRopeTheta, rules_.rope_theta));
    if (!(d_.rope_theta > 1)) {
      return keys_.Error(key, absl::StrCat(d_.rope_theta), "a number above 1");
    }
    if (!file_.Has(key) && rules_.rope_theta_default_warns) {
      d_.notes.push_back(absl::StrCat(
          "key '", key, "' is missing: ", d_.rope_theta, " assumed"));
    }
    FUCINA_ASSIGN_OR_RETURN(std::optional<std::int64_t> dims,
                            keys_.Count(kRopeDims));
    const std::int64_t rope_dims = dims.value_or(d_.head_dim);
    if (rope_dims < 2 || rope_dims > d_.head_dim || rope_dims % 2 != 0) {
      return keys_.Error(
          keys_.Key(kRopeDims), absl::StrCat(rope_dims),
          absl::StrCat("an even number from 2 to the head size ", d_.head_dim));
    }
    d_.rope_dims = static_cast<int>(rope_dims);
    d_.rope_factors = rules_.rope_factors == Presence::kAlways ||
                      (rules_.rope_factors == Presence::kByTensor &&
                       file_.FindTensor("rope_freqs.weight") != nullptr);
    return absl::OkStatus();
  }

  absl::Status ReadRopeScaling() {
    ops::RopeScaling& scaling = d_.rope_scaling;
    const std::string type_key = keys_.Key(kScalingType);
    FUCINA_ASSIGN_OR_RETURN(std::optional<absl::string_view> type,
                            file_.GetString(type_key));
    if (!type.has_value() || *type == "linear") {
      scaling.kind = ops::RopeScalingKind::kLinear;
    } else if (*type == "none") {
      scaling.kind = ops::RopeScalingKind::kNone;
    } else if (*type == "yarn") {
      scaling.kind = ops::RopeScalingKind::kYarn;
    } else {
      const std::string found =
          absl::StrCat("'", absl::Utf8SafeCHexEscape(*type), "'");
      if (*type == "longrope") {
        return keys_.Unsupported(type_key, found,
                                 "supported are none, linear and yarn");
      }
      return keys_.Error(type_key, found, "none, linear or yarn");
    }

    absl::string_view factor_suffix = kScalingFactor;
    if (!file_.Has(keys_.Key(kScalingFactor))) {
      factor_suffix = kScalingFactorOld;
    }
    FUCINA_ASSIGN_OR_RETURN(scaling.factor, keys_.Float(factor_suffix, 1));
    if (scaling.factor == 0) scaling.factor = 1;  // means: not scaled
    if (scaling.factor < 0) {
      return keys_.Error(keys_.Key(factor_suffix), absl::StrCat(scaling.factor),
                         "a number above 0");
    }
    if (scaling.kind == ops::RopeScalingKind::kNone) scaling.factor = 1;

    FUCINA_ASSIGN_OR_RETURN(std::optional<std::int64_t> original,
                            keys_.Count(kScalingOriginal));
    scaling.original_context_length =
        static_cast<int>(original.value_or(d_.context_length));
    FUCINA_ASSIGN_OR_RETURN(double attn, keys_.Float(kScalingAttn, 1));
    FUCINA_ASSIGN_OR_RETURN(double yarn_attn, keys_.Float(kYarnAttn, 1));
    scaling.attn_factor = attn * yarn_attn;
    if (!(scaling.attn_factor > 0) || !std::isfinite(scaling.attn_factor)) {
      return keys_.Error(keys_.Key(attn > 0 ? kYarnAttn : kScalingAttn),
                         absl::StrCat(attn > 0 ? yarn_attn : attn),
                         "a number above 0");
    }
    FUCINA_ASSIGN_OR_RETURN(
        scaling.ext_factor,
        keys_.Float(kYarnExt,
                    scaling.kind == ops::RopeScalingKind::kYarn ? 1 : 0));
    // What makes yarn is its extrapolation: without it, it is linear.
    if (scaling.ext_factor != 0) {
      scaling.kind = ops::RopeScalingKind::kYarn;
    } else if (scaling.kind == ops::RopeScalingKind::kYarn) {
      scaling.kind = ops::RopeScalingKind::kLinear;
    }
    FUCINA_ASSIGN_OR_RETURN(scaling.beta_fast, keys_.Float(kYarnBetaFast, 32));
    FUCINA_ASSIGN_OR_RETURN(scaling.beta_slow, keys_.Float(kYarnBetaSlow, 1));
    for (const auto& [suffix, value] :
         {std::pair{kYarnBetaFast, scaling.beta_fast},
          std::pair{kYarnBetaSlow, scaling.beta_slow}}) {
      if (!(value > 0)) {
        return keys_.Error(keys_.Key(suffix), absl::StrCat(value),
                           "a number above 0");
      }
    }
    FUCINA_ASSIGN_OR_RETURN(double log_multiplier, keys_.Float(kYarnLog, 0));
    if (log_multiplier != 0) {
      return keys_.Unsupported(keys_.Key(kYarnLog),
                               absl::StrCat(log_multiplier),
                               "this scaling is not supported");
    }
    return absl::OkStatus();
  }

  absl::Status ReadFeedForward() {
    FUCINA_ASSIGN_OR_RETURN(std::optional<std::int64_t> experts,
                            keys_.Count(kExpertCount, kMaxExperts));
    if (rules_.feed_forward == FeedForward::kDense && experts.has_value()) {
      return keys_.Unsupported(
          keys_.Key(kExpertCount), absl::StrCat(*experts),
          absl::StrCat("architecture '", rules_.architecture,
                       "' is supported without experts only"));
    }
    if (rules_.feed_forward == FeedForward::kExperts) {
      FUCINA_RETURN_IF_ERROR(ReadExperts());
    }
    // The files of a mixture state a dense width too, often unused.
    FUCINA_ASSIGN_OR_RETURN(std::optional<std::int64_t> ffn,
                            keys_.Count(kFeedForwardLength));
    const bool dense_layers =
        d_.num_experts == 0 || d_.leading_dense_layers > 0;
    if (dense_layers && !ffn.has_value()) {
      return keys_.RequiredCount(kFeedForwardLength).status();
    }
    d_.ffn_size = dense_layers ? static_cast<int>(*ffn) : 0;
    return absl::OkStatus();
  }

  absl::Status ReadExperts() {
    FUCINA_ASSIGN_OR_RETURN(std::int64_t experts,
                            keys_.RequiredCount(kExpertCount, kMaxExperts));
    FUCINA_ASSIGN_OR_RETURN(std::int64_t used,
                            keys_.RequiredCount(kExpertUsed));
    if (used > experts) {
      return keys_.Error(keys_.Key(kExpertUsed), absl::StrCat(used),
                         absl::StrCat("at most the ", experts, " experts of '",
                                      keys_.Key(kExpertCount), "'"));
    }
    FUCINA_ASSIGN_OR_RETURN(std::int64_t ffn, keys_.RequiredCount(kExpertFfn));
    FUCINA_ASSIGN_OR_RETURN(std::optional<std::int64_t> shared,
                            keys_.Count(kExpertShared, kMaxExperts));
    FUCINA_ASSIGN_OR_RETURN(std::optional<std::int64_t> leading,
                            keys_.Count(kLeadingDense));
    if (leading.value_or(0) > d_.num_layers) {
      return keys_.Error(
          keys_.Key(kLeadingDense), absl::StrCat(*leading),
          absl::StrCat("at most the ", d_.num_layers, " layers of the model"));
    }
    FUCINA_ASSIGN_OR_RETURN(std::optional<std::int64_t> groups,
                            keys_.Count(kExpertGroups));
    if (groups.value_or(1) > 1) {
      return keys_.Unsupported(keys_.Key(kExpertGroups), absl::StrCat(*groups),
                               "routing by groups is not supported");
    }
    d_.num_experts = static_cast<int>(experts);
    d_.num_experts_used = static_cast<int>(used);
    d_.expert_ffn_size = static_cast<int>(ffn);
    d_.num_shared_experts = static_cast<int>(shared.value_or(0));
    d_.leading_dense_layers = static_cast<int>(leading.value_or(0));
    FUCINA_RETURN_IF_ERROR(ReadRouting());

    const std::string old_layout =
        BlockTensor(d_.leading_dense_layers, "ffn_gate.0.weight");
    if (file_.FindTensor(old_layout) != nullptr) {
      return absl::UnimplementedError(
          absl::StrCat(file_.display_name(), ": tensor '", old_layout,
                       "': old per-expert layout; convert the model again"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadRouting() {
    const std::string key = keys_.Key(kExpertGating);
    FUCINA_ASSIGN_OR_RETURN(std::optional<std::int64_t> gating,
                            file_.GetInt(key, 0, kMaxInt));
    switch (gating.value_or(0)) {
      case 0:
        d_.gating = rules_.gating;
        break;
      case 1:
        d_.gating = ExpertGating::kSoftmax;
        break;
      case 2:
        d_.gating = ExpertGating::kSigmoid;
        break;
      case 3:
        return keys_.Unsupported(key, "3 (softmax over the selected weights)",
                                 "supported are 1 (softmax) and 2 (sigmoid)");
      case 4:
        return keys_.Unsupported(key, "4 (square root of softplus)",
                                 "supported are 1 (softmax) and 2 (sigmoid)");
      default:
        return keys_.Error(key, absl::StrCat(*gating),
                           "1 (softmax) or 2 (sigmoid)");
    }
    FUCINA_ASSIGN_OR_RETURN(std::optional<bool> norm,
                            file_.GetBool(keys_.Key(kExpertNorm)));
    d_.expert_weights_norm = rules_.expert_norm_always || norm.value_or(false);
    if (rules_.expert_norm_always && !norm.value_or(true)) {
      d_.notes.push_back(absl::StrCat(
          "key '", keys_.Key(kExpertNorm), "' is false and was not used: '",
          rules_.architecture, "' always normalizes"));
    }
    FUCINA_ASSIGN_OR_RETURN(d_.expert_weights_scale,
                            keys_.Float(kExpertScale, 1));
    if (d_.expert_weights_scale == 0) d_.expert_weights_scale = 1;
    return absl::OkStatus();
  }

  void ReadOptionalTensors() {
    d_.qk_norm =
        Decide(rules_.qk_norm, {"attn_q_norm.weight", "attn_k_norm.weight"});
    d_.qkv_bias =
        Decide(rules_.qkv_bias, {"attn_q.bias", "attn_k.bias", "attn_v.bias"});
    d_.attn_out_bias = Decide(rules_.attn_out_bias, {"attn_output.bias"});
    d_.ffn_bias = Decide(rules_.ffn_bias,
                         {"ffn_gate.bias", "ffn_up.bias", "ffn_down.bias"});
    // Both spellings exist.
    d_.router_bias =
        d_.num_experts > 0 &&
        Decide(rules_.router_bias, {"exp_probs_b.bias", "exp_probs_b"});
    d_.output_bias = rules_.output_bias == Presence::kAlways ||
                     (rules_.output_bias == Presence::kByTensor &&
                      file_.FindTensor("output.bias") != nullptr);
  }

  void NoteUnknownKeys() {
    std::vector<absl::string_view> known(std::begin(kKnownKeys),
                                         std::end(kKnownKeys));
    known.push_back(rules_.nextn_key);
    std::string unknown = keys_.ListKeysExcept(known);
    if (!unknown.empty()) {
      d_.notes.push_back(
          absl::StrCat("keys not known here and not used: ", unknown));
    }
  }

  const GgufFile& file_;
  const FamilyRules& rules_;
  KeyReader keys_;
  Descriptor d_;
};

}  // namespace

absl::string_view Name(BlockStyle style) {
  switch (style) {
    case BlockStyle::kFused:
      return "fused";
    case BlockStyle::kHostReference:
      return "host_reference";
  }
  return "unknown";
}

absl::StatusOr<Descriptor> Descriptor::FromGguf(const GgufFile& file,
                                                const FamilyRules& rules) {
  return Compiler(file, rules).Run();
}

}  // namespace fucina
