#ifndef FUCINA_REGISTRY_REGISTRY_H_
#define FUCINA_REGISTRY_REGISTRY_H_

// Names to plugin descriptors. An ordinary object: tests make many. Loading
// fills it, then it is read only; reading is safe from several threads.
//
// Invariants: a key (kind + name) has exactly one owner. A plugin is in
// completely or not at all. What was refused is remembered with its reason.
// Descriptors live as long as the registry and point into plugins, which are
// never unloaded.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/plugin/manifest.h"
#include "registry/plugin_loader.h"
#include "registry/plugin_path.h"

namespace fucina {

// A plugin that is in.
struct PluginRecord {
  std::string name;
  std::string path;  // canonical; "builtin" for a manifest handed over directly
  std::string file;  // how messages call it: the last part of `path`
  std::string version;
  std::string license;
  std::string built_with;
};

// A plugin file that was found or named and is not in.
struct RefusedPlugin {
  std::string name;  // from the file name
  std::string path;
  absl::Status reason;
};

// A searched directory and, when it gave no plugin, why.
struct SearchedDirectory {
  PluginDirectory directory;
  int found = 0;
  std::string note;
};

// A descriptor and the plugin that owns it.
template <typename Descriptor>
struct Registered {
  Descriptor descriptor;
  const PluginRecord* plugin = nullptr;
};

// One entry of `plugins:` or --plugin.
struct PluginRequest {
  std::string entry;   // a name, or a file when it has a slash
  std::string origin;  // put before messages: "pipeline.yaml:7: " or empty
};

class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Registers a plugin that is linked into the program. Same checks, same
  // staging, same errors as for a file.
  absl::Status AddBuiltin(const PluginManifest& manifest);

  // Loads every plugin in `directories`, earlier ones shadowing later ones by
  // file name. A file that is refused is logged as a warning, remembered and no
  // error; two claims on one key are: AlreadyExists, after all files were seen.
  absl::Status LoadFound(const std::vector<PluginDirectory>& directories);

  // Loads only these. A name is searched in `directories`. The first one that
  // cannot be loaded is the error.
  absl::Status LoadNamed(std::span<const PluginRequest> requests,
                         const std::vector<PluginDirectory>& directories);

  // Null never: NotFound lists the known names, refused plugins whose file name
  // fits, and the directories searched.
  absl::StatusOr<const Registered<Family>*> FindFamily(
      absl::string_view name) const;
  absl::StatusOr<const Registered<AdapterSource>*> FindAdapter(
      absl::string_view name) const;
  absl::StatusOr<const Registered<DrafterKind>*> FindDrafter(
      absl::string_view name) const;
  absl::StatusOr<const Registered<ConstraintKind>*> FindConstraint(
      absl::string_view name) const;

  template <typename Descriptor>
  using Table = std::map<std::string, Registered<Descriptor>, std::less<>>;
  const Table<Family>& families() const { return families_; }
  const Table<AdapterSource>& adapters() const { return adapters_; }
  const Table<DrafterKind>& drafters() const { return drafters_; }
  const Table<ConstraintKind>& constraints() const { return constraints_; }

  // In the order in which they were loaded.
  std::span<const std::unique_ptr<PluginRecord>> plugins() const {
    return plugins_;
  }
  std::span<const RefusedPlugin> refused() const { return refused_; }
  std::span<const SearchedDirectory> searched() const { return searched_; }

 private:
  class Staging;

  absl::Status LoadFile(const std::string& path);
  absl::Status Register(const PluginManifest& manifest, PluginRecord record);
  template <typename Descriptor>
  absl::StatusOr<const Registered<Descriptor>*> Find(
      const Table<Descriptor>& table, absl::string_view kind,
      absl::string_view name) const;

  Table<Family> families_;
  Table<AdapterSource> adapters_;
  Table<DrafterKind> drafters_;
  Table<ConstraintKind> constraints_;
  std::vector<std::unique_ptr<PluginRecord>> plugins_;
  std::vector<std::unique_ptr<PluginLibrary>> libraries_;
  std::vector<RefusedPlugin> refused_;
  std::vector<SearchedDirectory> searched_;
};

}  // namespace fucina

#endif  // FUCINA_REGISTRY_REGISTRY_H_
