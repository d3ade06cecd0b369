#ifndef FUCINA_TESTS_CORE_RUNNER_MODEL_VARIANTS_H_
#define FUCINA_TESTS_CORE_RUNNER_MODEL_VARIANTS_H_

// Tiny models of every kind and in every weight format, for properties that
// must hold whatever the weights are.

#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fucina/contract/decoder.h"
#include "fucina/kernels/quantize.h"
#include "fucina/runner/descriptor.h"
#include "fucina/tensor/dtype.h"
#include "tests/tiny_models/tiny_models.h"

namespace fucina::testing {

struct Variant {
  std::string name;
  TinyModelSpec spec;
  BlockStyle style = BlockStyle::kFused;
  DType cache_type = DType::kF16;
};

inline void PrintTo(const Variant& variant, std::ostream* out) {
  *out << variant.name;
}

// f32 models of four kinds in both styles.
inline std::vector<Variant> PlainVariants() {
  std::vector<Variant> variants;
  for (const char* fixture : {"Dy", "M", "Gq", "Lf"}) {
    TinyModelSpec spec = SeededFixture(fixture);
    spec.context_length = 1024;
    spec.weight_scale = 4;
    for (BlockStyle style : {BlockStyle::kFused, BlockStyle::kHostReference}) {
      variants.push_back(
          {absl::StrCat(fixture, "_", Name(style)), spec, style});
    }
  }
  return variants;
}

// Every weight format that has a quantizer, dense and with experts, at shapes
// that K-blocks of 256 fit.
inline std::vector<Variant> QuantizedVariants() {
  std::vector<Variant> variants;
  for (const DTypeTraits& traits : AllDTypes()) {
    if (traits.use != DTypeUse::kWeight || !CanQuantize(traits.dtype)) continue;
    for (const char* architecture : {"qwen3", "qwen3moe"}) {
      TinyModelSpec spec;
      spec.architecture = architecture;
      spec.hidden_size = 256;
      spec.num_heads = 8;
      spec.num_kv_heads = 4;
      spec.ffn_size = 256;
      spec.expert_ffn_size = 256;
      spec.tied_output = spec.architecture == "qwen3";
      spec.types = TinyWeightTypes::All(traits.dtype);
      // One type apart in each place where matrices could be fused.
      if (traits.dtype == DType::kQ4_K) {
        spec.types.down = DType::kQ6_K;
        spec.types.experts_down = DType::kQ6_K;
        spec.types.embedding = DType::kQ6_K;
      }
      variants.push_back({absl::StrCat(architecture, "_", traits.name), spec});
    }
  }
  return variants;
}

inline std::vector<TokenId> RandomTokens(std::uint32_t seed, int count,
                                         int vocab_size) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  for (TokenId& token : tokens) {
    token = static_cast<TokenId>(random() % vocab_size);
  }
  return tokens;
}

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_CORE_RUNNER_MODEL_VARIANTS_H_
