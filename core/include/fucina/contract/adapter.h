#ifndef FUCINA_CONTRACT_ADAPTER_H_
#define FUCINA_CONTRACT_ADAPTER_H_

// Weights added at named sites of a decoder. Data, no virtuals: two producers
// (a file, a hypernetwork), one consumer, nothing to override.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "fucina/export.h"
#include "fucina/tensor/low_rank.h"

namespace fucina {

// The linear maps of a decoder layer that an adapter may change.
enum class LinearSite { kQ, kK, kV, kO, kGate, kUp, kDown };
inline constexpr int kNumLinearSites = 7;

// Features into and out of one site; both zero where the family has no such
// site.
struct SiteShape {
  std::int64_t in = 0;
  std::int64_t out = 0;
};

// For each layer and site at most one low-rank pair. The tensors are borrowed:
// whoever made the set keeps their memory alive while it is used.
struct FUCINA_API AdapterSet {
  std::vector<std::array<std::optional<LowRank>, kNumLinearSites>> layers;

  // Null when the layer has nothing at this site.
  const LowRank* Find(int layer, LinearSite site) const;
};

}  // namespace fucina

#endif  // FUCINA_CONTRACT_ADAPTER_H_
