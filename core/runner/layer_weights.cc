#include "core/runner/layer_weights.h"

#include <cstddef>
#include <span>

#include "fucina/diag/status_macros.h"
#include "fucina/ops/pack_plan.h"

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

void AddMatrix(const LinearTensor& tensor, ops::PackPlan& plan,
               ops::PackedLinear& packed) {
  const ops::LinearPart part = Part(tensor);
  plan.Pack(std::span(&part, 1), packed);
}

void AddFeedForward(const FeedForwardTensors& t, ops::PackPlan& plan,
                    FeedForwardWeights& w) {
  if (t.gate.weight->dtype == t.up.weight->dtype) {
    plan.PackGated(Part(t.gate), Part(t.up), w.gate_up);
  } else {
    AddMatrix(t.gate, plan, w.gate);
    AddMatrix(t.up, plan, w.up);
  }
  AddMatrix(t.down, plan, w.down);
}

void AddExperts(const ExpertTensors& t, ops::PackPlan& plan,
                ExpertLayerWeights& w) {
  AddMatrix(t.router, plan, w.router);
  const Tensor down = GgufFile::View(*t.down);
  if (t.gate_up != nullptr) {
    plan.PackMergedExperts(GgufFile::View(*t.gate_up), down, w.experts);
  } else {
    plan.PackExperts(GgufFile::View(*t.gate), GgufFile::View(*t.up), down,
                     w.experts);
  }
  for (const ops::ExpertWeights& expert : w.experts.experts()) {
    w.by_number.push_back(&expert);
  }
  if (t.has_shared) {
    w.has_shared = true;
    AddFeedForward(t.shared, plan, w.shared);
  }
}

void AddLayer(const LayerTensors& t, ops::PackPlan& plan, LayerWeights& w) {
  if (t.q.weight->dtype == t.k.weight->dtype &&
      t.q.weight->dtype == t.v.weight->dtype) {
    const ops::LinearPart parts[] = {Part(t.q), Part(t.k), Part(t.v)};
    plan.Pack(parts, w.qkv);
  } else {
    AddMatrix(t.q, plan, w.q);
    AddMatrix(t.k, plan, w.k);
    AddMatrix(t.v, plan, w.v);
  }
  AddMatrix(t.o, plan, w.o);
  if (t.experts.down != nullptr) {
    AddExperts(t.experts, plan, w.experts);
  } else {
    AddFeedForward(t.dense, plan, w.dense);
  }
}

}  // namespace

absl::StatusOr<ModelWeights> PackModel(const GgufFile& file,
                                       const ModelTensors& tensors,
                                       ThreadPool& pool) {
  ModelWeights model;
  // The plan keeps the addresses of the matrices until it has run.
  model.layers.resize(tensors.layers.size());
  ops::PackPlan plan;
  for (std::size_t i = 0; i < tensors.layers.size(); ++i) {
    AddLayer(tensors.layers[i], plan, model.layers[i]);
  }
  AddMatrix(tensors.output, plan, model.output);
  FUCINA_ASSIGN_OR_RETURN(
      model.memory,
      plan.Run(pool, [&file](const void* data, std::size_t size_bytes) {
        file.Release({static_cast<const std::byte*>(data), size_bytes});
      }));
  // The pages that two turns share, and what was mapped ahead of a read.
  for (const GgufTensorInfo& info : file.tensors()) {
    file.Release({info.data, info.size_bytes});
  }
  return model;
}

}  // namespace fucina
