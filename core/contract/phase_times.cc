#include "fucina/contract/phase_times.h"

namespace fucina {

PhaseReporter::~PhaseReporter() = default;

absl::string_view Name(Phase phase) {
  switch (phase) {
    case Phase::kAttnPrep:
      return "attn_prep";
    case Phase::kQkv:
      return "qkv";
    case Phase::kQkNormRope:
      return "qk_norm_rope";
    case Phase::kAttention:
      return "attention";
    case Phase::kAttnOut:
      return "attn_out";
    case Phase::kAttnResidual:
      return "attn_residual";
    case Phase::kFfnPrep:
      return "ffn_prep";
    case Phase::kRouter:
      return "router";
    case Phase::kGateUp:
      return "gate_up";
    case Phase::kSwiglu:
      return "swiglu";
    case Phase::kDown:
      return "down";
    case Phase::kFfnResidual:
      return "ffn_residual";
    case Phase::kFinal:
      return "final";
    case Phase::kOther:
      return "other";
  }
  return "other";
}

}  // namespace fucina
