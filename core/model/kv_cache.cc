#include "fucina/model/kv_cache.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "fucina/diag/check.h"

namespace fucina {
namespace {

// Far above any model; sizes of a head stay small numbers.
constexpr int kMaxHeadDim = 1 << 16;

ops::KvShape ShapeOf(const KvGeometry& geometry, int capacity) {
  return {.dtype = geometry.dtype,
          .num_kv_heads = geometry.num_kv_heads,
          .head_dim = geometry.head_dim,
          .capacity = capacity};
}

// `position` within its run.
struct Place {
  int run = 0;
  int slot = 0;
};

Place Find(const ops::KvShape& shape, int position) {
  const int run_positions = shape.run_positions();
  return {position / run_positions, position % run_positions};
}

// Copies one head's keys and values of one position.
template <typename T>
void CopyPosition(const ops::KvRows& from, const ops::KvRows& to, int head,
                  int position) {
  const int dim = from.shape.head_dim;
  const auto key = [&](const ops::KvRows& rows) {
    const Place place = Find(rows.shape, position);
    return reinterpret_cast<T*>(rows.keys(place.run, head)) +
           static_cast<std::int64_t>(place.slot / ops::kKvLanes) *
               ops::kKvLanes * dim +
           place.slot % ops::kKvLanes;
  };
  const auto value = [&](const ops::KvRows& rows) {
    const Place place = Find(rows.shape, position);
    return reinterpret_cast<T*>(rows.values(place.run, head)) +
           static_cast<std::int64_t>(place.slot) * rows.shape.value_stride();
  };
  const T* const key_from = key(from);
  T* const key_to = key(to);
  for (std::int64_t c = 0; c < dim; ++c) {
    key_to[c * ops::kKvLanes] = key_from[c * ops::kKvLanes];
  }
  std::memcpy(value(to), value(from), sizeof(T) * dim);
}

}  // namespace

absl::StatusOr<std::unique_ptr<KvCache>> KvCache::Create(
    const KvGeometry& geometry, int capacity) {
  const auto invalid = [](absl::string_view what, int value) {
    return absl::InvalidArgumentError(
        absl::StrCat("kv cache: ", what, " must be positive, found ", value));
  };
  if (capacity <= 0) return invalid("the number of tokens", capacity);
  if (geometry.num_layers <= 0) {
    return invalid("num_layers", geometry.num_layers);
  }
  if (geometry.num_kv_heads <= 0) {
    return invalid("num_kv_heads", geometry.num_kv_heads);
  }
  if (geometry.head_dim <= 0) return invalid("head_dim", geometry.head_dim);
  if (geometry.head_dim > kMaxHeadDim) {
    return absl::InvalidArgumentError(
        absl::StrCat("kv cache: head_dim must be at most ", kMaxHeadDim,
                     ", found ", geometry.head_dim));
  }
  if (geometry.dtype != DType::kF16 && geometry.dtype != DType::kF32) {
    return absl::InvalidArgumentError(absl::StrCat(
        "kv cache: expected type f16 or f32, found ", Name(geometry.dtype)));
  }
  const ops::KvShape shape = ShapeOf(geometry, capacity);
  // Four factors of up to 31 bits each: a wrong product must not wrap around.
  const long double wanted = static_cast<long double>(shape.element_bytes()) *
                             shape.num_runs() * shape.run_positions() *
                             geometry.num_layers * geometry.num_kv_heads * 2 *
                             geometry.head_dim;
  const auto exhausted = [&] {
    return absl::ResourceExhaustedError(absl::StrCat(
        "kv cache: cannot reserve ", absl::StrFormat("%.0Lf", wanted),
        " bytes for ", capacity, " tokens; ask for a smaller context"));
  };
  // The rounding of value rows at most multiplies it by 16.
  if (wanted > 0x1p58L) return exhausted();
  const std::size_t bytes =
      shape.run_bytes() * shape.num_runs() * geometry.num_layers;
  absl::StatusOr<Buffer> buffer = Buffer::Allocate(bytes);
  if (!buffer.ok()) return exhausted();
  return std::unique_ptr<KvCache>(
      new KvCache(geometry, capacity, *std::move(buffer)));
}

KvCache::KvCache(const KvGeometry& geometry, int capacity, Buffer buffer)
    : geometry_(geometry), capacity_(capacity), buffer_(std::move(buffer)) {}

KvCache::~KvCache() = default;

absl::Status KvCache::Truncate(int length) {
  if (length < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot truncate to ", length, " tokens: it must not be negative"));
  }
  length_ = std::min(length_, length);
  return absl::OkStatus();
}

ops::KvRows KvCache::layer(int layer) const {
  FUCINA_CHECK(layer >= 0 && layer < geometry_.num_layers)
      << "layer " << layer << " of " << geometry_.num_layers;
  ops::KvRows rows;
  rows.shape = ShapeOf(geometry_, capacity_);
  const std::size_t layer_bytes = rows.shape.run_bytes();
  rows.data = buffer_.data() + layer_bytes * layer;
  rows.run_stride_bytes = layer_bytes * geometry_.num_layers;
  rows.saturated = &saturated_;
  return rows;
}

void KvCache::Advance(int num_tokens) {
  FUCINA_CHECK(num_tokens >= 0 && num_tokens <= capacity_ - length_)
      << num_tokens << " tokens after " << length_ << " of " << capacity_;
  length_ += num_tokens;
}

absl::Status KvCache::CopyRows(const KvCache& source, int end) {
  if (geometry_ != source.geometry_) {
    return absl::InvalidArgumentError(
        "kv cache: cannot copy from a cache of another geometry");
  }
  if (end > source.length_ || end > capacity_) {
    return absl::OutOfRangeError(absl::StrCat(
        "kv cache: cannot copy ", end, " tokens: the source holds ",
        source.length_, ", here is room for ", capacity_));
  }
  for (int i = 0; i < geometry_.num_layers; ++i) {
    const ops::KvRows from = source.layer(i);
    const ops::KvRows to = layer(i);
    for (int head = 0; head < geometry_.num_kv_heads; ++head) {
      for (int position = length_; position < end; ++position) {
        if (geometry_.dtype == DType::kF16) {
          CopyPosition<std::uint16_t>(from, to, head, position);
        } else {
          CopyPosition<float>(from, to, head, position);
        }
      }
    }
  }
  length_ = std::max(length_, end);
  return absl::OkStatus();
}

std::int64_t KvCache::bytes_per_token() const {
  const ops::KvShape shape = ShapeOf(geometry_, capacity_);
  return static_cast<std::int64_t>(shape.element_bytes()) *
         (shape.head_dim + shape.value_stride()) * geometry_.num_kv_heads *
         geometry_.num_layers;
}

}  // namespace fucina
