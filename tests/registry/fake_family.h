#ifndef FUCINA_TESTS_REGISTRY_FAKE_FAMILY_H_
#define FUCINA_TESTS_REGISTRY_FAKE_FAMILY_H_

// A family without weights, architecture "fake": a row of logits is a hash of
// the tokens so far. Honest by default; with a lie it breaks one promise, to
// see whether fucina-conformance notices. Header-only so that a fixture plugin
// and a test program can both hold it.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fucina/contract/decoder.h"
#include "fucina/gguf/gguf_file.h"

namespace fucina::fake {

enum class Lie {
  kNone,
  kRowsDependOnBatch,    // the row differs with the number of tokens at once
  kTruncateIsForgotten,  // truncating keeps the tokens
  kSharedState,          // states influence each other
  kCapacityIgnored,      // takes more tokens than there is room for
  kTapSkipsLayer,        // the tap misses the last layer
  kTapSeesTooMuch,       // the tap is shown layers that it does not want
  kNamesNoTensor,        // the message about a missing tensor does not name it
  kGrows,                // keeps memory of every step
};

inline constexpr int kVocabSize = 32;
inline constexpr int kHiddenSize = 8;
inline constexpr int kNumLayers = 2;

class State final : public DecodeState {
 public:
  State(int capacity, Lie lie) : capacity_(capacity), lie_(lie) {}
  int length() const override { return static_cast<int>(tokens.size()); }
  int capacity() const override { return capacity_; }
  absl::Status Truncate(int length) override {
    if (length < 0) return absl::InvalidArgumentError("negative length");
    if (lie_ == Lie::kTruncateIsForgotten) {
      forgotten += this->length() > length ? 1 : 0;
    }
    if (length < this->length()) tokens.resize(length);
    return absl::OkStatus();
  }

  std::vector<TokenId> tokens;
  std::vector<float> logits;
  std::vector<int> grown;
  int forgotten = 0;

 private:
  int capacity_;
  Lie lie_;
};

class FakeDecoder final : public Decoder {
 public:
  FakeDecoder(int context_length, Lie lie) : lie_(lie) {
    info_.architecture = "fake";
    info_.num_layers = kNumLayers;
    info_.hidden_size = kHiddenSize;
    info_.vocab_size = kVocabSize;
    info_.context_length = context_length;
    info_.weight_bytes = 4096;
    info_.state_bytes_per_token = 1024;
    info_.kernel_level = "scalar";
  }
  const DecoderInfo& info() const override { return info_; }

  absl::StatusOr<std::unique_ptr<DecodeState>> NewState(
      int capacity) const override {
    if (capacity < 1) return absl::InvalidArgumentError("capacity");
    return std::make_unique<State>(capacity, lie_);
  }

  absl::Status Forward(std::span<SequenceStep> batch) const override {
    if (batch.empty()) return absl::InvalidArgumentError("empty batch");
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const SequenceStep& step = batch[i];
      if (step.tokens.empty()) return absl::InvalidArgumentError("empty step");
      for (std::size_t j = 0; j < i; ++j) {
        if (batch[j].state == step.state) {
          return absl::InvalidArgumentError("one state twice");
        }
      }
      for (const TokenId token : step.tokens) {
        if (token < 0 || token >= kVocabSize) {
          return absl::InvalidArgumentError("token out of range");
        }
      }
      const int length =
          step.state->length() + static_cast<int>(step.tokens.size());
      if (length > step.state->capacity() && lie_ != Lie::kCapacityIgnored) {
        return absl::OutOfRangeError("no room");
      }
      if (step.adapter != nullptr) {
        return absl::UnimplementedError("fake takes no adapter");
      }
    }
    for (SequenceStep& step : batch) Compute(step);
    return absl::OkStatus();
  }

 private:
  void Compute(SequenceStep& step) const {
    auto& state = static_cast<State&>(*step.state);
    const std::size_t first = state.tokens.size();
    state.tokens.insert(state.tokens.end(), step.tokens.begin(),
                        step.tokens.end());
    float seen = 1;  // of the residual stream, when the taps are done with it
    if (step.tap != nullptr) {
      std::vector<float> residual(step.tokens.size() * kHiddenSize, 1.0F);
      const int last =
          lie_ == Lie::kTapSkipsLayer ? kNumLayers - 1 : kNumLayers;
      for (int layer = 0; layer < last; ++layer) {
        const TapRows wanted = lie_ == Lie::kTapSeesTooMuch
                                   ? TapRows::kAll
                                   : step.tap->Wants(layer);
        if (wanted == TapRows::kNone) continue;
        const std::size_t rows =
            wanted == TapRows::kLast ? 1 : step.tokens.size();
        step.tap->OnLayer(
            layer, static_cast<int>(state.tokens.size() - rows),
            Tensor(DType::kF32, {static_cast<std::int64_t>(rows), kHiddenSize},
                   residual.data()));
        seen = residual[0];
      }
    }
    if (lie_ == Lie::kGrows) state.grown.resize(state.grown.size() + 1000);
    if (lie_ == Lie::kSharedState) shared_ += 1;
    const std::size_t skipped =
        step.rows == LogitRows::kAll ? 0 : step.tokens.size() - 1;
    const std::size_t rows =
        step.rows == LogitRows::kNone ? 0 : step.tokens.size() - skipped;
    state.logits.resize(rows * kVocabSize);
    for (std::size_t row = 0; row < rows; ++row) {
      std::uint64_t hash = 1469598103934665603ULL;
      const auto mix = [&hash](std::uint64_t x) {
        hash = (hash ^ x) * 1099511628211ULL;
      };
      for (std::size_t i = 0; i <= first + skipped + row; ++i) {
        mix(static_cast<std::uint64_t>(state.tokens[i]) + 1);
      }
      mix(static_cast<std::uint64_t>(seen));
      if (lie_ == Lie::kRowsDependOnBatch) mix(step.tokens.size());
      if (lie_ == Lie::kTruncateIsForgotten) {
        mix(static_cast<std::uint64_t>(state.forgotten));
      }
      if (lie_ == Lie::kSharedState) mix(static_cast<std::uint64_t>(shared_));
      for (int j = 0; j < kVocabSize; ++j) {
        mix(static_cast<std::uint64_t>(j));
        state.logits[row * kVocabSize + j] =
            static_cast<float>(hash >> 40) * 0x1p-20F;
      }
    }
    step.logits =
        rows == 0
            ? Tensor()
            : Tensor(DType::kF32, {static_cast<std::int64_t>(rows), kVocabSize},
                     state.logits.data());
  }

  DecoderInfo info_;
  Lie lie_;
  mutable int shared_ = 0;
};

inline absl::StatusOr<std::unique_ptr<Decoder>> Load(const GgufFile& file,
                                                     Lie lie) {
  const auto architecture = file.GetString("general.architecture");
  if (!architecture.ok()) return architecture.status();
  if (*architecture != "fake") {
    return absl::InvalidArgumentError(absl::StrCat(
        file.display_name(), ": expected architecture 'fake', found '",
        architecture->value_or(""), "'"));
  }
  if (file.FindTensor("token_embd.weight") == nullptr) {
    return absl::NotFoundError(
        lie == Lie::kNamesNoTensor
            ? std::string("something is missing")
            : std::string("no tensor 'token_embd.weight'"));
  }
  const auto context = file.GetInt("fake.context_length", 1, 1 << 20);
  if (!context.ok()) return context.status();
  return std::make_unique<FakeDecoder>(static_cast<int>(context->value_or(256)),
                                       lie);
}

}  // namespace fucina::fake

#endif  // FUCINA_TESTS_REGISTRY_FAKE_FAMILY_H_
