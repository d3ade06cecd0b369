#include "registry/registry.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fucina/diag/log.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"

namespace fucina {
namespace {

namespace fs = std::filesystem;

template <typename Descriptor>
constexpr absl::string_view kKind = "";
template <>
constexpr absl::string_view kKind<Family> = "family";
template <>
constexpr absl::string_view kKind<AdapterSource> = "adapter";
template <>
constexpr absl::string_view kKind<DrafterKind> = "drafter";
template <>
constexpr absl::string_view kKind<ConstraintKind> = "constraint";

bool LowerOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// [a-z0-9][a-z0-9_.-]*
bool ValidName(absl::string_view name) {
  return !name.empty() && LowerOrDigit(name[0]) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return LowerOrDigit(c) || c == '_' || c == '.' || c == '-';
         });
}

// [a-z][a-z0-9_]*
bool ValidOptionName(absl::string_view name) {
  return !name.empty() && name[0] >= 'a' && name[0] <= 'z' &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return LowerOrDigit(c) || c == '_'; });
}

absl::Status CheckOptions(std::span<const OptionSpec> options) {
  for (std::size_t i = 0; i < options.size(); ++i) {
    const OptionSpec& spec = options[i];
    if (!ValidOptionName(spec.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("option name '", Printable(spec.name),
                       "' is not of the form [a-z][a-z0-9_]*"));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (options[j].name == spec.name) {
        return absl::InvalidArgumentError(
            absl::StrCat("option '", spec.name, "' is declared twice"));
      }
    }
  }
  // Parses every default.
  return Options::Make(options, {}).status();
}

bool HasFactory(const Family& d) { return d.load != nullptr; }
bool HasFactory(const AdapterSource& d) { return d.make != nullptr; }
bool HasFactory(const DrafterKind& d) { return d.make != nullptr; }
bool HasFactory(const ConstraintKind& d) { return d.make != nullptr; }

std::string FileOf(const std::string& path) {
  return fs::path(path).filename().string();
}

std::string NameOfFile(const std::string& path) {
  return PluginNameOf(FileOf(path)).value_or(FileOf(path));
}

}  // namespace

// Where a plugin's descriptors wait until all of them are known to be good.
class Registry::Staging final : public Registrar {
 public:
  absl::Status Add(const Family& d) override { return Stage(d, families); }
  absl::Status Add(const AdapterSource& d) override {
    return Stage(d, adapters);
  }
  absl::Status Add(const DrafterKind& d) override { return Stage(d, drafters); }
  absl::Status Add(const ConstraintKind& d) override {
    return Stage(d, constraints);
  }

  // The first failed Add: a plugin that swallows it is not half registered.
  absl::Status first_error;
  Table<Family> families;
  Table<AdapterSource> adapters;
  Table<DrafterKind> drafters;
  Table<ConstraintKind> constraints;

 private:
  template <typename Descriptor>
  absl::Status Stage(const Descriptor& descriptor, Table<Descriptor>& table) {
    absl::Status status = Check(descriptor, table);
    if (status.ok()) {
      table[std::string(descriptor.name)].descriptor = descriptor;
    } else if (first_error.ok()) {
      first_error = status;
    }
    return status;
  }

  template <typename Descriptor>
  absl::Status Check(const Descriptor& descriptor,
                     const Table<Descriptor>& table) {
    const absl::string_view kind = kKind<Descriptor>;
    if (!ValidName(descriptor.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat(kind, " name '", Printable(descriptor.name),
                       "' is not of the form [a-z0-9][a-z0-9_.-]*"));
    }
    const std::string which = absl::StrCat(kind, " '", descriptor.name, "'");
    if (!HasFactory(descriptor)) {
      return absl::InvalidArgumentError(absl::StrCat(which, " has no factory"));
    }
    if (absl::Status options = CheckOptions(descriptor.options);
        !options.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(which, ": ", options.message()));
    }
    if (table.find(descriptor.name) != table.end()) {
      return absl::AlreadyExistsError(absl::StrCat(which, " is added twice"));
    }
    return absl::OkStatus();
  }
};

Registry::Registry() = default;
Registry::~Registry() = default;

absl::Status Registry::AddBuiltin(const PluginManifest& manifest) {
  const std::string file = absl::StrCat(manifest.name, " (builtin)");
  FUCINA_RETURN_IF_ERROR(CheckAbi(manifest, file));
  return Register(manifest, {.name = manifest.name,
                             .path = "builtin",
                             .file = file,
                             .version = manifest.version,
                             .license = manifest.license,
                             .built_with = manifest.built_with});
}

absl::Status Registry::Register(const PluginManifest& manifest,
                                PluginRecord record) {
  Staging staging;
  FUCINA_RETURN_IF_ERROR(CallRegister(manifest, record.file, staging));
  if (!staging.first_error.ok()) {
    return absl::Status(
        staging.first_error.code(),
        absl::StrCat(Printable(record.file),
                     ": registration failed: ", staging.first_error.message()));
  }

  std::vector<std::string> clashes;
  const auto check = [&]<typename D>(const Table<D>& staged,
                                     const Table<D>& registered) {
    for (const auto& [name, unused] : staged) {
      const auto it = registered.find(name);
      if (it == registered.end()) continue;
      clashes.push_back(absl::StrCat(
          kKind<D>, " '", name, "' is claimed by both ",
          Printable(it->second.plugin->file), " and ", Printable(record.file),
          " (", Printable(it->second.plugin->path), ", ",
          Printable(record.path), ")"));
    }
  };
  check(staging.families, families_);
  check(staging.adapters, adapters_);
  check(staging.drafters, drafters_);
  check(staging.constraints, constraints_);
  if (!clashes.empty()) {
    return absl::AlreadyExistsError(
        absl::StrCat(absl::StrJoin(clashes, "\n"),
                     "\n    list the plugins you want under 'plugins:' in the "
                     "pipeline file"));
  }

  plugins_.push_back(std::make_unique<PluginRecord>(std::move(record)));
  const PluginRecord* owner = plugins_.back().get();
  const auto merge = [owner]<typename D>(Table<D>& staged,
                                         Table<D>& registered) {
    for (auto& [name, entry] : staged) {
      entry.plugin = owner;
      registered.emplace(name, entry);
    }
  };
  merge(staging.families, families_);
  merge(staging.adapters, adapters_);
  merge(staging.drafters, drafters_);
  merge(staging.constraints, constraints_);
  return absl::OkStatus();
}

absl::Status Registry::LoadFile(const std::string& path) {
  FUCINA_ASSIGN_OR_RETURN(const std::string canonical, TrustedPluginFile(path));
  // The same file by another name: a link, or named twice.
  for (const auto& plugin : plugins_) {
    if (plugin->path == canonical) return absl::OkStatus();
  }
  FUCINA_ASSIGN_OR_RETURN(std::unique_ptr<PluginLibrary> library,
                          PluginLibrary::Open(canonical));
  const PluginManifest& manifest = library->manifest();
  FUCINA_RETURN_IF_ERROR(
      Register(manifest, {.name = manifest.name,
                          .path = canonical,
                          .file = FileOf(canonical),
                          .version = manifest.version,
                          .license = manifest.license,
                          .built_with = manifest.built_with}));
  libraries_.push_back(std::move(library));
  FUCINA_LOG(INFO) << "plugin " << Printable(canonical);
  return absl::OkStatus();
}

absl::Status Registry::LoadFound(
    const std::vector<PluginDirectory>& directories) {
  std::map<std::string, std::string> taken;  // file name to path
  absl::Status clash;
  for (const PluginDirectory& directory : directories) {
    const PluginScan scan = ScanPluginDirectory(directory.path);
    if (!scan.note.empty() && directory.origin == kPluginPathVariable) {
      FUCINA_LOG(WARNING) << kPluginPathVariable << ": "
                          << Printable(directory.path) << ": " << scan.note;
    }
    searched_.push_back(
        {directory, static_cast<int>(scan.files.size()), scan.note});
    for (const std::string& path : scan.files) {
      const auto [it, inserted] = taken.emplace(FileOf(path), path);
      if (!inserted) {
        FUCINA_LOG(INFO) << "plugin " << Printable(it->second) << " shadows "
                         << Printable(path);
        continue;
      }
      absl::Status status = LoadFile(path);
      if (status.ok()) continue;
      refused_.push_back({NameOfFile(path), path, status});
      if (absl::IsAlreadyExists(status)) {
        if (clash.ok()) clash = std::move(status);
      } else {
        FUCINA_LOG(WARNING) << "plugin refused: " << status.message();
      }
    }
  }
  return clash;
}

absl::Status Registry::LoadNamed(
    std::span<const PluginRequest> requests,
    const std::vector<PluginDirectory>& directories) {
  for (const PluginDirectory& directory : directories) {
    const PluginScan scan = ScanPluginDirectory(directory.path);
    searched_.push_back(
        {directory, static_cast<int>(scan.files.size()), scan.note});
  }
  for (const PluginRequest& request : requests) {
    std::string path;
    if (absl::StrContains(request.entry, '/')) {
      path = request.entry;
    } else {
      std::vector<std::string> tried;
      for (const PluginDirectory& directory : directories) {
        const fs::path candidate =
            fs::path(directory.path) /
            absl::StrCat("libfucina_", request.entry, ".so");
        std::error_code error;
        if (path.empty() &&
            fs::symlink_status(candidate, error).type() !=
                fs::file_type::not_found &&
            !error) {
          path = candidate.string();
        }
        tried.push_back(Printable(directory.path));
      }
      if (path.empty()) {
        return absl::NotFoundError(
            absl::StrCat(request.origin, "plugin '", Printable(request.entry),
                         "': no libfucina_", Printable(request.entry),
                         ".so in ", absl::StrJoin(tried, ", ")));
      }
    }
    if (absl::Status status = LoadFile(path); !status.ok()) {
      refused_.push_back({NameOfFile(path), path, status});
      return absl::Status(
          status.code(),
          absl::StrCat(request.origin, "plugin '", Printable(request.entry),
                       "': ", status.message()));
    }
  }
  return absl::OkStatus();
}

template <typename Descriptor>
absl::StatusOr<const Registered<Descriptor>*> Registry::Find(
    const Table<Descriptor>& table, absl::string_view kind,
    absl::string_view name) const {
  if (const auto it = table.find(name); it != table.end()) return &it->second;

  std::vector<std::string> known;
  for (const auto& [key, unused] : table) known.push_back(key);
  std::string message = absl::StrCat(
      "no ", kind, " '", Printable(name),
      "'; known: ", known.empty() ? "none" : absl::StrJoin(known, ", "));
  for (const RefusedPlugin& plugin : refused_) {
    // libfucina_qwen3.so is the likely home of qwen3moe, and the reverse.
    if (absl::StartsWith(name, plugin.name) ||
        absl::StartsWith(plugin.name, name)) {
      absl::StrAppend(&message, "\n    refused: ", plugin.reason.message());
    }
  }
  if (!searched_.empty()) {
    absl::StrAppend(
        &message, "\n    plugins are looked for in ",
        absl::StrJoin(searched_, ", ",
                      [](std::string* out, const SearchedDirectory& d) {
                        absl::StrAppend(out, Printable(d.directory.path));
                      }));
  }
  return absl::NotFoundError(message);
}

absl::StatusOr<const Registered<Family>*> Registry::FindFamily(
    absl::string_view name) const {
  return Find(families_, "family", name);
}

absl::StatusOr<const Registered<AdapterSource>*> Registry::FindAdapter(
    absl::string_view name) const {
  return Find(adapters_, "adapter", name);
}

absl::StatusOr<const Registered<DrafterKind>*> Registry::FindDrafter(
    absl::string_view name) const {
  return Find(drafters_, "drafter", name);
}

absl::StatusOr<const Registered<ConstraintKind>*> Registry::FindConstraint(
    absl::string_view name) const {
  return Find(constraints_, "constraint", name);
}

}  // namespace fucina
