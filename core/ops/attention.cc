#include "fucina/ops/attention.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fucina/diag/check.h"
#include "fucina/kernels/kernels.h"
#include "fucina/parallel/thread_pool.h"
#include "fucina/tensor/buffer.h"

namespace fucina::ops {
namespace {

static_assert(kKvBlockPositions == kAttentionPositions);
static_assert(kKvLanes == kAttentionLanes);

// A few rows of one item with some of the query heads of one KV head: queries
// that go over the same keys and values together.
struct Tile {
  int item = 0;
  int kv_head = 0;
  int first_head = 0;  // within the group of the KV head
  int num_heads = 0;
  int row = 0;  // within the item
  int num_rows = 0;
};

// Either a tile over all it sees (split < 0), or over one split of 512
// positions, with results in slots of the partial store.
struct Task {
  Tile tile = {};
  int split = -1;
  std::int64_t slot = 0;  // of the tile's first query
  std::int64_t cost = 0;
};

// The splits of a tile: num_splits times as many slots as queries.
struct Merge {
  Tile tile = {};
  std::int64_t slot = 0;
};

// Floats of a worker's memory, by part.
struct WorkerLayout {
  std::int64_t queries, out, part_out, weights, wide, stats, total;
};

std::int64_t RoundUp(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

WorkerLayout LayOut(int head_dim, int value_stride) {
  const std::int64_t most = kMaxAttentionQueries;
  WorkerLayout layout;
  std::int64_t at = 0;
  const auto take = [&at](std::int64_t floats) {
    const std::int64_t start = at;
    at += RoundUp(floats, 16);
    return start;
  };
  layout.queries = take(most * head_dim);
  layout.out = take(most * value_stride);
  layout.part_out = take(most * value_stride);
  layout.weights = take(most * kAttentionPositions);
  layout.wide =
      take(static_cast<std::int64_t>(kAttentionPositions) * value_stride);
  layout.stats = take(5 * most);  // max, sum, part max, part sum, visible
  // Workers keep apart by a page, so that no line or neighbour line is shared.
  layout.total = RoundUp(at, 1024);
  return layout;
}

// Running results of some queries.
struct Results {
  float* max = nullptr;
  float* sum = nullptr;
  float* out = nullptr;  // [num_queries][value_stride]

  void Clear(int num_queries, int value_stride) const {
    std::fill_n(max, num_queries, -std::numeric_limits<float>::infinity());
    std::fill_n(sum, num_queries, 0.0f);
    std::fill_n(out, static_cast<std::int64_t>(num_queries) * value_stride,
                0.0f);
  }
};

}  // namespace

struct AttentionScratch::Impl {
  Sizes sizes;
  int value_stride = 0;
  WorkerLayout layout = {};
  Buffer workers;  // [num_threads][layout.total] f32
  // Results of splits, by slot: [num_slots][value_stride], [num_slots] twice.
  std::int64_t num_slots = 0;
  Buffer part_out, part_stats;
  std::vector<Task> tasks;
  std::vector<Merge> merges;

  Results Part(std::int64_t slot) const {
    float* const stats = part_stats.as<float>();
    return {stats + slot, stats + num_slots + slot,
            part_out.as<float>() + slot * value_stride};
  }
};

AttentionScratch::AttentionScratch() = default;
AttentionScratch::AttentionScratch(AttentionScratch&&) noexcept = default;
AttentionScratch& AttentionScratch::operator=(AttentionScratch&&) noexcept =
    default;
AttentionScratch::~AttentionScratch() = default;

std::size_t AttentionScratch::size_bytes() const {
  if (impl_ == nullptr) return 0;
  return impl_->workers.size_bytes() + impl_->part_out.size_bytes() +
         impl_->part_stats.size_bytes();
}

absl::StatusOr<AttentionScratch> AttentionScratch::Create(const Sizes& sizes) {
  FUCINA_CHECK(sizes.num_threads > 0 && sizes.head_dim > 0 &&
               sizes.num_kv_heads > 0 && sizes.num_heads > 0 &&
               sizes.num_heads % sizes.num_kv_heads == 0)
      << sizes.num_threads << " threads, " << sizes.num_heads << " heads, "
      << sizes.num_kv_heads << " kv heads of " << sizes.head_dim;
  auto impl = std::make_unique<Impl>();
  impl->sizes = sizes;
  impl->value_stride = (sizes.head_dim + 15) / 16 * 16;
  impl->layout = LayOut(sizes.head_dim, impl->value_stride);

  // Room for the splits of eight rows per item, as in verifying a draft, and of
  // 64 rows at most: beyond, there is work enough for all threads without.
  const std::int64_t num_splits =
      std::max(1, sizes.capacity) / kKvRunPositions + 1;
  const std::int64_t rows = std::min<std::int64_t>(
      64, std::int64_t{8} * std::max(1, sizes.num_items));
  impl->num_slots = RoundUp(num_splits * rows * sizes.num_heads, 16);

  const std::size_t worker_bytes =
      sizeof(float) * impl->layout.total * sizes.num_threads;
  const std::size_t out_bytes =
      sizeof(float) * impl->num_slots * impl->value_stride;
  const std::size_t stats_bytes = sizeof(float) * impl->num_slots * 2;
  absl::StatusOr<Buffer> workers = Buffer::Allocate(worker_bytes);
  absl::StatusOr<Buffer> out = Buffer::Allocate(out_bytes);
  absl::StatusOr<Buffer> stats = Buffer::Allocate(stats_bytes);
  if (!workers.ok() || !out.ok() || !stats.ok()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", worker_bytes + out_bytes + stats_bytes,
                     " bytes for attention over ", sizes.capacity, " tokens"));
  }
  impl->workers = *std::move(workers);
  impl->part_out = *std::move(out);
  impl->part_stats = *std::move(stats);
  impl->tasks.reserve(static_cast<std::size_t>(sizes.num_kv_heads) *
                      (num_splits + 16) * std::max(1, sizes.num_items));
  impl->merges.reserve(static_cast<std::size_t>(sizes.num_kv_heads) *
                       std::max(1, sizes.num_items));

  AttentionScratch scratch;
  scratch.impl_ = std::move(impl);
  return scratch;
}

namespace {

using ScratchImpl = AttentionScratch::Impl;

// One call of Attention.
class Pass {
 public:
  Pass(const Context& context, const Tensor& q,
       std::span<const AttentionItem> items, float scale, ScratchImpl& scratch,
       const Tensor& out)
      : context_(context),
        kernels_(context.kernels.rows),
        q_(q),
        items_(items),
        scale_(scale),
        scratch_(scratch),
        out_(out),
        head_dim_(scratch.sizes.head_dim),
        value_stride_(scratch.value_stride),
        group_(scratch.sizes.num_heads / scratch.sizes.num_kv_heads) {}

  void Run() {
    Plan();
    context_.pool.ParallelFor(
        static_cast<std::int64_t>(scratch_.tasks.size()), 1,
        [this](std::int64_t begin, std::int64_t end, int worker) {
          for (std::int64_t i = begin; i < end; ++i) {
            RunTask(i, worker);
          }
        });
    // Merging one slot takes some tens of nanoseconds: a few hundred do not pay
    // for a hand-over.
    const auto num_merges = static_cast<std::int64_t>(scratch_.merges.size());
    context_.pool.ParallelFor(
        num_merges, slots_used_ < 256 ? num_merges + 1 : 1,
        [this](std::int64_t begin, std::int64_t end, int /*worker*/) {
          for (std::int64_t i = begin; i < end; ++i) {
            RunMerge(scratch_.merges[i]);
          }
        });
  }

 private:
  // Cuts the batch into tasks, longest first. Which cut is taken depends on the
  // batch and the number of threads; what is computed does not.
  void Plan() {
    const int num_kv_heads = scratch_.sizes.num_kv_heads;
    const int heads = std::min(group_, kMaxAttentionQueries);
    scratch_.tasks.clear();
    scratch_.merges.clear();
    std::int64_t num_rows = 0;
    for (const AttentionItem& item : items_) num_rows += item.num_rows;
    // Wide tiles convert less, narrow ones share out better: aim at some tasks
    // per thread.
    const std::int64_t share = num_rows * num_kv_heads /
                               (std::int64_t{6} * context_.pool.num_threads());
    const int widest = kMaxAttentionQueries / heads;
    const int narrowest = std::min(widest, (2 * kAttentionTile) / heads + 1);
    const int tile_rows =
        static_cast<int>(std::clamp<std::int64_t>(share, narrowest, widest));

    std::int64_t slot = 0;
    for (int i = 0; i < static_cast<int>(items_.size()); ++i) {
      const AttentionItem& item = items_[i];
      if (item.num_rows == 0) continue;
      const int last = item.position + item.num_rows - 1;
      const int num_splits = last / kKvRunPositions + 1;
      // Few rows stay together when heads and splits are work enough: every
      // further tile reads all keys and values again.
      int tiles = 1;
      if (item.num_rows > widest ||
          num_splits * num_kv_heads < 2 * context_.pool.num_threads()) {
        tiles = (item.num_rows + tile_rows - 1) / tile_rows;
      }
      int rows = (item.num_rows + tiles - 1) / tiles;
      // Register tiles filled: a multiple of 6 queries.
      if (tiles > 1 && kAttentionTile % heads == 0) {
        const int full = kAttentionTile / heads;
        rows = std::min(widest / full * full, (rows + full - 1) / full * full);
      }
      for (int kv_head = 0; kv_head < num_kv_heads; ++kv_head) {
        for (int head = 0; head < group_; head += heads) {
          for (int row = 0; row < item.num_rows; row += rows) {
            const Tile tile = {.item = i,
                               .kv_head = kv_head,
                               .first_head = head,
                               .num_heads = std::min(heads, group_ - head),
                               .row = row,
                               .num_rows = std::min(rows, item.num_rows - row)};
            slot = AddTile(tile, tiles == 1 ? num_splits : 1, slot);
          }
        }
      }
    }
    std::sort(scratch_.tasks.begin(), scratch_.tasks.end(),
              [](const Task& a, const Task& b) { return a.cost > b.cost; });
    slots_used_ = slot;
  }

  // As one task, or as one per split when there is more than one and room for
  // their results. Returns the next free slot.
  std::int64_t AddTile(const Tile& tile, int num_splits, std::int64_t slot) {
    const int queries = tile.num_rows * tile.num_heads;
    const int seen = items_[tile.item].position + tile.row + tile.num_rows;
    const std::int64_t slots = static_cast<std::int64_t>(num_splits) * queries;
    if (num_splits < 2 || slot + slots > scratch_.num_slots) {
      scratch_.tasks.push_back(
          {.tile = tile, .cost = static_cast<std::int64_t>(seen) * queries});
      return slot;
    }
    scratch_.merges.push_back({.tile = tile, .slot = slot});
    for (int split = 0; split < num_splits; ++split) {
      const int length =
          std::min(kKvRunPositions, seen - split * kKvRunPositions);
      scratch_.tasks.push_back(
          {.tile = tile,
           .split = split,
           .slot = slot + static_cast<std::int64_t>(split) * queries,
           .cost = static_cast<std::int64_t>(length) * queries});
    }
    return slot + slots;
  }

  float* Worker(int worker, std::int64_t part) const {
    return scratch_.workers.as<float>() + worker * scratch_.layout.total + part;
  }

  // Where the keys of task `i` begin; null past the last task.
  const std::byte* KeysOf(std::int64_t i) const {
    if (i >= static_cast<std::int64_t>(scratch_.tasks.size())) return nullptr;
    const Task& task = scratch_.tasks[i];
    return items_[task.tile.item].kv.keys(std::max(0, task.split),
                                          task.tile.kv_head);
  }

  // Queries of a tile are ordered by row, then by head.
  void RunTask(std::int64_t i, int worker) const {
    const Task& task = scratch_.tasks[i];
    const Tile& tile = task.tile;
    // Threads that keep step claim in turn; a wrong guess costs a little time.
    const std::byte* const next_task_keys =
        KeysOf(i + context_.pool.num_threads());
    const AttentionItem& item = items_[tile.item];
    const int num_queries = tile.num_rows * tile.num_heads;
    float* const queries = Worker(worker, scratch_.layout.queries);
    kernels_.scale_rows(
        q_.row_f32(item.first_row + tile.row) + HeadOffset(tile),
        q_.row_stride_bytes() / sizeof(float), scale_, tile.num_rows,
        static_cast<std::int64_t>(tile.num_heads) * head_dim_, queries);
    if (task.split >= 0) {
      const Results part = scratch_.Part(task.slot);
      part.Clear(num_queries, value_stride_);
      RunSplit(tile, task.split, worker, next_task_keys, part);
      return;
    }

    float* const stats = Worker(worker, scratch_.layout.stats);
    const Results all = {stats, stats + kMaxAttentionQueries,
                         Worker(worker, scratch_.layout.out)};
    const Results part = {stats + 2 * kMaxAttentionQueries,
                          stats + 3 * kMaxAttentionQueries,
                          Worker(worker, scratch_.layout.part_out)};
    all.Clear(num_queries, value_stride_);
    const int last = item.position + tile.row + tile.num_rows - 1;
    const int last_split = last / kKvRunPositions;
    const auto keys_after = [&](int split) {
      return split == last_split ? next_task_keys
                                 : item.kv.keys(split + 1, tile.kv_head);
    };
    RunSplit(tile, 0, worker, keys_after(0), all);
    for (int split = 1; split <= last_split; ++split) {
      part.Clear(num_queries, value_stride_);
      RunSplit(tile, split, worker, keys_after(split), part);
      for (int query = 0; query < num_queries; ++query) {
        MergeQuery(tile, query, split, part, query, all);
      }
    }
    Finish(tile, all);
  }

  // The blocks of one split, in order. `next_keys` are probably wanted after.
  void RunSplit(const Tile& tile, int split, int worker,
                const std::byte* next_keys, const Results& results) const {
    const AttentionItem& item = items_[tile.item];
    const KvShape& shape = item.kv.shape;
    const bool half = shape.dtype == DType::kF16;
    const auto attend = half ? kernels_.attend_f16 : kernels_.attend_f32;
    const int num_queries = tile.num_rows * tile.num_heads;
    const int position = item.position + tile.row;
    const int first = split * kKvRunPositions;
    const int end = std::min(first + kKvRunPositions, position + tile.num_rows);
    const std::byte* const keys = item.kv.keys(split, tile.kv_head);
    const std::byte* const values = item.kv.values(split, tile.kv_head);
    auto* const visible = reinterpret_cast<std::int32_t*>(
        Worker(worker, scratch_.layout.stats) + 4 * kMaxAttentionQueries);
    AttentionBlock block;
    block.head_dim = head_dim_;
    block.value_stride = value_stride_;
    block.num_queries = num_queries;
    block.queries = Worker(worker, scratch_.layout.queries);
    block.visible = visible;
    block.max = results.max;
    block.sum = results.sum;
    block.out = results.out;
    block.weights = Worker(worker, scratch_.layout.weights);
    block.wide = Worker(worker, scratch_.layout.wide);
    for (int start = first; start < end; start += kKvBlockPositions) {
      const std::size_t offset = shape.element_bytes() * (start - first);
      block.keys = keys + offset * head_dim_;
      block.values = values + offset * value_stride_;
      const bool last = start + kKvBlockPositions >= end;
      block.next_keys =
          last ? next_keys
               : static_cast<const std::byte*>(block.keys) +
                     shape.element_bytes() * kKvBlockPositions * head_dim_;
      for (int query = 0; query < num_queries; ++query) {
        const int own = position + query / tile.num_heads;
        visible[query] = std::clamp(own + 1 - start, 0, kKvBlockPositions);
      }
      attend(block);
    }
  }

  void RunMerge(const Merge& merge) const {
    const Tile& tile = merge.tile;
    const AttentionItem& item = items_[tile.item];
    const int num_queries = tile.num_rows * tile.num_heads;
    const Results all = scratch_.Part(merge.slot);
    const int last = item.position + tile.row + tile.num_rows - 1;
    for (int query = 0; query < num_queries; ++query) {
      for (int split = 1; split * kKvRunPositions <= last; ++split) {
        MergeQuery(tile, query, split, all, split * num_queries + query, all);
      }
    }
    Finish(tile, all);
  }

  // Adds result `from` of `part` to result `query` of `all`, unless the query
  // saw nothing of the split: then not even a zero is added.
  void MergeQuery(const Tile& tile, int query, int split, const Results& part,
                  int from, const Results& all) const {
    const int own =
        items_[tile.item].position + tile.row + query / tile.num_heads;
    if (own < split * kKvRunPositions) return;
    kernels_.attention_merge(
        part.max[from], part.sum[from],
        part.out + static_cast<std::int64_t>(from) * value_stride_, head_dim_,
        all.max + query, all.sum + query,
        all.out + static_cast<std::int64_t>(query) * value_stride_);
  }

  void Finish(const Tile& tile, const Results& all) const {
    const int row = items_[tile.item].first_row + tile.row;
    kernels_.attention_finish(all.out, value_stride_, all.sum, tile.num_rows,
                              tile.num_heads, head_dim_,
                              out_.mutable_row_f32(row) + HeadOffset(tile),
                              out_.row_stride_bytes() / sizeof(float));
  }

  // Of the tile's first head within a row of q or out.
  std::int64_t HeadOffset(const Tile& tile) const {
    return (static_cast<std::int64_t>(tile.kv_head) * group_ +
            tile.first_head) *
           head_dim_;
  }

  const Context& context_;
  const RowKernels& kernels_;
  const Tensor& q_;
  const std::span<const AttentionItem> items_;
  const float scale_;
  ScratchImpl& scratch_;
  const Tensor& out_;
  const int head_dim_;
  const int value_stride_;
  const int group_;  // query heads per KV head
  std::int64_t slots_used_ = 0;
};

}  // namespace

void Attention(const Context& context, const Tensor& q,
               std::span<const AttentionItem> items, float scale,
               AttentionScratch& scratch, Tensor out) {
  FUCINA_CHECK(scratch.impl() != nullptr) << "scratch was not created";
  ScratchImpl& impl = *scratch.impl();
  const AttentionScratch::Sizes& sizes = impl.sizes;
  FUCINA_CHECK_LE(context.pool.num_threads(), sizes.num_threads);
  const std::int64_t row_size =
      static_cast<std::int64_t>(sizes.num_heads) * sizes.head_dim;
  FUCINA_CHECK_EQ(q.row_size(), row_size);
  FUCINA_CHECK_EQ(out.row_size(), row_size);
  for (const AttentionItem& item : items) {
    const KvShape& shape = item.kv.shape;
    FUCINA_CHECK_EQ(shape.head_dim, sizes.head_dim);
    FUCINA_CHECK_EQ(shape.num_kv_heads, sizes.num_kv_heads);
    FUCINA_CHECK(item.position >= 0 && item.num_rows >= 0 &&
                 item.num_rows <= shape.capacity - item.position)
        << item.num_rows << " rows at " << item.position << " of "
        << shape.capacity;
    FUCINA_CHECK(item.first_row >= 0 &&
                 item.first_row + item.num_rows <= q.num_rows() &&
                 item.first_row + item.num_rows <= out.num_rows());
  }
  Pass(context, q, items, scale, impl, out).Run();
}

}  // namespace fucina::ops
