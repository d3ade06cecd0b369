// Out-of-line destructors: they pin the vtables and type information of the
// contract in libfucina, so that dynamic_cast works across plugins.

#include "fucina/contract/adapter.h"
#include "fucina/contract/constraint.h"
#include "fucina/contract/decoder.h"
#include "fucina/contract/drafter.h"

namespace fucina {

DecodeState::~DecodeState() = default;
LayerTap::~LayerTap() = default;
TapRows LayerTap::Wants(int /*layer*/) const { return TapRows::kAll; }
Decoder::~Decoder() = default;
Drafter::~Drafter() = default;
Constraint::~Constraint() = default;

const LowRank* AdapterSet::Find(int layer, LinearSite site) const {
  if (layer < 0 || layer >= static_cast<int>(layers.size())) return nullptr;
  const auto& pair = layers[layer][static_cast<int>(site)];
  return pair.has_value() ? &*pair : nullptr;
}

}  // namespace fucina
