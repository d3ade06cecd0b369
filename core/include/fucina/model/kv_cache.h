#ifndef FUCINA_MODEL_KV_CACHE_H_
#define FUCINA_MODEL_KV_CACHE_H_

// The stock decode state: keys and values of every layer, by position.
//
// A forward takes each layer's rows, appends at positions [length, length + n)
// and calls Advance once when all layers are done; a forward that fails half
// way leaves the length, and so everything anyone can see, as it was. Rows at
// or past the length are never read.
//
// A decoder that keeps more per sequence (scratch, logits) holds a KvCache in
// its own state and forwards the four methods.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fucina/contract/decoder.h"
#include "fucina/export.h"
#include "fucina/ops/kv_rows.h"
#include "fucina/tensor/buffer.h"
#include "fucina/tensor/dtype.h"

namespace fucina {

struct KvGeometry {
  int num_layers = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  DType dtype = DType::kF16;  // kF16, or kF32 for the oracle

  bool operator==(const KvGeometry&) const = default;
};

class FUCINA_API KvCache final : public DecodeState {
 public:
  // Room for `capacity` tokens, none held. Memory is reserved at once and
  // committed as it fills. InvalidArgument for a capacity or a dimension that
  // is not positive, or for another type; ResourceExhausted, naming the bytes,
  // when memory lacks.
  static absl::StatusOr<std::unique_ptr<KvCache>> Create(
      const KvGeometry& geometry, int capacity);
  ~KvCache() override;

  int length() const override { return length_; }
  int capacity() const override { return capacity_; }
  absl::Status Truncate(int length) override;

  const KvGeometry& geometry() const { return geometry_; }

  // The rows of one layer, for ops::AppendKv and ops::Attention. Valid as long
  // as the cache. REQUIRES: 0 <= layer < num_layers.
  ops::KvRows layer(int layer) const;

  // Counts the tokens that every layer has appended.
  // REQUIRES: length() + num_tokens <= capacity().
  void Advance(int num_tokens);

  // Takes over tokens [length(), end) of `source`, which stays as it is: a
  // shared prefix is computed once. InvalidArgument when geometries differ,
  // OutOfRange when `end` exceeds source.length() or capacity().
  absl::Status CopyRows(const KvCache& source, int end);

  // Bytes of keys and values per token, all layers.
  std::int64_t bytes_per_token() const;
  // Bytes reserved.
  std::size_t bytes() const { return buffer_.size_bytes(); }
  // Values clipped to the range of f16 since creation: not zero means that the
  // model needs f32 storage.
  std::int64_t saturated_values() const { return saturated_; }

 private:
  KvCache(const KvGeometry& geometry, int capacity, Buffer buffer);

  KvGeometry geometry_;
  int capacity_ = 0;
  int length_ = 0;
  Buffer buffer_;  // [num_runs][num_layers] runs as in ops/kv_rows.h
  mutable std::atomic<std::int64_t> saturated_ = 0;
};

}  // namespace fucina

#endif  // FUCINA_MODEL_KV_CACHE_H_
