#include "core/runner/reference_block.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "fucina/kernels/f16.h"
#include "fucina/kernels/quantize.h"
#include "fucina/ops/attention.h"
#include "fucina/parallel/thread_pool.h"
#include "fucina/tensor/dtype.h"

namespace fucina {
namespace {

// y = x / sqrt(mean(x^2) + eps) * weight; y may be x.
void RmsNorm(const float* x, const std::vector<float>& weight, float eps,
             float* y) {
  const std::size_t n = weight.size();
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sum += static_cast<double>(x[i]) * x[i];
  }
  const double r = 1 / std::sqrt(sum / static_cast<double>(n) + eps);
  for (std::size_t i = 0; i < n; ++i) {
    y[i] = static_cast<float>(x[i] * r * weight[i]);
  }
}

double Silu(double g) { return g / (1 + std::exp(-g)); }

// Element `index` of a row of cached keys or values.
double Load(const std::byte* data, DType dtype, std::int64_t index) {
  if (dtype == DType::kF32) {
    float value;
    std::memcpy(&value, data + index * 4, sizeof(value));
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, data + index * 2, sizeof(bits));
  return F16ToFloat(bits);
}

// The cache as ops/kv_rows.h lays it out.
double Key(const ops::KvRows& kv, int head, int position, int channel) {
  const int run = position / kv.shape.run_positions();
  const int in_run = position % kv.shape.run_positions();
  const std::int64_t index =
      (static_cast<std::int64_t>(in_run / ops::kKvLanes) * kv.shape.head_dim +
       channel) *
          ops::kKvLanes +
      in_run % ops::kKvLanes;
  return Load(kv.keys(run, head), kv.shape.dtype, index);
}

double Value(const ops::KvRows& kv, int head, int position, int channel) {
  const int run = position / kv.shape.run_positions();
  const int in_run = position % kv.shape.run_positions();
  return Load(
      kv.values(run, head), kv.shape.dtype,
      static_cast<std::int64_t>(in_run) * kv.shape.value_stride() + channel);
}

const LowRank* Find(const AdapterSet* adapter, int layer, LinearSite site) {
  return adapter == nullptr ? nullptr : adapter->Find(layer, site);
}

// The experts of one row, best first, and their weights. Ties go to the lower
// index; the bias decides who is chosen and not with which weight.
void ChooseExperts(const Descriptor& d, double top_p, const float* logits,
                   const std::vector<float>& bias, std::vector<double>& p,
                   std::vector<ExpertPick>& picks) {
  const int count = d.num_experts;
  p.assign(logits, logits + count);
  if (d.gating == ExpertGating::kSoftmax) {
    const double largest = *std::max_element(p.begin(), p.end());
    double total = 0;
    for (double& value : p) total += value = std::exp(value - largest);
    for (double& value : p) value /= total;
  } else {
    for (double& value : p) value = 1 / (1 + std::exp(-value));
  }

  picks.clear();
  const auto chosen = [&picks](int expert) {
    return std::any_of(
        picks.begin(), picks.end(),
        [expert](const ExpertPick& pick) { return pick.expert == expert; });
  };
  for (int slot = 0; slot < d.num_experts_used; ++slot) {
    int best = -1;
    double best_value = 0;
    for (int e = 0; e < count; ++e) {
      const double value =
          p[e] + (bias.empty() ? 0.0 : bias[static_cast<std::size_t>(e)]);
      if (!chosen(e) && (best < 0 || value > best_value)) {
        best = e;
        best_value = value;
      }
    }
    picks.push_back({best, p[best]});
  }

  if (d.expert_weights_norm) {
    double sum = 0;
    for (const ExpertPick& pick : picks) sum += pick.weight;
    for (ExpertPick& pick : picks) pick.weight /= std::max(sum, 0x1p-14);
  }
  for (ExpertPick& pick : picks) pick.weight *= d.expert_weights_scale;

  if (top_p >= 1) return;
  // Keep the shortest prefix, by weight, that holds the share of the total;
  // it takes over the whole total.
  std::stable_sort(picks.begin(), picks.end(),
                   [](const ExpertPick& a, const ExpertPick& b) {
                     return a.weight > b.weight;
                   });
  double total = 0;
  for (const ExpertPick& pick : picks) total += pick.weight;
  double kept = 0;
  std::size_t n = 0;
  while (n < picks.size() && (n == 0 || kept < top_p * total)) {
    kept += picks[n++].weight;
  }
  picks.resize(n);
  for (ExpertPick& pick : picks) pick.weight *= total / kept;
}

std::int64_t WidestFeedForward(const Descriptor& d) {
  return std::max<std::int64_t>(
      {d.ffn_size, d.expert_ffn_size,
       static_cast<std::int64_t>(d.expert_ffn_size) * d.num_shared_experts});
}

}  // namespace

ReferenceScratch::ReferenceScratch(const Descriptor& d, int rows_wanted,
                                   int capacity, int num_threads)
    : max_rows(rows_wanted), max_capacity(capacity) {
  const std::size_t rows = static_cast<std::size_t>(rows_wanted);
  const std::size_t threads = static_cast<std::size_t>(num_threads);
  const std::size_t hidden = static_cast<std::size_t>(d.hidden_size);
  const std::size_t query = static_cast<std::size_t>(d.query_size());
  const std::size_t kv = static_cast<std::size_t>(d.kv_size());
  const std::size_t ffn = static_cast<std::size_t>(WidestFeedForward(d));
  const std::size_t experts = static_cast<std::size_t>(d.num_experts);
  h.resize(rows * hidden);
  q.resize(rows * query);
  k.resize(rows * kv);
  v.resize(rows * kv);
  o.resize(rows * query);
  delta.resize(rows * hidden);
  gate.resize(rows * ffn);
  up.resize(rows * ffn);
  router.resize(rows * experts);
  expert_out.resize(hidden);
  scores.resize(threads * static_cast<std::size_t>(capacity));
  decoded_rows.resize(threads * std::max({hidden, query, ffn}));
}

ReferenceBlock::ReferenceBlock(const Descriptor& descriptor,
                               const ModelTensors& tensors, double expert_top_p,
                               const ops::Context& context)
    : d_(descriptor),
      tensors_(tensors),
      expert_top_p_(expert_top_p),
      context_(context) {
  // Angle of pair i per position: theta^(-2i/d), divided by the file's factor;
  // then the scaling of positions. Sources: arXiv 2104.09864, 2309.00071.
  const ops::RopeScaling& scaling = d_.rope_scaling;
  const double d = d_.rope_dims;
  const double squeeze = 1 / scaling.factor;
  const double ln_theta = std::log(d_.rope_theta);
  const bool yarn = scaling.kind == ops::RopeScalingKind::kYarn;
  // The pair that turns `rotations` times over the original context.
  const auto pair_of = [&](double rotations) {
    return d *
           std::log(scaling.original_context_length /
                    (rotations * 2 * std::numbers::pi)) /
           (2 * ln_theta);
  };
  const double low = std::max(0.0, std::floor(pair_of(scaling.beta_fast)));
  const double high = std::min(d - 1, std::ceil(pair_of(scaling.beta_slow)));
  rope_magnitude_ = scaling.attn_factor;
  if (yarn) rope_magnitude_ *= 1 + 0.1 * std::log(1 / squeeze);
  for (int i = 0; i < d_.rope_dims / 2; ++i) {
    double kept = std::exp(-2.0 * i / d * ln_theta);
    if (!tensors_.rope_factors.empty()) {
      kept /= tensors_.rope_factors[static_cast<std::size_t>(i)];
    }
    double mix = 0;
    if (yarn) {
      const double ramp =
          1 - std::clamp((i - low) / std::max(0.001, high - low), 0.0, 1.0);
      mix = ramp * scaling.ext_factor;
    }
    inverse_frequency_.push_back(squeeze * kept * (1 - mix) + kept * mix);
  }
}

void ReferenceBlock::RunLayer(int layer, RowBatch& batch, const Tensor& x,
                              ReferenceScratch& s, PhaseClock& clock) const {
  const LayerTensors& t = tensors_.layers[static_cast<std::size_t>(layer)];
  const AdapterSet* adapter = batch.adapter;
  const std::int64_t hidden = d_.hidden_size;
  const std::int64_t query = d_.query_size();
  const std::int64_t kv = d_.kv_size();
  int rows = batch.num_rows;
  batch.SetLayer(layer);

  for (int r = 0; r < rows; ++r) {
    RmsNorm(x.row_f32(r), t.attn_norm, d_.norm_eps, &s.h[r * hidden]);
  }
  clock.Mark(Phase::kAttnPrep);

  Linear(t.q, Find(adapter, layer, LinearSite::kQ), s.h.data(), rows,
         s.q.data(), query, s);
  Linear(t.k, Find(adapter, layer, LinearSite::kK), s.h.data(), rows,
         s.k.data(), kv, s);
  Linear(t.v, Find(adapter, layer, LinearSite::kV), s.h.data(), rows,
         s.v.data(), kv, s);
  clock.Mark(Phase::kQkv);

  if (d_.qk_norm) {
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(rows) * d_.num_heads;
         ++i) {
      float* head = &s.q[i * d_.head_dim];
      RmsNorm(head, t.q_norm, d_.norm_eps, head);
    }
    for (std::int64_t i = 0;
         i < static_cast<std::int64_t>(rows) * d_.num_kv_heads; ++i) {
      float* head = &s.k[i * d_.head_dim];
      RmsNorm(head, t.k_norm, d_.norm_eps, head);
    }
  }
  Rope(batch.positions, d_.num_heads, s.q.data());
  Rope(batch.positions, d_.num_kv_heads, s.k.data());
  clock.Mark(Phase::kQkNormRope);

  ops::AppendKv(context_, Tensor(DType::kF32, {rows, kv}, s.k.data()),
                Tensor(DType::kF32, {rows, kv}, s.v.data()), batch.items);
  if (layer + 1 == d_.num_layers) {
    const Tensor kept[] = {x, Tensor(DType::kF32, {rows, query}, s.q.data())};
    batch.KeepLast(batch.wanted, kept);
    rows = batch.num_rows;
    if (rows == 0) return;
  }
  Attend(batch, s.q.data(), s.o.data(), s);
  clock.Mark(Phase::kAttention);

  Linear(t.o, Find(adapter, layer, LinearSite::kO), s.o.data(), rows,
         s.delta.data(), hidden, s);
  clock.Mark(Phase::kAttnOut);
  for (int r = 0; r < rows; ++r) {
    float* row = x.mutable_row_f32(r);
    for (std::int64_t i = 0; i < hidden; ++i) row[i] += s.delta[r * hidden + i];
  }
  clock.Mark(Phase::kAttnResidual);

  for (int r = 0; r < rows; ++r) {
    RmsNorm(x.row_f32(r), t.ffn_norm, d_.norm_eps, &s.h[r * hidden]);
  }
  clock.Mark(Phase::kFfnPrep);
  if (d_.HasExperts(layer)) {
    Experts(t.experts, s.h.data(), rows, s.delta.data(), s);
  } else {
    FeedForward(t.dense, layer, adapter, rows, s.delta.data(), s);
  }
  clock.Mark(Phase::kGateUp);
  for (int r = 0; r < rows; ++r) {
    float* row = x.mutable_row_f32(r);
    for (std::int64_t i = 0; i < hidden; ++i) row[i] += s.delta[r * hidden + i];
  }
  clock.Mark(Phase::kFfnResidual);
}

void ReferenceBlock::Normalize(const Tensor& x) const {
  for (std::int64_t r = 0; r < x.num_rows(); ++r) {
    float* row = x.mutable_row_f32(r);
    RmsNorm(row, tensors_.output_norm, d_.norm_eps, row);
  }
}

void ReferenceBlock::Logits(const Tensor& x, const Tensor& out,
                            ReferenceScratch& scratch) const {
  for (std::int64_t r = 0; r < x.num_rows(); ++r) {
    Linear(tensors_.output, nullptr, x.row_f32(r), 1, out.mutable_row_f32(r),
           d_.vocab_size, scratch);
  }
}

// out[r, i] = sum_j W[i, j] x[r, j] + bias[i] + scale (A B x[r])[i]
void ReferenceBlock::Linear(const LinearTensor& linear, const LowRank* low_rank,
                            const float* x, int rows, float* out,
                            std::int64_t out_stride,
                            ReferenceScratch& scratch) const {
  LinearRows(*linear.weight, 0, linear.out(),
             linear.bias.empty() ? nullptr : linear.bias.data(), x, rows, out,
             out_stride, scratch);
  if (low_rank == nullptr) return;
  const std::int64_t rank = low_rank->b.num_rows();
  scratch.rank.resize(static_cast<std::size_t>(rank));
  for (int r = 0; r < rows; ++r) {
    for (std::int64_t j = 0; j < rank; ++j) {
      double sum = 0;
      for (std::int64_t i = 0; i < linear.in(); ++i) {
        sum += static_cast<double>(low_rank->b.row_f32(j)[i]) *
               x[r * linear.in() + i];
      }
      scratch.rank[static_cast<std::size_t>(j)] = sum;
    }
    for (std::int64_t i = 0; i < linear.out(); ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < rank; ++j) {
        sum += low_rank->a.row_f32(i)[j] *
               scratch.rank[static_cast<std::size_t>(j)];
      }
      float& y = out[r * out_stride + i];
      y = static_cast<float>(y + low_rank->scale * sum);
    }
  }
}

// Rows [first_row, first_row + num_rows) of a weight times each row of x.
void ReferenceBlock::LinearRows(const GgufTensorInfo& weight,
                                std::int64_t first_row, std::int64_t num_rows,
                                const float* bias, const float* x, int rows,
                                float* out, std::int64_t out_stride,
                                ReferenceScratch& scratch) const {
  const std::int64_t in = static_cast<std::int64_t>(weight.ne[0]);
  const std::int64_t row_bytes = RowBytes(weight.dtype, in);
  const std::int64_t widest =
      static_cast<std::int64_t>(scratch.decoded_rows.size()) /
      context_.pool.num_threads();
  context_.pool.ParallelFor(
      num_rows, 16, [&](std::int64_t begin, std::int64_t end, int worker) {
        float* w = scratch.decoded_rows.data() + worker * widest;
        for (std::int64_t i = begin; i < end; ++i) {
          DequantizeRow(weight.dtype, weight.data + (first_row + i) * row_bytes,
                        w, in);
          for (int r = 0; r < rows; ++r) {
            const float* row = x + r * in;
            double sum = 0;
            for (std::int64_t j = 0; j < in; ++j) {
              sum += static_cast<double>(w[j]) * row[j];
            }
            if (bias != nullptr) sum += bias[i];
            out[r * out_stride + i] = static_cast<float>(sum);
          }
        }
      });
}

// (a, b) <- (a cos - b sin, a sin + b cos) for each pair of each head.
void ReferenceBlock::Rope(std::span<const std::int32_t> positions,
                          int num_heads, float* x) const {
  const int pairs = d_.rope_dims / 2;
  const bool half = d_.rope_pairing == ops::RopePairing::kHalf;
  for (std::size_t r = 0; r < positions.size(); ++r) {
    for (int i = 0; i < pairs; ++i) {
      const double angle =
          positions[r] * inverse_frequency_[static_cast<std::size_t>(i)];
      const double c = rope_magnitude_ * std::cos(angle);
      const double s = rope_magnitude_ * std::sin(angle);
      for (int h = 0; h < num_heads; ++h) {
        float* head =
            x + (static_cast<std::int64_t>(r) * num_heads + h) * d_.head_dim;
        float& a = head[half ? i : 2 * i];
        float& b = head[half ? i + pairs : 2 * i + 1];
        const double a0 = a;
        const double b0 = b;
        a = static_cast<float>(a0 * c - b0 * s);
        b = static_cast<float>(a0 * s + b0 * c);
      }
    }
  }
}

// Each query over all positions up to its own, as they lie in the cache.
void ReferenceBlock::Attend(const RowBatch& batch, const float* q, float* o,
                            ReferenceScratch& scratch) const {
  const int dim = d_.head_dim;
  const int group = d_.num_heads / d_.num_kv_heads;
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  const std::int64_t longest =
      static_cast<std::int64_t>(scratch.scores.size()) /
      context_.pool.num_threads();
  for (const ops::AttentionItem& item : batch.items) {
    context_.pool.ParallelFor(
        static_cast<std::int64_t>(item.num_rows) * d_.num_heads, 1,
        [&](std::int64_t begin, std::int64_t end, int worker) {
          double* w = scratch.scores.data() + worker * longest;
          for (std::int64_t task = begin; task < end; ++task) {
            const int r = static_cast<int>(task / d_.num_heads);
            const int h = static_cast<int>(task % d_.num_heads);
            const int position = item.position + r;
            const std::int64_t at =
                (static_cast<std::int64_t>(item.first_row + r) * d_.num_heads +
                 h) *
                dim;
            double largest = -std::numeric_limits<double>::infinity();
            for (int j = 0; j <= position; ++j) {
              double sum = 0;
              for (int c = 0; c < dim; ++c) {
                sum += q[at + c] * Key(item.kv, h / group, j, c);
              }
              w[j] = scale * sum;
              largest = std::max(largest, w[j]);
            }
            double total = 0;
            for (int j = 0; j <= position; ++j) {
              w[j] = std::exp(w[j] - largest);
              total += w[j];
            }
            for (int c = 0; c < dim; ++c) {
              double sum = 0;
              for (int j = 0; j <= position; ++j) {
                sum += w[j] * Value(item.kv, h / group, j, c);
              }
              o[at + c] = static_cast<float>(sum / total);
            }
          }
        });
  }
}

// out = down(silu(gate h) * (up h)) with h from the scratch.
void ReferenceBlock::FeedForward(const FeedForwardTensors& t, int layer,
                                 const AdapterSet* adapter, int rows,
                                 float* out, ReferenceScratch& s) const {
  const std::int64_t width = t.gate.out();
  Linear(t.gate, Find(adapter, layer, LinearSite::kGate), s.h.data(), rows,
         s.gate.data(), width, s);
  Linear(t.up, Find(adapter, layer, LinearSite::kUp), s.h.data(), rows,
         s.up.data(), width, s);
  for (std::int64_t i = 0; i < rows * width; ++i) {
    s.gate[i] = static_cast<float>(Silu(s.gate[i]) * s.up[i]);
  }
  Linear(t.down, Find(adapter, layer, LinearSite::kDown), s.gate.data(), rows,
         out, d_.hidden_size, s);
}

// out = sum over chosen experts of weight * expert(h), in order of choice,
// plus the shared expert.
void ReferenceBlock::Experts(const ExpertTensors& t, const float* h, int rows,
                             float* out, ReferenceScratch& s) const {
  const std::int64_t hidden = d_.hidden_size;
  const std::int64_t width = d_.expert_ffn_size;
  const std::int64_t count = d_.num_experts;
  // In a stack of both, an expert's gate rows come before its up rows.
  const bool merged = t.gate_up != nullptr;
  const GgufTensorInfo& gate = merged ? *t.gate_up : *t.gate;
  const GgufTensorInfo& up = merged ? *t.gate_up : *t.up;
  const std::int64_t stride = merged ? 2 * width : width;
  const std::int64_t up_offset = merged ? width : 0;

  Linear(t.router, nullptr, h, rows, s.router.data(), count, s);
  for (int r = 0; r < rows; ++r) {
    const float* row = h + r * hidden;
    ChooseExperts(d_, expert_top_p_, &s.router[r * count], t.selection_bias,
                  s.probabilities, s.picks);
    s.sum.assign(static_cast<std::size_t>(hidden), 0.0);
    for (const ExpertPick& pick : s.picks) {
      const std::int64_t e = pick.expert;
      LinearRows(gate, e * stride, width, nullptr, row, 1, s.gate.data(), width,
                 s);
      LinearRows(up, e * stride + up_offset, width, nullptr, row, 1,
                 s.up.data(), width, s);
      for (std::int64_t i = 0; i < width; ++i) {
        s.gate[i] = static_cast<float>(Silu(s.gate[i]) * s.up[i]);
      }
      LinearRows(*t.down, e * hidden, hidden, nullptr, s.gate.data(), 1,
                 s.expert_out.data(), hidden, s);
      for (std::int64_t i = 0; i < hidden; ++i) {
        s.sum[i] += pick.weight * s.expert_out[i];
      }
    }
    for (std::int64_t i = 0; i < hidden; ++i) {
      out[r * hidden + i] = static_cast<float>(s.sum[i]);
    }
  }
  if (!t.has_shared) return;
  s.shared_out.resize(static_cast<std::size_t>(rows * hidden));
  FeedForward(t.shared, 0, nullptr, rows, s.shared_out.data(), s);
  for (std::int64_t i = 0; i < rows * hidden; ++i) out[i] += s.shared_out[i];
}

}  // namespace fucina
