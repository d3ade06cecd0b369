#include "registry/plugin_loader.h"

#include <dlfcn.h>  // RTLD_NODELETE, which Boost does not name

#include <boost/dll/runtime_symbol_info.hpp>
#include <boost/dll/shared_library.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "fucina/diag/log.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "registry/plugin_path.h"

namespace fucina {
namespace {

// "key=value;key=value" by key.
std::map<std::string, std::string> ParseTag(absl::string_view tag) {
  std::map<std::string, std::string> fields;
  for (absl::string_view field : absl::StrSplit(tag, ';')) {
    const std::pair<std::string, std::string> pair =
        absl::StrSplit(field, absl::MaxSplits('=', 1));
    fields.insert(pair);
  }
  return fields;
}

std::string Shown(const std::map<std::string, std::string>& fields,
                  const std::string& key) {
  const auto it = fields.find(key);
  if (it == fields.end() || it->second.empty()) return "none";
  return Printable(it->second);
}

void CompareTags(absl::string_view theirs, std::string& rows) {
  const auto plugin = ParseTag(theirs);
  const auto ours = ParseTag(FUCINA_ABI_TAG);
  auto keys = plugin;
  keys.insert(ours.begin(), ours.end());
  for (const auto& [key, unused] : keys) {
    const std::string a = Shown(plugin, key);
    const std::string b = Shown(ours, key);
    if (a == b) continue;
    absl::StrAppend(&rows, "\n    ", Printable(key), ": plugin ", a,
                    ", this fucina ", b);
  }
}

void CompareLayouts(const PluginManifest& manifest, std::string& rows) {
  std::map<absl::string_view, const LayoutEntry*> theirs;
  for (std::uint32_t i = 0; i < manifest.num_layout; ++i) {
    theirs[manifest.layout[i].type] = &manifest.layout[i];
  }
  for (const LayoutEntry& ours : kLayoutTable) {
    const auto it = theirs.find(ours.type);
    if (it == theirs.end()) {
      absl::StrAppend(&rows, "\n    ", ours.type,
                      ": plugin does not know it, this fucina has it");
      continue;
    }
    const LayoutEntry& plugin = *it->second;
    if (plugin.size != ours.size) {
      absl::StrAppend(&rows, "\n    ", ours.type, ": plugin ", plugin.size,
                      " bytes, this fucina ", ours.size, " bytes");
    } else if (plugin.alignment != ours.alignment) {
      absl::StrAppend(&rows, "\n    ", ours.type, ": plugin aligned to ",
                      plugin.alignment, " bytes, this fucina to ",
                      ours.alignment);
    }
    theirs.erase(it);
  }
  for (const auto& [type, unused] : theirs) {
    absl::StrAppend(&rows, "\n    ", Printable(type),
                    ": plugin has it, this fucina does not know it");
  }
}

absl::Status LinkerRefusal(const std::string& path, absl::string_view text) {
  return absl::FailedPreconditionError(
      absl::StrCat(Printable(path), ": cannot be loaded: ", Printable(text),
                   "; it was probably built for another fucina (this is ",
                   FUCINA_VERSION_MAJOR_MINOR, ")"));
}

absl::Status NotAPlugin(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(Printable(path), ": not a fucina plugin: ", why));
}

}  // namespace

struct PluginLibrary::Handle {
  boost::dll::shared_library library;
};

PluginLibrary::PluginLibrary() = default;
PluginLibrary::~PluginLibrary() = default;

absl::Status CheckAbi(const PluginManifest& manifest, absl::string_view file) {
  const bool same_size = manifest.manifest_size == sizeof(PluginManifest);
  std::string rows;
  if (!same_size) {
    absl::StrAppend(&rows, "\n    manifest: plugin ", manifest.manifest_size,
                    " bytes, this fucina ", sizeof(PluginManifest), " bytes");
  }
  CompareTags(manifest.abi_tag, rows);
  // A table written by another core may have another shape: compare it only
  // when everything before it agrees.
  if (rows.empty()) CompareLayouts(manifest, rows);
  if (rows.empty()) return absl::OkStatus();

  std::string who = Printable(manifest.name);
  // Fields past the frozen four are where we expect them only at equal size.
  if (same_size) {
    absl::StrAppend(&who, " ", Printable(manifest.version), ", built with ",
                    Printable(manifest.built_with));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      Printable(file), " (", who, ") was built for another fucina:", rows,
      "\n    rebuild it against this one"));
}

absl::StatusOr<std::unique_ptr<PluginLibrary>> PluginLibrary::Open(
    const std::string& path) {
  FUCINA_RETURN_IF_ERROR(CheckPluginFormat(path));

  std::unique_ptr<PluginLibrary> plugin(new PluginLibrary);
  plugin->path_ = path;
  plugin->handle_ = std::make_unique<Handle>();
  try {
    // NOW: a missing symbol shows here and not in the middle of an answer.
    // LOCAL: plugins cannot see one another's symbols. NODELETE: see above.
    plugin->handle_->library.load(
        path, static_cast<boost::dll::load_mode::type>(
                  boost::dll::load_mode::rtld_now |
                  boost::dll::load_mode::rtld_local | RTLD_NODELETE));
    if (!plugin->handle_->library.has("fucina_plugin_manifest")) {
      return NotAPlugin(path, "no symbol 'fucina_plugin_manifest'");
    }
    plugin->manifest_ = static_cast<const PluginManifest*>(
        plugin->handle_->library.get<const void*>("fucina_plugin_manifest"));
  } catch (const std::exception& error) {  // Boost.DLL, plugin constructors
    return LinkerRefusal(path, error.what());
  } catch (...) {
    return LinkerRefusal(path, "an exception of unknown type");
  }

  const PluginManifest* manifest = plugin->manifest_;
  if (manifest == nullptr || manifest->magic != kPluginMagic) {
    return NotAPlugin(path, "its manifest does not begin with 'FUCI'");
  }
  if (manifest->abi_tag == nullptr || manifest->name == nullptr) {
    return NotAPlugin(path, "its manifest has no tag or no name");
  }
  const std::string file = std::filesystem::path(path).filename().string();
  FUCINA_RETURN_IF_ERROR(CheckAbi(*manifest, file));
  const std::string expected = PluginNameOf(file).value_or(file);
  if (manifest->name != expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        Printable(path), ": calls itself '", Printable(manifest->name),
        "', expected '", Printable(expected), "' from its file name"));
  }
  if (manifest->version == nullptr || manifest->license == nullptr ||
      manifest->built_with == nullptr || manifest->register_plugin == nullptr) {
    return NotAPlugin(path, "its manifest is incomplete");
  }
  return plugin;
}

absl::Status CallRegister(const PluginManifest& manifest,
                          absl::string_view file, Registrar& registrar) {
  absl::Status status;
  try {
    status = manifest.register_plugin(registrar);
  } catch (const std::exception& error) {
    return absl::InternalError(
        absl::StrCat(Printable(file),
                     " threw while registering: ", Printable(error.what())));
  } catch (...) {
    return absl::InternalError(
        absl::StrCat(Printable(file),
                     " threw while registering: an exception of unknown type"));
  }
  if (status.ok()) return status;
  return absl::Status(
      status.code(), absl::StrCat(Printable(file),
                                  ": registration failed: ", status.message()));
}

absl::StatusOr<std::string> CoreLibraryPath() {
  std::error_code error;
  // Any function of the core will do; its address lies inside libfucina.
  const std::filesystem::path location =
      boost::dll::symbol_location_ptr(&GetLogLevel, error);
  if (!error) {
    const std::filesystem::path canonical =
        std::filesystem::canonical(location, error);
    if (!error) return canonical.string();
  }
  return absl::InternalError(absl::StrCat(
      "cannot tell where libfucina was loaded from: ", error.message()));
}

}  // namespace fucina
