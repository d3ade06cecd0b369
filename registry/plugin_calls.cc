#include "registry/plugin_calls.h"

#include "absl/strings/cord.h"

namespace fucina {

absl::Status Prefixed(absl::string_view prefix, const absl::Status& status) {
  if (prefix.empty() || status.ok()) return status;
  absl::Status result(status.code(), absl::StrCat(prefix, status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    result.SetPayload(url, payload);
  });
  return result;
}

absl::Status BrokeContract(const PluginRecord& plugin, absl::string_view what) {
  return absl::InternalError(
      absl::StrCat(Printable(plugin.file), " broke the contract: ", what));
}

}  // namespace fucina
