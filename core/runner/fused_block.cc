#include "core/runner/fused_block.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "fucina/diag/status_macros.h"
#include "fucina/ops/activation.h"
#include "fucina/ops/norm.h"
#include "fucina/parallel/thread_pool.h"

namespace fucina {
namespace {

const LowRank* Find(const AdapterSet* adapter, int layer, LinearSite site) {
  return adapter == nullptr ? nullptr : adapter->Find(layer, site);
}

std::int64_t WidestFeedForward(const Descriptor& d) {
  return std::max<std::int64_t>(
      d.ffn_size,
      static_cast<std::int64_t>(d.expert_ffn_size) * d.num_shared_experts);
}

// Floats from one row of a buffer to the next: whole cache lines, and one more,
// since rows a multiple of 4 KiB apart, as most models' would be, fall on the
// same few sets of every cache.
std::int64_t PaddedRow(std::int64_t row_size) {
  constexpr std::int64_t kLineFloats = 16;
  return (row_size + kLineFloats - 1) / kLineFloats * kLineFloats + kLineFloats;
}

// Columns [begin, begin + count) of a row-major buffer.
Tensor Columns(const Tensor& buffer, int rows, std::int64_t begin,
               std::int64_t count) {
  return Tensor::Strided(DType::kF32, rows, count, buffer.row_stride_bytes(),
                         buffer.mutable_row_f32(0) + begin);
}

}  // namespace

absl::StatusOr<std::unique_ptr<FusedScratch>> FusedScratch::Create(
    const Descriptor& d, const Sizes& sizes, int num_threads) {
  auto s = std::make_unique<FusedScratch>();
  s->sizes = sizes;
  const std::int64_t rows = sizes.max_rows;
  const std::int64_t ffn = WidestFeedForward(d);
  const std::int64_t qkv = d.query_size() + 2 * d.kv_size();
  const std::int64_t shared = d.num_shared_experts > 0 ? d.hidden_size : 0;
  struct Part {
    Tensor* tensor;
    std::int64_t row_size;
  };
  const Part parts[] = {{&s->h, d.hidden_size},  {&s->qkv, qkv},
                        {&s->o, d.query_size()}, {&s->delta, d.hidden_size},
                        {&s->gate, ffn},         {&s->up, ffn},
                        {&s->extra, shared},     {&s->router, d.num_experts}};
  const auto floats = [rows](const Part& part) {
    return rows * PaddedRow(part.row_size);
  };
  std::int64_t total = 0;
  for (const Part& part : parts) total += floats(part);
  FUCINA_ASSIGN_OR_RETURN(
      s->memory, Buffer::Allocate(static_cast<std::size_t>(total) * 4));
  float* next = s->memory.as<float>();
  for (const Part& part : parts) {
    if (part.row_size > 0) {
      *part.tensor = Tensor::Strided(
          DType::kF32, rows, part.row_size,
          PaddedRow(part.row_size) * static_cast<std::int64_t>(sizeof(float)),
          next);
    }
    next += floats(part);
  }
  FUCINA_ASSIGN_OR_RETURN(
      s->rows,
      ops::ActivationRows::Create(
          rows, std::max<std::int64_t>({d.hidden_size, d.query_size(), ffn}),
          num_threads, sizes.max_rank));
  FUCINA_ASSIGN_OR_RETURN(s->attention, ops::AttentionScratch::Create(
                                            {.num_threads = num_threads,
                                             .num_heads = d.num_heads,
                                             .num_kv_heads = d.num_kv_heads,
                                             .head_dim = d.head_dim,
                                             .capacity = sizes.max_capacity,
                                             .num_items = 16}));
  if (d.num_experts > 0) {
    const std::size_t slots = static_cast<std::size_t>(rows) *
                              static_cast<std::size_t>(d.num_experts_used);
    s->expert_ids.resize(slots);
    s->expert_weights.resize(slots);
    FUCINA_ASSIGN_OR_RETURN(
        s->experts, ops::ExpertScratch::Create(
                        rows, d.num_experts, d.num_experts_used, d.hidden_size,
                        d.expert_ffn_size, num_threads));
  }
  return s;
}

FusedBlock::FusedBlock(const Descriptor& descriptor,
                       const ModelTensors& tensors, double expert_top_p,
                       const ops::Context& context)
    : d_(descriptor), tensors_(tensors), context_(context) {
  routing_ = {.gate = d_.gating == ExpertGating::kSoftmax
                          ? ops::RoutingGate::kSoftmax
                          : ops::RoutingGate::kSigmoid,
              .num_experts = d_.num_experts,
              .num_experts_used = d_.num_experts_used,
              .normalize = d_.expert_weights_norm,
              .scale = static_cast<float>(d_.expert_weights_scale),
              .top_p = static_cast<float>(expert_top_p)};
  rope_ = std::make_unique<ops::RopeTable>(
      ops::RopeSpec{.rotary_dim = d_.rope_dims,
                    .theta = d_.rope_theta,
                    .pairing = d_.rope_pairing,
                    .scaling = d_.rope_scaling,
                    .factors = tensors_.rope_factors});
}

absl::StatusOr<std::unique_ptr<FusedBlock>> FusedBlock::Create(
    const GgufFile& file, const Descriptor& descriptor,
    const ModelTensors& tensors, double expert_top_p,
    const ops::Context& context) {
  std::unique_ptr<FusedBlock> block(
      new FusedBlock(descriptor, tensors, expert_top_p, context));
  FUCINA_ASSIGN_OR_RETURN(block->weights_,
                          PackModel(file, tensors, context.pool));
  return block;
}

std::int64_t FusedBlock::size_bytes() const {
  return static_cast<std::int64_t>(weights_.memory.size_bytes());
}

void FusedBlock::RunLayer(int layer, bool settle, RowBatch& batch,
                          const Tensor& x, FusedScratch& s,
                          PhaseClock& clock) const {
  const LayerTensors& t = tensors_.layers[static_cast<std::size_t>(layer)];
  const LayerWeights& w = weights_.layers[static_cast<std::size_t>(layer)];
  const std::int64_t query = d_.query_size();
  const std::int64_t kv = d_.kv_size();
  int rows = batch.num_rows;
  batch.SetLayer(layer);

  // h = norm(x), after what the layer before left to be added.
  const Tensor h = s.h.Slice(0, rows);
  if (s.pending) {
    ops::AddRmsNorm(context_, s.delta.Slice(0, rows), t.attn_norm, d_.norm_eps,
                    x.Slice(0, rows), h);
    s.pending = false;
  } else {
    ops::RmsNorm(context_, x.Slice(0, rows), t.attn_norm, d_.norm_eps, h);
  }
  s.rows.Assign(h);
  clock.Mark(Phase::kAttnPrep);

  Qkv(layer, batch, s);
  clock.Mark(Phase::kQkv);

  const Tensor q = Columns(s.qkv, rows, 0, query);
  const Tensor k = Columns(s.qkv, rows, query, kv);
  const Tensor v = Columns(s.qkv, rows, query + kv, kv);
  const std::span<const float> no_norm;
  const ops::NormedHeads heads[] = {
      {.x = q, .weight = d_.qk_norm ? t.q_norm : no_norm},
      {.x = k, .weight = d_.qk_norm ? t.k_norm : no_norm}};
  ops::NormAndRope(context_, *rope_, batch.positions, d_.head_dim, d_.norm_eps,
                   heads);
  clock.Mark(Phase::kQkNormRope);

  ops::AppendKv(context_, k, v, batch.items);
  if (layer + 1 == d_.num_layers) {
    const Tensor kept[] = {x, q};
    batch.KeepLast(batch.wanted, kept);
    rows = batch.num_rows;
    if (rows == 0) return;
  }
  ops::Attention(context_, Columns(s.qkv, rows, 0, query), batch.items,
                 static_cast<float>(1 / std::sqrt(double(d_.head_dim))),
                 s.attention, s.o.Slice(0, rows));
  clock.Mark(Phase::kAttention);

  // x += Wo o; h = norm(x)
  s.rows.Assign(s.o.Slice(0, rows));
  const Tensor delta = s.delta.Slice(0, rows);
  const LowRank* low_rank_o[] = {Find(batch.adapter, layer, LinearSite::kO)};
  const ops::LinearJob o_job{
      .weight = w.o, .out = delta, .low_rank = low_rank_o};
  ops::Linear(context_, s.rows, {&o_job, 1});
  clock.Mark(Phase::kAttnOut);
  ops::AddRmsNorm(context_, delta, t.ffn_norm, d_.norm_eps, x.Slice(0, rows),
                  s.h.Slice(0, rows));
  s.rows.Assign(s.h.Slice(0, rows));
  clock.Mark(Phase::kFfnPrep);

  if (d_.HasExperts(layer)) {
    Experts(w, t, rows, s, clock);
  } else {
    FeedForward(w.dense, layer, batch.adapter, rows, delta, s, clock);
  }
  s.pending = true;
  if (settle) {
    ops::AddInPlace(context_, delta, x.Slice(0, rows));
    s.pending = false;
    clock.Mark(Phase::kFfnResidual);
  }
}

void FusedBlock::Qkv(int layer, const RowBatch& batch, FusedScratch& s) const {
  const LayerWeights& w = weights_.layers[static_cast<std::size_t>(layer)];
  const std::int64_t query = d_.query_size();
  const std::int64_t kv = d_.kv_size();
  const int rows = batch.num_rows;
  const std::array<const LowRank*, 3> low_rank = {
      Find(batch.adapter, layer, LinearSite::kQ),
      Find(batch.adapter, layer, LinearSite::kK),
      Find(batch.adapter, layer, LinearSite::kV)};
  const std::span<const LowRank* const> all(low_rank);
  if (!w.qkv.empty()) {
    const ops::LinearJob job{
        .weight = w.qkv, .out = s.qkv.Slice(0, rows), .low_rank = all};
    ops::Linear(context_, s.rows, {&job, 1});
    return;
  }
  const ops::LinearJob jobs[] = {{.weight = w.q,
                                  .out = Columns(s.qkv, rows, 0, query),
                                  .low_rank = all.subspan(0, 1)},
                                 {.weight = w.k,
                                  .out = Columns(s.qkv, rows, query, kv),
                                  .low_rank = all.subspan(1, 1)},
                                 {.weight = w.v,
                                  .out = Columns(s.qkv, rows, query + kv, kv),
                                  .low_rank = all.subspan(2, 1)}};
  ops::Linear(context_, s.rows, jobs);
}

// out = down(silu(gate h) * (up h)) with h the rows assigned last.
void FusedBlock::FeedForward(const FeedForwardWeights& w, int layer,
                             const AdapterSet* adapter, int rows,
                             const Tensor& out, FusedScratch& s,
                             PhaseClock& clock) const {
  const std::int64_t width =
      w.gate_up.empty() ? w.gate.out_features() : w.gate_up.out_features();
  const Tensor gate = Columns(s.gate, rows, 0, width);
  const std::array<const LowRank*, 3> low_rank = {
      Find(adapter, layer, LinearSite::kGate),
      Find(adapter, layer, LinearSite::kUp),
      Find(adapter, layer, LinearSite::kDown)};
  const std::span<const LowRank* const> all(low_rank);
  if (!w.gate_up.empty()) {
    const ops::LinearJob job{
        .weight = w.gate_up, .out = gate, .low_rank = all.subspan(0, 2)};
    ops::Linear(context_, s.rows, {&job, 1});
    clock.Mark(Phase::kGateUp);
  } else {
    const Tensor up = Columns(s.up, rows, 0, width);
    const ops::LinearJob jobs[] = {
        {.weight = w.gate, .out = gate, .low_rank = all.subspan(0, 1)},
        {.weight = w.up, .out = up, .low_rank = all.subspan(1, 1)}};
    ops::Linear(context_, s.rows, jobs);
    clock.Mark(Phase::kGateUp);
    ops::GatedSilu(context_, gate, up, gate);
    clock.Mark(Phase::kSwiglu);
  }
  s.rows.Assign(gate);
  const ops::LinearJob down{
      .weight = w.down, .out = out, .low_rank = all.subspan(2, 1)};
  ops::Linear(context_, s.rows, {&down, 1});
  clock.Mark(Phase::kDown);
}

// delta = mixture(h) + shared(h) with h the rows assigned last.
void FusedBlock::Experts(const LayerWeights& layer, const LayerTensors& t,
                         int rows, FusedScratch& s, PhaseClock& clock) const {
  const ExpertLayerWeights& w = layer.experts;
  const Tensor h = s.h.Slice(0, rows);
  const Tensor router = s.router.Slice(0, rows);
  ops::Linear(context_, s.rows, w.router, router);
  const std::size_t slots = static_cast<std::size_t>(rows) *
                            static_cast<std::size_t>(d_.num_experts_used);
  const std::span<std::int32_t> ids(s.expert_ids.data(), slots);
  const std::span<float> weights(s.expert_weights.data(), slots);
  ops::Route(routing_, router, t.experts.selection_bias, ids, weights);
  clock.Mark(Phase::kRouter);

  const Tensor delta = s.delta.Slice(0, rows);
  ops::ExpertMixture(
      context_, h,
      {.num_used = d_.num_experts_used, .experts = ids, .weights = weights},
      w.by_number, s.experts, delta);
  clock.Mark(Phase::kGateUp);
  if (w.has_shared) {
    FeedForward(w.shared, 0, nullptr, rows, s.extra.Slice(0, rows), s, clock);
    ops::AddInPlace(context_, s.extra.Slice(0, rows), delta);
  }
}

void FusedBlock::Normalize(const Tensor& x, FusedScratch& s) const {
  ops::RmsNorm(context_, x, tensors_.output_norm, d_.norm_eps,
               s.h.Slice(0, x.num_rows()));
}

void FusedBlock::Logits(std::int64_t first_row, std::int64_t num_rows,
                        const Tensor& out, FusedScratch& s) const {
  s.rows.Assign(s.h.Slice(first_row, num_rows));
  ops::Linear(context_, s.rows, weights_.output, out);
}

}  // namespace fucina
