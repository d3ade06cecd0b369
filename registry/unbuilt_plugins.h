#ifndef FUCINA_REGISTRY_UNBUILT_PLUGINS_H_
#define FUCINA_REGISTRY_UNBUILT_PLUGINS_H_

// Plugins that this build left out because something was missing when it was
// configured, so that a user hears what to install instead of "not found".

#include "absl/strings/string_view.h"

namespace fucina {

// Why the plugin was not built and what to do; empty for one that was, and for
// names that this source tree does not have.
absl::string_view WhyNotBuilt(absl::string_view plugin);

}  // namespace fucina

#endif  // FUCINA_REGISTRY_UNBUILT_PLUGINS_H_
