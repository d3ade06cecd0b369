#ifndef FUCINA_TESTS_CORE_RUNNER_FAMILIES_H_
#define FUCINA_TESTS_CORE_RUNNER_FAMILIES_H_

// The rules of five architectures, as a family plugin would state them: what a
// descriptor must be able to say.

#include "fucina/diag/check.h"
#include "fucina/runner/descriptor.h"

namespace fucina::testing {

inline constexpr FamilyRules kQwen3 = {.architecture = "qwen3",
                                       .qk_norm = Presence::kAlways};

inline constexpr FamilyRules kQwen3Moe = {.architecture = "qwen3moe",
                                          .qk_norm = Presence::kAlways,
                                          .feed_forward = FeedForward::kExperts,
                                          .expert_norm_always = true};

inline constexpr FamilyRules kGlm4Moe = {
    .architecture = "glm4moe",
    .block_style = BlockStyle::kHostReference,
    .qk_norm = Presence::kByTensor,
    .qkv_bias = Presence::kAlways,
    .ffn_norm = "post_attention_norm",
    .feed_forward = FeedForward::kExperts,
    .gating = ExpertGating::kSigmoid,
    .router_bias = Presence::kByTensor,
    .nextn_key = "nextn_predict_layers"};

inline constexpr FamilyRules kLlama = {
    .architecture = "llama",
    .rope_pairing = ops::RopePairing::kInterleaved,
    .rope_theta_default_warns = false,
    .rope_factors = Presence::kByTensor,
    .head_dim_default = HeadDimDefault::kHiddenOverHeads,
    .qkv_bias = Presence::kByTensor,
    .attn_out_bias = Presence::kByTensor,
    .ffn_bias = Presence::kByTensor};

inline constexpr FamilyRules kQwen2 = {
    .architecture = "qwen2",
    .rope_theta_default_warns = false,
    .head_dim_default = HeadDimDefault::kHiddenOverHeads,
    .qkv_bias = Presence::kAlways,
    .attn_out_bias = Presence::kByTensor,
    .output_bias = Presence::kByTensor};

inline const FamilyRules& RulesFor(absl::string_view architecture) {
  for (const FamilyRules* rules :
       {&kQwen3, &kQwen3Moe, &kGlm4Moe, &kLlama, &kQwen2}) {
    if (rules->architecture == architecture) return *rules;
  }
  FUCINA_CHECK(false) << std::string(architecture);
  return kQwen3;
}

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_CORE_RUNNER_FAMILIES_H_
