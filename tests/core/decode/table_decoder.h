#ifndef FUCINA_TESTS_CORE_DECODE_TABLE_DECODER_H_
#define FUCINA_TESTS_CORE_DECODE_TABLE_DECODER_H_

// A decoder whose logits are a table, for tests of what drives decoders.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fucina/contract/decoder.h"

namespace fucina::testing {

inline constexpr int kVocab = 23;

inline std::uint64_t Mix(std::uint64_t h) {
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9U;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBU;
  return h ^ (h >> 31);
}

// The logits of a prefix are a hash of all its tokens: any stale or missing row
// in a state shows at once.
inline std::vector<float> LogitsAfter(std::span<const TokenId> tokens) {
  std::uint64_t hash = 17;
  for (const TokenId token : tokens) hash = Mix(hash * 31 + token + 1);
  std::vector<float> logits(kVocab);
  for (int i = 0; i < kVocab; ++i) {
    logits[i] = static_cast<float>(Mix(hash + i) % 1000) / 200.0F;
  }
  return logits;
}

// Remembers the tokens, and the logits that a step points at.
class TableState : public DecodeState {
 public:
  explicit TableState(int capacity) : capacity_(capacity) {}
  int length() const override { return static_cast<int>(tokens.size()); }
  int capacity() const override { return capacity_; }
  absl::Status Truncate(int length) override {
    if (length < this->length()) tokens.resize(length);
    return absl::OkStatus();
  }
  std::vector<TokenId> tokens;
  std::vector<float> logits;

 private:
  int capacity_;
};

class TableDecoder : public Decoder {
 public:
  TableDecoder() {
    info_.architecture = "table";
    info_.vocab_size = kVocab;
    info_.context_length = 1000;
  }
  const DecoderInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<DecodeState>> NewState(
      int capacity) const override {
    return std::make_unique<TableState>(capacity);
  }
  absl::Status Forward(std::span<SequenceStep> batch) const override {
    ++forwards;
    // First every check: an error leaves every state as it was.
    for (const SequenceStep& step : batch) {
      const auto& state = static_cast<const TableState&>(*step.state);
      if (state.length() + static_cast<int>(step.tokens.size()) >
          state.capacity()) {
        return absl::OutOfRangeError("state full");
      }
      if (fail_at >= 0 && state.length() >= fail_at &&
          (fail_for == nullptr || fail_for == &state)) {
        return absl::InternalError("injected");
      }
    }
    widths.push_back(static_cast<int>(batch.size()));
    for (SequenceStep& step : batch) {
      auto& state = static_cast<TableState&>(*step.state);
      state.logits.clear();
      const std::size_t first =
          step.rows == LogitRows::kAll ? 0 : step.tokens.size() - 1;
      for (std::size_t i = 0; i < step.tokens.size(); ++i) {
        state.tokens.push_back(step.tokens[i]);
        if (step.rows == LogitRows::kNone || i < first) continue;
        std::vector<float> row = LogitsAfter(state.tokens);
        if (nan_at >= 0 && state.length() > nan_at) {
          row[3] = std::numeric_limits<float>::quiet_NaN();
        }
        if (spoil && state.length() == spoil_at) spoil(row);
        state.logits.insert(state.logits.end(), row.begin(), row.end());
      }
      const auto rows = static_cast<std::int64_t>(state.logits.size()) / kVocab;
      if (rows > 0) {
        step.logits = Tensor(DType::kF32, {rows, kVocab}, state.logits.data());
      }
      if (lie && state.length() >= lie_at) lie(state, step);
    }
    return absl::OkStatus();
  }
  mutable int forwards = 0;
  mutable std::vector<int> widths;  // of the forwards that succeeded
  int fail_at = -1;
  const DecodeState* fail_for = nullptr;  // null: every state
  int nan_at = -1;
  // Changes the row that follows `spoil_at` tokens.
  std::function<void(std::span<float>)> spoil = {};
  int spoil_at = -1;
  // Breaks the contract from `lie_at` tokens on.
  std::function<void(TableState&, SequenceStep&)> lie = {};
  int lie_at = 0;

 private:
  DecoderInfo info_;
};

// The plainest loop that can be written, as the reference.
inline std::vector<TokenId> ReferenceGreedy(std::vector<TokenId> tokens,
                                            int count) {
  for (int i = 0; i < count; ++i) {
    const std::vector<float> logits = LogitsAfter(tokens);
    tokens.push_back(static_cast<TokenId>(
        std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  return tokens;
}

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_CORE_DECODE_TABLE_DECODER_H_
