#include "core/runner/forward.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fucina/diag/status_macros.h"
#include "fucina/ops/embedding.h"
#include "fucina/parallel/flush_denormals.h"
#include "fucina/parallel/thread_pool.h"

namespace fucina {
namespace {

// Rows that go through the layers at once. Enough to read each weight for many
// rows (a product of 512 rows runs at the arithmetic limit), few enough that
// the activations of a layer stay in the second-level cache.
constexpr int kChunkRows = 512;

// Logit rows of several sequences that are computed at once before they are
// handed out: reads the output matrix once for most batches, and 64 rows of a
// large vocabulary are 40 MB.
constexpr std::int64_t kSharedLogitRows = 64;

constexpr std::array<absl::string_view, kNumLinearSites> kSiteNames = {
    "q", "k", "v", "o", "gate", "up", "down"};

std::int64_t SuffixRows(const SequenceStep& step) {
  return step.suffix_embeddings.rank() == 0 ? 0
                                            : step.suffix_embeddings.num_rows();
}

int NumRows(const SequenceStep& step) {
  return static_cast<int>(step.tokens.size()) +
         static_cast<int>(SuffixRows(step));
}

std::int64_t LogitRowsOf(const SequenceStep& step) {
  switch (step.rows) {
    case LogitRows::kNone:
      return 0;
    case LogitRows::kLast:
      return 1;
    case LogitRows::kAll:
      return NumRows(step);
  }
  return 0;
}

TapRows Watched(const SequenceStep& step, int layer) {
  return step.tap == nullptr ? TapRows::kNone : step.tap->Wants(layer);
}

// How many of the last of `num_rows` rows a tap is shown.
int RowsShown(TapRows shown, int num_rows) {
  switch (shown) {
    case TapRows::kNone:
      return 0;
    case TapRows::kLast:
      return 1;
    case TapRows::kAll:
      return num_rows;
  }
  return 0;
}

RunnerState& StateOf(const SequenceStep& step) {
  return static_cast<RunnerState&>(*step.state);
}

// The most that the ranks of pairs which read the same input add up to.
int MaxRank(std::span<const SequenceStep> batch) {
  constexpr std::array<int, kNumLinearSites> kInputOfSite = {0, 0, 0, 1,
                                                             2, 2, 3};
  std::int64_t most = 0;
  const AdapterSet* seen = nullptr;
  for (const SequenceStep& step : batch) {
    if (step.adapter == nullptr || step.adapter == seen) continue;
    seen = step.adapter;
    for (const auto& layer : step.adapter->layers) {
      std::array<std::int64_t, 4> ranks = {};
      for (std::size_t site = 0; site < kNumLinearSites; ++site) {
        if (!layer[site].has_value()) continue;
        ranks[kInputOfSite[site]] += layer[site]->b.num_rows();
      }
      most = std::max(most, *std::max_element(ranks.begin(), ranks.end()));
    }
  }
  return static_cast<int>(most);
}

}  // namespace

absl::Status ForwardPass::Run(std::span<SequenceStep> batch,
                              PhaseTimes* times) {
  const ScopedFlushDenormals flush;
  FUCINA_ASSIGN_OR_RETURN(std::unique_ptr<ForwardScratch> scratch,
                          TakeScratch());
  absl::Status status = Check(batch, *scratch);
  if (status.ok()) status = SizeScratch(batch, *scratch);
  if (status.ok()) status = RunSteps(batch, *scratch, times);
  ReturnScratch(std::move(scratch));
  return status;
}

// --- checks -----------------------------------------------------------------

absl::Status ForwardPass::Check(std::span<const SequenceStep> batch,
                                ForwardScratch& scratch) const {
  if (batch.empty()) {
    return absl::InvalidArgumentError("forward: the batch has no steps");
  }
  scratch.states.clear();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    FUCINA_RETURN_IF_ERROR(CheckStep(batch[i], i));
    scratch.states.push_back(batch[i].state);
  }
  std::sort(scratch.states.begin(), scratch.states.end());
  if (std::adjacent_find(scratch.states.begin(), scratch.states.end()) !=
      scratch.states.end()) {
    return absl::InvalidArgumentError(
        "forward: one state occurs twice in the batch");
  }
  const AdapterSet* checked = nullptr;
  for (const SequenceStep& step : batch) {
    if (step.adapter == nullptr || step.adapter == checked) continue;
    FUCINA_RETURN_IF_ERROR(CheckAdapter(*step.adapter));
    checked = step.adapter;
  }
  return absl::OkStatus();
}

absl::Status ForwardPass::CheckStep(const SequenceStep& step,
                                    std::size_t index) const {
  const auto state = dynamic_cast<const RunnerState*>(step.state);
  if (state == nullptr || state->owner() != m_.owner) {
    return absl::InvalidArgumentError(absl::StrCat(
        "forward: step ", index,
        step.state == nullptr ? " has no state"
                              : " has a state that another decoder made"));
  }
  const Tensor& suffix = step.suffix_embeddings;
  if (suffix.rank() != 0 &&
      (suffix.dtype() != DType::kF32 || suffix.rank() != 2 ||
       suffix.row_size() != m_.descriptor.hidden_size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("forward: step ", index, ": suffix_embeddings are ",
                     suffix.DebugString(), "; expected f32 [n, ",
                     m_.descriptor.hidden_size, "]"));
  }
  const std::int64_t room = state->capacity() - state->length();
  const std::int64_t rows =
      static_cast<std::int64_t>(step.tokens.size()) + SuffixRows(step);
  if (rows == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("forward: step ", index, " has no tokens"));
  }
  if (rows > room) {
    return absl::OutOfRangeError(absl::StrCat(
        "forward: step ", index, ": ", rows, " tokens after ", state->length(),
        " do not fit a state of ", state->capacity()));
  }
  for (TokenId token : step.tokens) {
    if (token < 0 || token >= m_.descriptor.vocab_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("forward: step ", index, ": token ", token,
                       " is outside [0, ", m_.descriptor.vocab_size, ")"));
    }
  }
  return absl::OkStatus();
}

absl::Status ForwardPass::CheckAdapter(const AdapterSet& adapter) const {
  const int layers = m_.descriptor.num_layers;
  if (adapter.layers.size() > static_cast<std::size_t>(layers)) {
    return absl::InvalidArgumentError(
        absl::StrCat("adapter: made for ", adapter.layers.size(),
                     " layers, the model has ", layers));
  }
  for (std::size_t layer = 0; layer < adapter.layers.size(); ++layer) {
    for (std::size_t site = 0; site < kNumLinearSites; ++site) {
      const std::optional<LowRank>& pair = adapter.layers[layer][site];
      if (!pair.has_value()) continue;
      const SiteShape& shape = m_.info.sites[site];
      if (shape.in == 0) {
        return absl::UnimplementedError(
            absl::StrCat("adapter: layer ", layer, " changes site '",
                         kSiteNames[site], "', which architecture '",
                         m_.descriptor.architecture, "' does not offer"));
      }
      const Tensor& a = pair->a;
      const Tensor& b = pair->b;
      if (a.rank() != 2 || b.rank() != 2 || a.dtype() != DType::kF32 ||
          b.dtype() != DType::kF32 || a.dim(0) != shape.out ||
          b.dim(1) != shape.in || a.dim(1) != b.dim(0) || a.dim(1) < 1) {
        return absl::InvalidArgumentError(absl::StrCat(
            "adapter: layer ", layer, " site '", kSiteNames[site], "': a is ",
            a.DebugString(), " and b is ", b.DebugString(), "; expected f32 [",
            shape.out, ", rank] and f32 [rank, ", shape.in, "]"));
      }
    }
  }
  return absl::OkStatus();
}

// --- memory -----------------------------------------------------------------

absl::StatusOr<std::unique_ptr<ForwardScratch>> ForwardPass::TakeScratch() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      std::unique_ptr<ForwardScratch> scratch = std::move(free_.back());
      free_.pop_back();
      return scratch;
    }
  }
  return std::make_unique<ForwardScratch>();
}

void ForwardPass::ReturnScratch(std::unique_ptr<ForwardScratch> scratch) {
  // A tap on a long prompt makes it large; the next forward starts small again.
  if (scratch->max_rows > kChunkRows) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back(std::move(scratch));
}

absl::Status ForwardPass::SizeScratch(std::span<const SequenceStep> batch,
                                      ForwardScratch& s) const {
  const Descriptor& d = m_.descriptor;
  int rows = kChunkRows;
  int capacity = 0;
  int end = 0;
  std::int64_t logit_rows = 0;
  for (const SequenceStep& step : batch) {
    // A tap sees each layer once, so its step is not cut.
    if (step.tap != nullptr) rows = std::max(rows, NumRows(step));
    capacity = std::max(capacity, step.state->capacity());
    end = std::max(end, step.state->length() + NumRows(step));
    logit_rows += LogitRowsOf(step);
  }
  if (s.max_rows < rows) {
    FUCINA_ASSIGN_OR_RETURN(
        s.memory,
        Buffer::Allocate(static_cast<std::size_t>(rows) *
                         static_cast<std::size_t>(d.hidden_size) * 4));
    s.x = Tensor(DType::kF32, {rows, d.hidden_size}, s.memory.data());
    s.max_rows = rows;
  }
  if (batch.size() > 1) {
    logit_rows = std::min(logit_rows, kSharedLogitRows);
    if (s.logits_rows < logit_rows) {
      FUCINA_ASSIGN_OR_RETURN(
          s.logits_memory,
          Buffer::Allocate(static_cast<std::size_t>(logit_rows) *
                           static_cast<std::size_t>(d.vocab_size) * 4));
      s.logits_rows = logit_rows;
      s.logits = Tensor(DType::kF32, {logit_rows, d.vocab_size},
                        s.logits_memory.data());
    }
  }
  const int threads = m_.context.pool.num_threads();
  if (m_.fused != nullptr) {
    FUCINA_RETURN_IF_ERROR(m_.fused->rope().Prepare(end));
    FusedScratch::Sizes sizes = {
        .max_rows = rows, .max_rank = MaxRank(batch), .max_capacity = capacity};
    const FusedScratch* held = s.fused.get();
    if (held == nullptr || held->sizes.max_rows < sizes.max_rows ||
        held->sizes.max_rank < sizes.max_rank ||
        held->sizes.max_capacity < sizes.max_capacity) {
      if (held != nullptr) {
        sizes.max_rank = std::max(sizes.max_rank, held->sizes.max_rank);
        sizes.max_capacity =
            std::max(sizes.max_capacity, held->sizes.max_capacity);
      }
      FUCINA_ASSIGN_OR_RETURN(s.fused, FusedScratch::Create(d, sizes, threads));
    }
  } else if (s.reference == nullptr || s.reference->max_rows < rows ||
             s.reference->max_capacity < capacity) {
    s.reference =
        std::make_unique<ReferenceScratch>(d, rows, capacity, threads);
  }
  for (const SequenceStep& step : batch) {
    FUCINA_RETURN_IF_ERROR(
        StateOf(step).ReserveLogits(LogitRowsOf(step), d.vocab_size));
  }
  return absl::OkStatus();
}

// --- the pass ---------------------------------------------------------------

absl::Status ForwardPass::RunSteps(std::span<SequenceStep> batch,
                                   ForwardScratch& s, PhaseTimes* times) const {
  PhaseClock clock(times);
  // The rows of a batch share their adapter.
  s.order.clear();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    s.order.push_back(static_cast<int>(i));
  }
  for (std::size_t i = 0; i < s.order.size();) {
    const AdapterSet* adapter = batch[s.order[i]].adapter;
    for (++i; i < s.order.size() && batch[s.order[i]].adapter == adapter;) ++i;
    // Of the steps behind a group, those that belong to it move up.
    for (std::size_t j = i; j < s.order.size(); ++j) {
      if (batch[s.order[j]].adapter != adapter) continue;
      std::rotate(s.order.begin() + i, s.order.begin() + j,
                  s.order.begin() + j + 1);
      ++i;
    }
  }

  std::size_t next = 0;  // in the order
  int offset = 0;        // rows of that step already done
  while (next < s.order.size()) {
    GatherRows(batch, s, next, offset);
    Embed(batch, s);
    clock.Mark(Phase::kOther);
    RunLayers(batch, s, clock);
    WriteLogits(batch, s);
    clock.Mark(Phase::kFinal);
  }

  for (SequenceStep& step : batch) {
    RunnerState& state = StateOf(step);
    state.cache().Advance(NumRows(step));
    const std::int64_t rows = LogitRowsOf(step);
    step.logits = rows == 0
                      ? Tensor()
                      : Tensor(DType::kF32, {rows, m_.descriptor.vocab_size},
                               state.logits());
  }
  if (times != nullptr) {
    ++times->num_forwards;
    times->num_layers += m_.descriptor.num_layers;
  }
  return absl::OkStatus();
}

void ForwardPass::GatherRows(std::span<const SequenceStep> batch,
                             ForwardScratch& s, std::size_t& next,
                             int& offset) const {
  RowBatch& rows = s.batch;
  rows.items.clear();
  rows.caches.clear();
  rows.positions.clear();
  rows.wanted.clear();
  s.sources.clear();
  s.logit_rows.clear();
  rows.num_rows = 0;
  rows.adapter = batch[s.order[next]].adapter;
  while (next < s.order.size() && rows.num_rows < kChunkRows) {
    const int index = s.order[next];
    const SequenceStep& step = batch[index];
    if (step.adapter != rows.adapter) break;
    const int left = NumRows(step) - offset;
    int take = std::min(left, kChunkRows - rows.num_rows);
    if (step.tap != nullptr && take < left) {
      if (rows.num_rows > 0) break;  // whole, in a batch of its own
      take = left;
    }
    RunnerState& state = StateOf(step);
    const int position = state.length() + offset;
    int logit_rows = 0;
    if (step.rows == LogitRows::kAll) logit_rows = take;
    if (step.rows == LogitRows::kLast && take == left) logit_rows = 1;
    rows.items.push_back(
        {.position = position, .first_row = rows.num_rows, .num_rows = take});
    rows.caches.push_back(&state.cache());
    const TapRows shown = Watched(step, m_.descriptor.num_layers - 1);
    rows.wanted.push_back(std::max(logit_rows, RowsShown(shown, take)));
    s.logit_rows.push_back(logit_rows);
    s.sources.push_back(
        {.step = index, .offset = offset, .logit_rows = logit_rows});
    for (int r = 0; r < take; ++r) rows.positions.push_back(position + r);
    rows.num_rows += take;
    offset += take;
    if (take == left) {
      ++next;
      offset = 0;
    }
  }
}

void ForwardPass::Embed(std::span<const SequenceStep> batch,
                        ForwardScratch& s) const {
  const Tensor table = GgufFile::View(*m_.tensors.embedding);
  for (std::size_t i = 0; i < s.sources.size(); ++i) {
    const ForwardScratch::Source& source = s.sources[i];
    const ops::AttentionItem& item = s.batch.items[i];
    const SequenceStep& step = batch[source.step];
    const int num_tokens = static_cast<int>(step.tokens.size());
    const int from_tokens =
        std::clamp(num_tokens - source.offset, 0, item.num_rows);
    if (from_tokens > 0) {
      ops::Embedding(m_.context, table,
                     step.tokens.subspan(source.offset, from_tokens),
                     s.x.Slice(item.first_row, from_tokens));
    }
    for (int r = from_tokens; r < item.num_rows; ++r) {
      std::memcpy(
          s.x.mutable_row_f32(item.first_row + r),
          step.suffix_embeddings.row_f32(source.offset + r - num_tokens),
          static_cast<std::size_t>(m_.descriptor.hidden_size) * sizeof(float));
    }
  }
}

void ForwardPass::RunLayers(std::span<const SequenceStep> batch,
                            ForwardScratch& s, PhaseClock& clock) const {
  const int layers = m_.descriptor.num_layers;
  for (int layer = 0; layer < layers; ++layer) {
    const bool watched = std::any_of(s.sources.begin(), s.sources.end(),
                                     [&](const ForwardScratch::Source& source) {
                                       return Watched(batch[source.step],
                                                      layer) != TapRows::kNone;
                                     });
    if (m_.fused != nullptr) {
      m_.fused->RunLayer(layer, watched || layer + 1 == layers, s.batch, s.x,
                         *s.fused, clock);
    } else {
      m_.reference->RunLayer(layer, s.batch, s.x, *s.reference, clock);
    }
    if (!watched) continue;
    for (std::size_t i = 0; i < s.sources.size(); ++i) {
      const SequenceStep& step = batch[s.sources[i].step];
      const ops::AttentionItem& item = s.batch.items[i];
      const int shown = RowsShown(Watched(step, layer), item.num_rows);
      if (shown == 0) continue;
      const int hidden = item.num_rows - shown;
      step.tap->OnLayer(layer, item.position + hidden,
                        s.x.Slice(item.first_row + hidden, shown));
    }
    clock.Mark(Phase::kOther);
  }
}

void ForwardPass::WriteLogits(std::span<const SequenceStep> batch,
                              ForwardScratch& s) const {
  const Tensor kept[] = {s.x};
  s.batch.KeepLast(s.logit_rows, kept);
  const std::int64_t rows = s.batch.num_rows;
  if (rows == 0) return;
  const std::int64_t vocab = m_.descriptor.vocab_size;
  const Tensor x = s.x.Slice(0, rows);
  if (m_.fused != nullptr) {
    m_.fused->Normalize(x, *s.fused);
  } else {
    m_.reference->Normalize(x);
  }
  const auto compute = [&](std::int64_t first, std::int64_t count,
                           const Tensor& out) {
    if (m_.fused != nullptr) {
      m_.fused->Logits(first, count, out, *s.fused);
    } else {
      m_.reference->Logits(x.Slice(first, count), out, *s.reference);
    }
  };
  // Where the rows of an item belong in its state.
  const auto destination = [&](std::size_t item) {
    const ForwardScratch::Source& source = s.sources[item];
    const SequenceStep& step = batch[source.step];
    const std::int64_t row = step.rows == LogitRows::kAll ? source.offset : 0;
    return StateOf(step).logits() + row * vocab;
  };
  if (batch.size() == 1) {
    compute(0, rows, Tensor(DType::kF32, {rows, vocab}, destination(0)));
    return;
  }
  std::size_t item = 0;
  int row_of_item = 0;
  for (std::int64_t first = 0; first < rows; first += s.logits_rows) {
    const std::int64_t count = std::min(s.logits_rows, rows - first);
    compute(first, count, s.logits.Slice(0, count));
    for (std::int64_t r = 0; r < count; ++r) {
      while (row_of_item == s.logit_rows[item]) {
        ++item;
        row_of_item = 0;
      }
      std::memcpy(destination(item) + row_of_item * vocab, s.logits.row_f32(r),
                  static_cast<std::size_t>(vocab) * sizeof(float));
      ++row_of_item;
    }
  }
}

}  // namespace fucina
