#ifndef FUCINA_OPS_ROUTING_H_
#define FUCINA_OPS_ROUTING_H_

// Which experts a row goes to, and with which weight.

#include <cstdint>
#include <span>

#include "fucina/export.h"
#include "fucina/tensor/tensor.h"

namespace fucina::ops {

enum class RoutingGate {
  kSoftmax,  // probabilities over all experts
  kSigmoid,  // each expert by itself
};

struct RoutingRule {
  RoutingGate gate = RoutingGate::kSoftmax;
  int num_experts = 0;
  int num_experts_used = 0;
  // Divide the chosen weights by their sum (no less than 2^-14).
  bool normalize = true;
  float scale = 1.0F;
  // Below 1: keep the shortest prefix of slots, by descending weight, that
  // holds this share of the weight; what is dropped points at the first expert
  // with weight 0. 1 skips the rule entirely.
  float top_p = 1.0F;
};

// Chooses experts for every row. Ties go to the lower index; slots are in
// descending order of the value chosen by.
//
// logits   [rows, num_experts] f32, the router's output
// bias     [num_experts], added for the choice only; empty for none
// experts  out, [rows * num_experts_used]
// weights  out, [rows * num_experts_used]
//
// A row with a NaN keeps valid expert numbers and gets NaN weights.
// REQUIRES: 1 <= num_experts_used <= num_experts <= 4096; num_experts_used <=
// 64.
FUCINA_API void Route(const RoutingRule& rule, const Tensor& logits,
                      std::span<const float> bias,
                      std::span<std::int32_t> experts,
                      std::span<float> weights);

}  // namespace fucina::ops

#endif  // FUCINA_OPS_ROUTING_H_
