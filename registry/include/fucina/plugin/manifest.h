#ifndef FUCINA_PLUGIN_MANIFEST_H_
#define FUCINA_PLUGIN_MANIFEST_H_

// What a plugin exports: one constant, readable whatever the mismatch. A plugin
// includes this header in one file and ends that file with FUCINA_PLUGIN.

#include <boost/dll/alias.hpp>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "fucina/plugin/abi.h"
#include "fucina/plugin/registrar.h"

namespace fucina {

// "FUCI" in memory order.
inline constexpr std::uint32_t kPluginMagic = 0x49435546U;

struct PluginManifest {
  // Frozen: these four fields never move, change type or change meaning.
  std::uint32_t magic;
  std::uint32_t manifest_size;  // sizeof(PluginManifest) as the plugin saw it
  const char* abi_tag;          // FUCINA_ABI_TAG as the plugin saw it
  const char* name;             // <name> in libfucina_<name>.so
  // Read only after size and tag matched.
  const LayoutEntry* layout;
  std::uint32_t num_layout;
  const char* version;     // the plugin's own version, shown, never compared
  const char* license;     // SPDX expression
  const char* built_with;  // compiler version, shown, not compared
  // Adds the plugin's descriptors. Does no other work: no files, threads,
  // environment or output. May be called once per registry object.
  absl::Status (*register_plugin)(Registrar& registrar);
};

}  // namespace fucina

// A manifest of the including file. Used directly by single-binary builds and
// tests, which hand it to Registry::AddBuiltin.
#define FUCINA_PLUGIN_MANIFEST(plugin_name, plugin_version, plugin_license, \
                               register_function)                           \
  ::fucina::PluginManifest {                                                \
    ::fucina::kPluginMagic,                                                 \
        static_cast<std::uint32_t>(sizeof(::fucina::PluginManifest)),       \
        FUCINA_ABI_TAG, #plugin_name, ::fucina::kLayoutTable,               \
        static_cast<std::uint32_t>(std::size(::fucina::kLayoutTable)),      \
        plugin_version, plugin_license, __VERSION__, register_function      \
  }

// Defines and exports the manifest as the symbol fucina_plugin_manifest in the
// section "fucina", by which a plugin is told from any other library without
// loading it. Write it once, at global scope:
//   FUCINA_PLUGIN(qwen3, "1.0.0", "Apache-2.0", &Register)
#define FUCINA_PLUGIN(plugin_name, plugin_version, plugin_license,        \
                      register_function)                                  \
  namespace {                                                             \
  constexpr ::fucina::PluginManifest fucina_plugin_manifest_data =        \
      FUCINA_PLUGIN_MANIFEST(plugin_name, plugin_version, plugin_license, \
                             register_function);                          \
  }                                                                       \
  BOOST_DLL_ALIAS_SECTIONED(fucina_plugin_manifest_data,                  \
                            fucina_plugin_manifest, fucina)

#endif  // FUCINA_PLUGIN_MANIFEST_H_
