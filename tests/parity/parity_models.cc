#include "tests/parity/parity_models.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fucina/diag/check.h"
#include "fucina/diag/status_macros.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/gguf/gguf_writer.h"
#include "fucina/kernels/f16.h"
#include "fucina/tensor/blocks.h"

namespace fucina::testing {
namespace {

// Rows of 256 and 512: whole blocks of every format.
TinyModelSpec DenseSpec() {
  TinyModelSpec spec;
  spec.vocab_size = 256;
  spec.hidden_size = 256;
  spec.num_heads = 4;
  spec.num_kv_heads = 2;
  spec.head_dim = 64;
  spec.ffn_size = 512;
  return spec;
}

TinyModelSpec MoeSpec() {
  TinyModelSpec spec = DenseSpec();
  spec.architecture = "qwen3moe";
  spec.num_experts = 8;
  spec.expert_ffn_size = 256;
  return spec;
}

// Expert rows that are not whole 256-blocks, as in GLM-4.5-Air.
TinyModelSpec GlmSpec() {
  TinyModelSpec spec = MoeSpec();
  spec.architecture = "glm4moe";
  spec.norm_eps = 1e-5f;
  spec.rope_dims = 32;
  spec.expert_ffn_size = 96;
  return spec;
}

// Shaped like GLM-4.5, the large one: head norms, heads that are together wider
// than the model, a big query group, several dense layers in front, expert rows
// of whole blocks, and a prediction layer with its own embedding and head.
TinyModelSpec LargeGlmSpec() {
  TinyModelSpec spec = GlmSpec();
  spec.qk_norm = true;
  spec.num_layers = 4;
  spec.num_heads = 12;
  spec.num_kv_heads = 1;
  spec.leading_dense_layers = 2;
  spec.expert_ffn_size = 256;
  spec.expert_weights_scale = 2.5f;
  spec.nextn_own_embedding_and_head = true;
  return spec;
}

// "_K_M" files: more bits for what writes into the residual stream, Q6_K for
// embedding and head.
TinyWeightTypes Mix(DType base) {
  TinyWeightTypes types = TinyWeightTypes::All(base);
  types.embedding = types.output = DType::kQ6_K;
  types.down = types.experts_down = DType::kQ6_K;
  return types;
}

// GLM-4.5-Air: what would be `base` has `fallback` where rows are short.
TinyWeightTypes Air(DType base, DType fallback) {
  TinyWeightTypes types = Mix(base);
  types.experts_down = fallback;
  types.shared_expert = DType::kQ8_0;
  return types;
}

struct FieldOffset {
  DType dtype;
  std::size_t d;
  float scale;  // gives values of about the size of the other models' weights
};

// Types without an encoder; IQ1_M keeps its scale in nibbles.
constexpr FieldOffset kRandomFormats[] = {
    {DType::kIQ2_XXS, offsetof(BlockIQ2_XXS, d_f16), 1.0f / 512},
    {DType::kIQ2_XS, offsetof(BlockIQ2_XS, d_f16), 1.0f / 512},
    {DType::kIQ2_S, offsetof(BlockIQ2_S, d_f16), 1.0f / 512},
    {DType::kIQ3_XXS, offsetof(BlockIQ3_XXS, d_f16), 1.0f / 1024},
    {DType::kIQ3_S, offsetof(BlockIQ3_S, d_f16), 1.0f / 2048},
    {DType::kIQ1_S, offsetof(BlockIQ1_S, d_f16), 1.0f / 64},
    {DType::kIQ1_M, 0, 1.0f / 64},
};

std::uint64_t Next(std::uint64_t* state) {  // SplitMix64
  *state += 0x9e3779b97f4a7c15u;
  std::uint64_t z = *state;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

std::vector<std::byte> RandomBlocks(const FieldOffset& format,
                                    std::size_t elements, std::uint64_t seed) {
  const DTypeTraits& traits = Traits(format.dtype);
  const auto size = static_cast<std::size_t>(traits.block_bytes);
  std::vector<std::byte> bytes(elements / 256 * size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(Next(&seed));
  const std::uint16_t d = FloatToF16(format.scale);
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    if (format.dtype != DType::kIQ1_M) {
      std::memcpy(bytes.data() + at + format.d, &d, sizeof(d));
      continue;
    }
    for (std::size_t word = 0; word < 4; ++word) {
      std::byte& high = bytes[at + offsetof(BlockIQ1_M, scales) + 2 * word + 1];
      high = (high & std::byte{15}) |
             static_cast<std::byte>(((d >> (4 * word)) & 15) << 4);
    }
  }
  return bytes;
}

}  // namespace

std::vector<ParityModel> ParityModels() {
  std::vector<ParityModel> models;
  const auto add = [&models](TinyModelSpec spec, absl::string_view weights,
                             const TinyWeightTypes& types) {
    spec.types = types;
    models.push_back(
        {absl::StrCat(spec.architecture, "-", weights), std::move(spec)});
  };
  for (DType dtype :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0,
        DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ2_K, DType::kQ3_K,
        DType::kQ4_K, DType::kQ5_K, DType::kQ6_K, DType::kIQ4_NL,
        DType::kIQ4_XS, DType::kMXFP4, DType::kTQ1_0, DType::kTQ2_0}) {
    add(DenseSpec(), Name(dtype), TinyWeightTypes::All(dtype));
  }
  for (const FieldOffset& format : kRandomFormats) {
    add(DenseSpec(), Name(format.dtype), {});
    models.back().random_blocks = format.dtype;
  }
  TinyModelSpec tied = DenseSpec();
  tied.tied_output = true;
  add(tied, "q4_k_m", Mix(DType::kQ4_K));
  add(tied, "q5_k_m", Mix(DType::kQ5_K));

  add(MoeSpec(), "f32", {});
  add(MoeSpec(), "q8_0", TinyWeightTypes::All(DType::kQ8_0));
  add(MoeSpec(), "q4_k_m", Mix(DType::kQ4_K));
  TinyModelSpec reseeded = MoeSpec();  // the usual seed makes a near tie in
  reseeded.seed ^= 1;                  // the router: either choice is right
  add(reseeded, "iq4_xs", Mix(DType::kIQ4_XS));

  add(GlmSpec(), "f32", {});
  add(GlmSpec(), "bf16", TinyWeightTypes::All(DType::kBF16));
  add(GlmSpec(), "q4_k_m", Air(DType::kQ4_K, DType::kQ5_0));
  add(GlmSpec(), "iq4_xs", Air(DType::kIQ4_XS, DType::kIQ4_NL));
  TinyModelSpec normed = GlmSpec();  // the 355B has norms on q and k
  normed.qk_norm = true;
  add(normed, "q8_0", TinyWeightTypes::All(DType::kQ8_0));
  add(LargeGlmSpec(), "large-f32", {});
  add(LargeGlmSpec(), "large-q8_0", TinyWeightTypes::All(DType::kQ8_0));
  add(LargeGlmSpec(), "large-q4_k_m", Mix(DType::kQ4_K));
  return models;
}

std::string ParityFileName(const ParityModel& model) {
  return absl::StrCat("parity-", model.name, ".gguf");
}

absl::Status WriteParityModel(const ParityModel& model,
                              absl::string_view path) {
  const std::string scratch = absl::StrCat(path, ".scratch");
  FUCINA_RETURN_IF_ERROR(WriteTinyModel(model.spec, scratch));
  FUCINA_ASSIGN_OR_RETURN(std::unique_ptr<GgufFile> file,
                          GgufFile::Open(scratch));
  std::remove(scratch.c_str());  // the mapping keeps it

  GgufWriter writer;
  for (absl::string_view key : file->keys()) {
    writer.AddValue(key, *file->Find(key));
  }
  writer.AddString("tokenizer.ggml.model", "none");
  writer.AddU32(absl::StrCat(model.spec.architecture, ".vocab_size"),
                static_cast<std::uint32_t>(model.spec.vocab_size));
  std::vector<std::vector<std::byte>> storage;
  storage.reserve(file->tensors().size());
  std::uint64_t seed = 1;
  for (const GgufTensorInfo& info : file->tensors()) {
    const std::span<const std::uint64_t> ne(
        info.ne, static_cast<std::size_t>(info.rank));
    if (model.random_blocks == DType::kF32 || info.rank < 2) {
      writer.AddTensor(info.name, info.dtype, ne,
                       {info.data, static_cast<std::size_t>(info.size_bytes)});
      continue;
    }
    const FieldOffset* format = nullptr;
    for (const FieldOffset& candidate : kRandomFormats) {
      if (candidate.dtype == model.random_blocks) format = &candidate;
    }
    FUCINA_CHECK(format != nullptr) << Name(model.random_blocks);
    storage.push_back(RandomBlocks(
        *format, static_cast<std::size_t>(info.ne[0] * info.ne[1]), seed++));
    writer.AddTensor(info.name, format->dtype, ne, storage.back());
  }
  return writer.Write(path);
}

}  // namespace fucina::testing
