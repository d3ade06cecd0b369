#ifndef FUCINA_REGISTRY_PLUGIN_LOADER_H_
#define FUCINA_REGISTRY_PLUGIN_LOADER_H_

// Opens a plugin and verifies that it was built for this fucina, without
// calling anything in it. Thread-compatible.

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/plugin/manifest.h"

namespace fucina {

// An opened plugin. The code stays mapped until the process ends, whatever
// happens to this object: objects, views and function pointers of a plugin
// outlive any bookkeeping.
class PluginLibrary {
 public:
  // `path` is canonical and was found trustworthy by TrustedPluginFile.
  // InvalidArgument for a file that is no plugin or calls itself by another
  // name, FailedPrecondition for one that the dynamic linker refuses or that
  // was built for another fucina.
  static absl::StatusOr<std::unique_ptr<PluginLibrary>> Open(
      const std::string& path);
  ~PluginLibrary();

  // Magic, size, tag, layout and name verified.
  const PluginManifest& manifest() const { return *manifest_; }
  const std::string& path() const { return path_; }

 private:
  struct Handle;
  PluginLibrary();
  std::string path_;
  std::unique_ptr<Handle> handle_;
  const PluginManifest* manifest_ = nullptr;
};

// FailedPrecondition, item by item, unless the manifest's tag and layout table
// equal ours. `file` is how messages call the plugin.
absl::Status CheckAbi(const PluginManifest& manifest, absl::string_view file);

// Calls the plugin's register function. Its error is returned with `file` in
// front; an exception becomes Internal.
absl::Status CallRegister(const PluginManifest& manifest,
                          absl::string_view file, Registrar& registrar);

// The canonical path of the libfucina that this process uses.
absl::StatusOr<std::string> CoreLibraryPath();

}  // namespace fucina

#endif  // FUCINA_REGISTRY_PLUGIN_LOADER_H_
