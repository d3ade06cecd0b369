// Writes a small random model: tiny_model <architecture> <file.gguf>. Big
// enough that every property of fucina-conformance means something, small
// enough that a test takes no time.

#include <cstdint>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "fucina/gguf/gguf_writer.h"

namespace {

constexpr std::uint32_t kVocab = 64;
constexpr std::uint32_t kHidden = 32;
constexpr std::uint32_t kLayers = 2;
constexpr std::uint32_t kHeads = 4;
constexpr std::uint32_t kKvHeads = 2;
constexpr std::uint32_t kHeadDim = kHidden / kHeads;
constexpr std::uint32_t kFfn = 64;

class Model {
 public:
  explicit Model(const std::string& architecture)
      : has_bias_(architecture == "qwen2") {
    const auto key = [&](const std::string& name) {
      return architecture + "." + name;
    };
    writer_.AddString("general.architecture", architecture);
    writer_.AddU32(key("block_count"), kLayers);
    writer_.AddU32(key("context_length"), 128);
    writer_.AddU32(key("embedding_length"), kHidden);
    writer_.AddU32(key("feed_forward_length"), kFfn);
    writer_.AddU32(key("attention.head_count"), kHeads);
    writer_.AddU32(key("attention.head_count_kv"), kKvHeads);
    writer_.AddF32(key("attention.layer_norm_rms_epsilon"), 1e-6F);
    writer_.AddF32(key("rope.freq_base"), 10000.0F);

    Matrix("token_embd", kHidden, kVocab);
    Vector("output_norm.weight", kHidden);
    Matrix("output", kHidden, kVocab);
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      const std::string block = "blk." + std::to_string(layer) + ".";
      Vector(block + "attn_norm.weight", kHidden);
      Projection(block + "attn_q", kHidden, kHeads * kHeadDim);
      Projection(block + "attn_k", kHidden, kKvHeads * kHeadDim);
      Projection(block + "attn_v", kHidden, kKvHeads * kHeadDim);
      Matrix(block + "attn_output", kHeads * kHeadDim, kHidden);
      Vector(block + "ffn_norm.weight", kHidden);
      Matrix(block + "ffn_gate", kHidden, kFfn);
      Matrix(block + "ffn_up", kHidden, kFfn);
      Matrix(block + "ffn_down", kFfn, kHidden);
    }
  }

  absl::Status Write(const std::string& path) const {
    return writer_.Write(path);
  }

 private:
  std::vector<float> Random(std::size_t count, float center) {
    std::uniform_real_distribution<float> spread(-0.2F, 0.2F);
    std::vector<float> values(count);
    for (float& value : values) value = center + spread(random_);
    return values;
  }
  void Vector(const std::string& name, std::uint64_t size) {
    writer_.AddF32Tensor(name, std::vector{size}, Random(size, 1.0F));
  }
  void Matrix(const std::string& name, std::uint64_t in, std::uint64_t out) {
    writer_.AddF32Tensor(name + ".weight", std::vector{in, out},
                         Random(in * out, 0.0F));
  }
  void Projection(const std::string& name, std::uint64_t in,
                  std::uint64_t out) {
    Matrix(name, in, out);
    if (has_bias_) {
      writer_.AddF32Tensor(name + ".bias", std::vector{out}, Random(out, 0.0F));
    }
  }

  fucina::GgufWriter writer_;
  std::mt19937 random_{1};
  bool has_bias_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: tiny_model <architecture> <file.gguf>\n";
    return 2;
  }
  const absl::Status status = Model(argv[1]).Write(argv[2]);
  if (!status.ok()) std::cerr << "tiny_model: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
