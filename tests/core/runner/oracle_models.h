#ifndef FUCINA_TESTS_CORE_RUNNER_ORACLE_MODELS_H_
#define FUCINA_TESTS_CORE_RUNNER_ORACLE_MODELS_H_

// The models whose logits tests/oracles/numpy_forward.py computed: each word of
// the descriptor occurs in one of them, sizes are odd where they may be.

#include <string>
#include <vector>

#include "tests/tiny_models/tiny_models.h"

namespace fucina::testing {

struct OracleModel {
  std::string name;
  TinyModelSpec spec;
};

inline std::vector<OracleModel> OracleModels() {
  const TinyModelSpec base = {.vocab_size = 72,
                              .hidden_size = 40,
                              .num_layers = 3,
                              .num_heads = 6,
                              .num_kv_heads = 2,
                              .head_dim = 12,
                              .ffn_size = 56,
                              .rope_theta = 1e6F,
                              .seed = 20250611,
                              .weight_scale = 4};
  std::vector<OracleModel> models;
  models.push_back({"dense", base});

  TinyModelSpec yarn = base;
  yarn.tied_output = true;
  yarn.rope_theta = 500;
  yarn.yarn_factor = 2.5F;
  yarn.yarn_original_context_length = 8;  // the prompt is three times that
  models.push_back({"dense_yarn", yarn});

  TinyModelSpec moe = base;
  moe.architecture = "qwen3moe";
  moe.num_experts = 7;
  moe.num_experts_used = 3;
  moe.expert_ffn_size = 20;
  models.push_back({"moe", moe});

  TinyModelSpec glm = base;
  glm.architecture = "glm4moe";
  glm.norm_eps = 1e-5F;
  glm.rope_dims = 6;
  glm.qk_norm = true;
  glm.num_experts = 6;
  glm.num_experts_used = 2;
  glm.expert_ffn_size = 24;
  glm.num_shared_experts = 2;
  glm.expert_weights_norm = false;
  glm.expert_weights_scale = 2.5F;
  models.push_back({"glm", glm});

  // As GLM-4.5-Air: no head norms, weights normalized; a prediction layer with
  // matrices of its own.
  TinyModelSpec air = glm;
  air.qk_norm = false;
  air.num_shared_experts = 1;
  air.expert_weights_norm = true;
  air.expert_weights_scale = 1;
  air.nextn_own_embedding_and_head = true;
  models.push_back({"glm_air", air});

  TinyModelSpec llama = base;
  llama.architecture = "llama";
  llama.num_heads = 4;
  llama.head_dim = 10;
  llama.rope_dims = 10;
  llama.rope_factors = {1, 1.5F, 2, 4, 8};
  models.push_back({"llama", llama});

  TinyModelSpec qwen2 = base;
  qwen2.architecture = "qwen2";
  qwen2.num_heads = 4;
  qwen2.head_dim = 10;
  qwen2.tied_output = true;
  models.push_back({"qwen2", qwen2});
  return models;
}

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_CORE_RUNNER_ORACLE_MODELS_H_
