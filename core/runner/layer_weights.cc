#include "core/runner/layer_weights.h"

#include <cstring>
#include <utility>

#include "fucina/diag/status_macros.h"
#include "fucina/tensor/buffer.h"

namespace fucina {
namespace {

ops::LinearPart Part(const LinearTensor& tensor) {
  ops::LinearPart part;
  part.weight = GgufFile::View(*tensor.weight);
  if (!tensor.bias.empty()) {
    part.bias =
        Tensor(DType::kF32, {static_cast<std::int64_t>(tensor.bias.size())},
               static_cast<const void*>(tensor.bias.data()));
  }
  return part;
}

absl::StatusOr<FeedForwardWeights> PackFeedForward(const GgufFile& file,
                                                   const FeedForwardTensors& t,
                                                   ThreadPool& pool) {
  FeedForwardWeights w;
  if (t.gate.weight->dtype == t.up.weight->dtype) {
    FUCINA_ASSIGN_OR_RETURN(w.gate_up, ops::PackedLinear::PackGated(
                                           Part(t.gate), Part(t.up), pool));
    file.Release(*t.gate.weight);
    file.Release(*t.up.weight);
  } else {
    FUCINA_ASSIGN_OR_RETURN(w.gate, PackMatrix(file, t.gate, pool));
    FUCINA_ASSIGN_OR_RETURN(w.up, PackMatrix(file, t.up, pool));
  }
  FUCINA_ASSIGN_OR_RETURN(w.down, PackMatrix(file, t.down, pool));
  return w;
}

// Copies of the gate and the up half of every expert, contiguous.
struct SplitStacks {
  Buffer memory;
  Tensor gate, up;  // [experts, width, hidden]
};

absl::StatusOr<SplitStacks> Split(const GgufTensorInfo& gate_up) {
  const Tensor both = GgufFile::View(gate_up);  // [experts, 2 width, hidden]
  const std::int64_t experts = both.dim(0);
  const std::int64_t width = both.dim(1) / 2;
  const std::size_t half_bytes =
      static_cast<std::size_t>(width * RowBytes(both.dtype(), both.row_size()));
  const std::size_t stack_bytes =
      half_bytes * static_cast<std::size_t>(experts);
  SplitStacks split;
  FUCINA_ASSIGN_OR_RETURN(split.memory, Buffer::Allocate(2 * stack_bytes));
  std::byte* gate = split.memory.data();
  std::byte* up = gate + stack_bytes;
  const std::byte* from = gate_up.data;
  for (std::int64_t e = 0; e < experts; ++e) {
    std::memcpy(gate + static_cast<std::size_t>(e) * half_bytes, from,
                half_bytes);
    std::memcpy(up + static_cast<std::size_t>(e) * half_bytes,
                from + half_bytes, half_bytes);
    from += 2 * half_bytes;
  }
  split.gate = Tensor(both.dtype(), {experts, width, both.row_size()}, gate);
  split.up = Tensor(both.dtype(), {experts, width, both.row_size()}, up);
  return split;
}

absl::StatusOr<ExpertLayerWeights> PackExperts(const GgufFile& file,
                                               const ExpertTensors& t,
                                               ThreadPool& pool) {
  ExpertLayerWeights w;
  FUCINA_ASSIGN_OR_RETURN(w.router, PackMatrix(file, t.router, pool));
  const Tensor down = GgufFile::View(*t.down);
  if (t.gate_up != nullptr) {
    FUCINA_ASSIGN_OR_RETURN(SplitStacks split, Split(*t.gate_up));
    FUCINA_ASSIGN_OR_RETURN(
        w.experts, ops::PackedExperts::Pack(split.gate, split.up, down, pool));
    file.Release(*t.gate_up);
  } else {
    FUCINA_ASSIGN_OR_RETURN(
        w.experts, ops::PackedExperts::Pack(GgufFile::View(*t.gate),
                                            GgufFile::View(*t.up), down, pool));
    file.Release(*t.gate);
    file.Release(*t.up);
  }
  file.Release(*t.down);
  if (t.has_shared) {
    w.has_shared = true;
    FUCINA_ASSIGN_OR_RETURN(w.shared, PackFeedForward(file, t.shared, pool));
  }
  return w;
}

std::int64_t Bytes(const FeedForwardWeights& w) {
  return static_cast<std::int64_t>(w.gate_up.size_bytes() +
                                   w.gate.size_bytes() + w.up.size_bytes() +
                                   w.down.size_bytes());
}

}  // namespace

std::int64_t LayerWeights::size_bytes() const {
  return static_cast<std::int64_t>(
             qkv.size_bytes() + q.size_bytes() + k.size_bytes() +
             v.size_bytes() + o.size_bytes() + experts.router.size_bytes() +
             experts.experts.size_bytes()) +
         Bytes(dense) + Bytes(experts.shared);
}

absl::StatusOr<ops::PackedLinear> PackMatrix(const GgufFile& file,
                                             const LinearTensor& tensor,
                                             ThreadPool& pool) {
  const ops::LinearPart parts[] = {Part(tensor)};
  FUCINA_ASSIGN_OR_RETURN(ops::PackedLinear packed,
                          ops::PackedLinear::Pack(parts, pool));
  file.Release(*tensor.weight);
  return packed;
}

absl::StatusOr<LayerWeights> PackLayer(const GgufFile& file,
                                       const LayerTensors& t,
                                       ThreadPool& pool) {
  LayerWeights w;
  if (t.q.weight->dtype == t.k.weight->dtype &&
      t.q.weight->dtype == t.v.weight->dtype) {
    const ops::LinearPart parts[] = {Part(t.q), Part(t.k), Part(t.v)};
    FUCINA_ASSIGN_OR_RETURN(w.qkv, ops::PackedLinear::Pack(parts, pool));
    file.Release(*t.q.weight);
    file.Release(*t.k.weight);
    file.Release(*t.v.weight);
  } else {
    FUCINA_ASSIGN_OR_RETURN(w.q, PackMatrix(file, t.q, pool));
    FUCINA_ASSIGN_OR_RETURN(w.k, PackMatrix(file, t.k, pool));
    FUCINA_ASSIGN_OR_RETURN(w.v, PackMatrix(file, t.v, pool));
  }
  FUCINA_ASSIGN_OR_RETURN(w.o, PackMatrix(file, t.o, pool));
  if (t.experts.down != nullptr) {
    FUCINA_ASSIGN_OR_RETURN(w.experts, PackExperts(file, t.experts, pool));
    for (const ops::ExpertWeights& expert : w.experts.experts.experts()) {
      w.experts.by_number.push_back(&expert);
    }
  } else {
    FUCINA_ASSIGN_OR_RETURN(w.dense, PackFeedForward(file, t.dense, pool));
  }
  return w;
}

}  // namespace fucina
