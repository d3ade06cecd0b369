// A plugin built against headers in which Tensor was larger, a type was missing
// and another one existed: the everyday case of a stale build.

#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "fucina/plugin/manifest.h"

namespace {

absl::Status Register(fucina::Registrar&) {
  return absl::InternalError("must not be called");
}

constexpr auto StaleTable() {
  std::array<fucina::LayoutEntry, std::size(fucina::kLayoutTable)> table = {};
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = fucina::kLayoutTable[i];
    const std::string_view type = table[i].type;
    if (type == "Tensor") table[i].size += 8;
    if (type == "Buffer") table[i].alignment *= 2;
    if (type == "SiteShape") table[i].type = "SiteDimensions";
  }
  return table;
}

constexpr auto kStaleTable = StaleTable();

constexpr fucina::PluginManifest MakeManifest() {
  fucina::PluginManifest manifest =
      FUCINA_PLUGIN_MANIFEST(wrong_layout, "1.2.0", "Apache-2.0", &Register);
  manifest.layout = kStaleTable.data();
  return manifest;
}

constexpr fucina::PluginManifest kManifest = MakeManifest();

}  // namespace

BOOST_DLL_ALIAS_SECTIONED(kManifest, fucina_plugin_manifest, fucina)
