#include "tests/tiny_models/tiny_models.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fucina/diag/check.h"
#include "fucina/gguf/gguf_writer.h"
#include "fucina/kernels/quantize.h"
#include "tests/tiny_models/tiny_tokenizer.h"

namespace fucina::testing {
namespace {

std::uint64_t Fnv1a64(absl::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) {
    hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3u;
  }
  return hash;
}

class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t state) : state_(state) {}
  std::uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = (state_ ^ state_ >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }

 private:
  std::uint64_t state_;
};

bool IsNorm(absl::string_view tensor_name) {
  return absl::StrContains(tensor_name, "norm");
}

// Collects keys and tensors of one model in a writer.
class ModelWriter {
 public:
  explicit ModelWriter(const TinyModelSpec& spec)
      : spec_(spec),
        moe_(spec.architecture == "qwen3moe" || spec.architecture == "glm4moe"),
        glm_(spec.architecture == "glm4moe") {
    if (spec_.with_tokenizer) {
      spec_.vocab_size =
          std::max(spec_.vocab_size, TinyTokenizerRows(spec_.architecture));
    }
  }

  // The writer borrows the tensors' bytes from this object.
  const GgufWriter& Build() {
    AddKeys();
    AddGlobalTensors();
    for (int layer = 0; layer < spec_.num_layers; ++layer) AddLayer(layer);
    if (glm_) {
      for (int i = 0; i < spec_.num_nextn_layers; ++i) {
        AddNextnLayer(spec_.num_layers + i);
      }
    }
    return writer_;
  }

 private:
  using Shape = std::initializer_list<int>;

  // --- metadata -------------------------------------------------------------

  std::string Key(absl::string_view name) const {
    return absl::StrCat(spec_.architecture, ".", name);
  }
  void AddInt(absl::string_view name, int value) {
    writer_.AddU32(Key(name), static_cast<std::uint32_t>(value));
  }
  void AddFloat(absl::string_view name, float value) {
    writer_.AddF32(Key(name), value);
  }

  void AddKeys() {
    writer_.AddString("general.architecture", spec_.architecture);
    writer_.AddString("general.name",
                      absl::StrCat("tiny ", spec_.architecture));
    AddInt("block_count",
           spec_.num_layers + (glm_ ? spec_.num_nextn_layers : 0));
    AddInt("context_length", spec_.context_length);
    AddInt("embedding_length", spec_.hidden_size);
    AddInt("feed_forward_length", spec_.ffn_size);
    AddInt("attention.head_count", spec_.num_heads);
    AddInt("attention.head_count_kv", spec_.num_kv_heads);
    AddInt("attention.key_length", spec_.head_dim);
    AddInt("attention.value_length", spec_.head_dim);
    AddFloat("attention.layer_norm_rms_epsilon", spec_.norm_eps);
    AddFloat("rope.freq_base", spec_.rope_theta);
    if (spec_.rope_dims > 0) AddInt("rope.dimension_count", spec_.rope_dims);
    if (spec_.yarn_factor > 0) {
      writer_.AddString(Key("rope.scaling.type"), "yarn");
      AddFloat("rope.scaling.factor", spec_.yarn_factor);
      AddInt("rope.scaling.original_context_length",
             spec_.yarn_original_context_length);
    }
    if (moe_) {
      AddInt("expert_count", spec_.num_experts);
      AddInt("expert_used_count", spec_.num_experts_used);
      AddInt("expert_feed_forward_length", spec_.expert_ffn_size);
    }
    if (glm_) {
      AddInt("expert_shared_count", spec_.num_shared_experts);
      AddInt("leading_dense_block_count", spec_.leading_dense_layers);
      AddInt("expert_gating_func", 2);  // sigmoid
      writer_.AddBool(Key("expert_weights_norm"), spec_.expert_weights_norm);
      AddFloat("expert_weights_scale", spec_.expert_weights_scale);
      AddInt("nextn_predict_layers", spec_.num_nextn_layers);
    }
    if (spec_.with_tokenizer) {
      AddTinyTokenizer(spec_.architecture, &writer_);
    }
  }

  // --- tensors --------------------------------------------------------------

  void AddTensor(const std::string& name, Shape shape,
                 DType dtype = DType::kF32) {
    std::vector<std::uint64_t> ne;
    std::size_t count = 1;
    for (const int dim : shape) {
      ne.push_back(static_cast<std::uint64_t>(dim));
      count *= static_cast<std::size_t>(dim);
    }
    const std::vector<float> values =
        SeededWeights(name, count, spec_.seed, spec_.weight_scale);
    AddEncoded(name, ne, dtype, values);
  }

  void AddEncoded(const std::string& name, std::span<const std::uint64_t> ne,
                  DType dtype, std::span<const float> values) {
    if (dtype == DType::kF32) {
      writer_.AddF32Tensor(name, ne, values);
      return;
    }
    FUCINA_CHECK(CanQuantize(dtype)) << name << " as " << Name(dtype);
    const auto row_size = static_cast<std::int64_t>(ne[0]);
    const auto row_bytes = static_cast<std::size_t>(RowBytes(dtype, row_size));
    const std::size_t num_rows = values.size() / ne[0];
    std::vector<std::byte>& encoded =
        storage_.emplace_back(num_rows * row_bytes);
    for (std::size_t row = 0; row < num_rows; ++row) {
      QuantizeRow(dtype, values.data() + row * ne[0],
                  encoded.data() + row * row_bytes, row_size);
    }
    writer_.AddTensor(name, dtype, ne, encoded);
  }

  void AddGlobalTensors() {
    const int hidden = spec_.hidden_size;
    const int vocab = spec_.vocab_size;
    AddTensor("token_embd.weight", {hidden, vocab}, spec_.types.embedding);
    if (!spec_.rope_factors.empty()) {
      const std::uint64_t ne[] = {spec_.rope_factors.size()};
      writer_.AddF32Tensor("rope_freqs.weight", ne, spec_.rope_factors);
    }
    AddTensor("output_norm.weight", {hidden});
    if (!spec_.tied_output) {
      AddTensor("output.weight", {hidden, vocab}, spec_.types.output);
    }
  }

  bool HasQkNorm() const {
    return glm_ ? spec_.qk_norm : absl::StartsWith(spec_.architecture, "qwen3");
  }

  void AddLayer(int layer) {
    AddAttention(layer);
    if (moe_ && !(glm_ && layer < spec_.leading_dense_layers)) {
      AddExperts(layer);
    } else {
      AddFeedForward(layer);
    }
  }

  void AddAttention(int layer) {
    const std::string block = absl::StrCat("blk.", layer, ".");
    const int hidden = spec_.hidden_size;
    const int q_size = spec_.num_heads * spec_.head_dim;
    const int kv_size = spec_.num_kv_heads * spec_.head_dim;
    const DType dtype = spec_.types.attention;
    AddTensor(block + "attn_norm.weight", {hidden});
    AddTensor(block + "attn_q.weight", {hidden, q_size}, dtype);
    AddTensor(block + "attn_k.weight", {hidden, kv_size}, dtype);
    AddTensor(block + "attn_v.weight", {hidden, kv_size}, dtype);
    if (glm_ || spec_.architecture == "qwen2") {
      AddTensor(block + "attn_q.bias", {q_size});
      AddTensor(block + "attn_k.bias", {kv_size});
      AddTensor(block + "attn_v.bias", {kv_size});
    }
    if (HasQkNorm()) {
      AddTensor(block + "attn_q_norm.weight", {spec_.head_dim});
      AddTensor(block + "attn_k_norm.weight", {spec_.head_dim});
    }
    AddTensor(block + "attn_output.weight", {q_size, hidden}, dtype);
    // In glm4moe this is the norm before the feed-forward, whatever it is
    // called.
    AddTensor(block + (glm_ ? "post_attention_norm.weight" : "ffn_norm.weight"),
              {hidden});
  }

  void AddFeedForward(int layer) {
    const std::string block = absl::StrCat("blk.", layer, ".");
    const int hidden = spec_.hidden_size;
    const int ffn = spec_.ffn_size;
    AddTensor(block + "ffn_gate.weight", {hidden, ffn},
              spec_.types.feed_forward);
    AddTensor(block + "ffn_up.weight", {hidden, ffn}, spec_.types.feed_forward);
    AddTensor(block + "ffn_down.weight", {ffn, hidden}, spec_.types.down);
  }

  void AddExperts(int layer) {
    const std::string block = absl::StrCat("blk.", layer, ".");
    const int hidden = spec_.hidden_size;
    const int experts = spec_.num_experts;
    const int ffn = spec_.expert_ffn_size;
    AddTensor(block + "ffn_gate_inp.weight", {hidden, experts});
    if (glm_) AddTensor(block + "exp_probs_b.bias", {experts});
    AddTensor(block + "ffn_gate_exps.weight", {hidden, ffn, experts},
              spec_.types.experts);
    AddTensor(block + "ffn_up_exps.weight", {hidden, ffn, experts},
              spec_.types.experts);
    AddTensor(block + "ffn_down_exps.weight", {ffn, hidden, experts},
              spec_.types.experts_down);
    if (!glm_ || spec_.num_shared_experts == 0) return;
    const int shared = ffn * spec_.num_shared_experts;
    const DType dtype = spec_.types.shared_expert;
    AddTensor(block + "ffn_gate_shexp.weight", {hidden, shared}, dtype);
    AddTensor(block + "ffn_up_shexp.weight", {hidden, shared}, dtype);
    AddTensor(block + "ffn_down_shexp.weight", {shared, hidden}, dtype);
  }

  void AddNextnLayer(int layer) {
    const std::string nextn = absl::StrCat("blk.", layer, ".nextn.");
    const int hidden = spec_.hidden_size;
    const int vocab = spec_.vocab_size;
    AddAttention(layer);
    AddExperts(layer);
    AddTensor(nextn + "eh_proj.weight", {2 * hidden, hidden},
              spec_.types.nextn);
    AddTensor(nextn + "enorm.weight", {hidden});
    AddTensor(nextn + "hnorm.weight", {hidden});
    if (spec_.nextn_own_embedding_and_head) {
      AddTensor(nextn + "embed_tokens.weight", {hidden, vocab},
                spec_.types.nextn);
      AddTensor(nextn + "shared_head_head.weight", {hidden, vocab},
                spec_.types.nextn);
    }
    AddTensor(nextn + "shared_head_norm.weight", {hidden});
  }

  TinyModelSpec spec_;
  bool moe_;
  bool glm_;
  GgufWriter writer_;
  std::vector<std::vector<std::byte>> storage_;
};

}  // namespace

TinyWeightTypes TinyWeightTypes::All(DType dtype) {
  return {dtype, dtype, dtype, dtype, dtype, dtype, dtype, dtype, dtype};
}

std::vector<float> SeededWeights(absl::string_view tensor_name,
                                 std::size_t count, std::uint64_t seed,
                                 float weight_scale) {
  SplitMix64 random(seed ^ Fnv1a64(tensor_name));
  const bool norm = IsNorm(tensor_name);
  std::vector<float> values(count);
  for (float& value : values) {
    // Both differences and the scaling by a power of two are exact in f32.
    if (norm) {
      const auto drawn = static_cast<std::int64_t>(random.Next() >> 44);
      value = 1.0f + std::ldexp(static_cast<float>(drawn - (1 << 19)), -22);
    } else {
      const auto drawn = static_cast<std::int64_t>(random.Next() >> 40);
      value =
          std::ldexp(static_cast<float>(drawn - (1 << 23)), -26) * weight_scale;
    }
  }
  return values;
}

std::string TinyModelBytes(const TinyModelSpec& spec) {
  ModelWriter model(spec);
  absl::StatusOr<std::string> bytes = model.Build().Serialize();
  FUCINA_CHECK(bytes.ok()) << bytes.status().ToString();
  return *std::move(bytes);
}

absl::Status WriteTinyModel(const TinyModelSpec& spec, absl::string_view path) {
  ModelWriter model(spec);
  return model.Build().Write(path);
}

std::span<const absl::string_view> SeededFixtureNames() {
  static constexpr std::array<absl::string_view, 10> kNames = {
      "D", "Dt", "Dy", "M", "G", "Gq", "Gi", "L", "Lf", "Q2"};
  return kNames;
}

TinyModelSpec SeededFixture(absl::string_view name) {
  TinyModelSpec spec;
  if (name == "D") return spec;
  if (name == "Dt" || name == "Dy") {
    spec.tied_output = true;
    if (name == "Dy") {
      spec.yarn_factor = 4;
      spec.yarn_original_context_length = 64;
    }
    return spec;
  }
  if (name == "M") {
    spec.architecture = "qwen3moe";
    return spec;
  }
  if (name == "G" || name == "Gq" || name == "Gi") {
    spec.architecture = "glm4moe";
    spec.norm_eps = 1e-5f;
    spec.rope_dims = 16;
    spec.qk_norm = name == "Gq";
    return spec;
  }
  spec.num_heads = 2;
  spec.num_kv_heads = 1;
  spec.head_dim = 16;
  if (name == "L" || name == "Lf") {
    spec.architecture = "llama";
    spec.norm_eps = 1e-5f;
    spec.rope_dims = spec.head_dim;
    if (name == "Lf") spec.rope_factors = {1, 1, 1, 1, 2, 4, 8, 8};
    return spec;
  }
  FUCINA_CHECK(name == "Q2") << "no fixture '" << std::string(name) << "'";
  spec.architecture = "qwen2";
  spec.tied_output = true;
  return spec;
}

}  // namespace fucina::testing
