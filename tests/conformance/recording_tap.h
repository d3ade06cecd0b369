#ifndef FUCINA_TESTS_CONFORMANCE_RECORDING_TAP_H_
#define FUCINA_TESTS_CONFORMANCE_RECORDING_TAP_H_

#include <optional>
#include <string>
#include <vector>

#include "fucina/contract/decoder.h"

namespace fucina::conformance {

// Writes down what it is shown; wants everything, or some rows of one layer.
class RecordingTap final : public LayerTap {
 public:
  struct Part {
    int layer = 0;
    TapRows rows = TapRows::kAll;
  };
  explicit RecordingTap(std::optional<Part> only = std::nullopt)
      : only_(only) {}

  TapRows Wants(int layer) const override {
    if (!only_.has_value()) return TapRows::kAll;
    return layer == only_->layer ? only_->rows : TapRows::kNone;
  }
  void OnLayer(int layer, int position, const Tensor& residual) override {
    layers.push_back(layer);
    positions.push_back(position);
    shapes.push_back(residual.DebugString());
  }

  // By call.
  std::vector<int> layers;
  std::vector<int> positions;
  std::vector<std::string> shapes;

 private:
  const std::optional<Part> only_;
};

}  // namespace fucina::conformance

#endif  // FUCINA_TESTS_CONFORMANCE_RECORDING_TAP_H_
