#ifndef FUCINA_PLUGINS_SPEC_DRAFTER_KINDS_H_
#define FUCINA_PLUGINS_SPEC_DRAFTER_KINDS_H_

#include "fucina/plugin/registrar.h"

namespace fucina::spec {

// Descriptors with static storage.
const DrafterKind& SuffixKind();     // the conversation and references
const DrafterKind& RecyclingKind();  // the recycling table
const DrafterKind& CascadeKind();    // all of them, longest match first

}  // namespace fucina::spec

#endif  // FUCINA_PLUGINS_SPEC_DRAFTER_KINDS_H_
