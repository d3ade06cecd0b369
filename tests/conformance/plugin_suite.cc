#include "tests/conformance/plugin_suite.h"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fucina/diag/status_macros.h"

namespace fucina::conformance {
namespace {

// Names of the symbols that a shared library defines for others. The file was
// found to be a complete library before, so its tables are where it says.
absl::StatusOr<std::vector<std::string>> ExportedSymbols(
    const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  const auto read = [&bytes](std::uint64_t offset, std::size_t size,
                             void* out) {
    if (offset > bytes.size() || size > bytes.size() - offset) return false;
    std::memcpy(out, bytes.data() + offset, size);
    return true;
  };
  std::vector<std::string> names;
  Elf64_Ehdr header;
  if (!read(0, sizeof(header), &header)) {
    return absl::InvalidArgumentError("no ELF header");
  }
  for (int i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!read(header.e_shoff + i * sizeof(section), sizeof(section),
              &section)) {
      return absl::InvalidArgumentError("cut short");
    }
    if (section.sh_type != SHT_DYNSYM) continue;
    Elf64_Shdr strings;
    if (!read(header.e_shoff + section.sh_link * sizeof(strings),
              sizeof(strings), &strings)) {
      return absl::InvalidArgumentError("cut short");
    }
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size;
         at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      if (!read(section.sh_offset + at, sizeof(symbol), &symbol)) {
        return absl::InvalidArgumentError("cut short");
      }
      if (symbol.st_shndx == SHN_UNDEF ||
          ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) {
        continue;
      }
      const std::uint64_t name = strings.sh_offset + symbol.st_name;
      if (name >= bytes.size()) continue;
      names.emplace_back(bytes.c_str() + name);
    }
  }
  return names;
}

absl::Status ExportsOneSymbol(const std::string& path) {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          ExportedSymbols(path));
  if (names == std::vector<std::string>{"fucina_plugin_manifest"}) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(
      "expected fucina_plugin_manifest alone, found ", names.size(), ": ",
      absl::StrJoin(names.begin(),
                    names.begin() + std::min<std::size_t>(names.size(), 5),
                    ", ")));
}

absl::Status LoadInto(const std::string& path, Registry& registry) {
  const PluginRequest request{path, ""};
  return registry.LoadNamed({&request, 1}, {});
}

absl::Status RegistersTwice(const std::string& path, const Registry& first) {
  Registry second;
  FUCINA_RETURN_IF_ERROR(LoadInto(path, second));
  if (second.families().size() != first.families().size() ||
      second.adapters().size() != first.adapters().size() ||
      second.drafters().size() != first.drafters().size() ||
      second.constraints().size() != first.constraints().size()) {
    return absl::InternalError("the second registry got other descriptors");
  }
  return absl::OkStatus();
}

template <typename Descriptor>
absl::Status OptionsAreSound(const Registry::Table<Descriptor>& table) {
  for (const auto& [name, entry] : table) {
    if (entry.descriptor.summary.empty()) {
      return absl::InternalError(absl::StrCat("'", name, "' has no summary"));
    }
    for (const OptionSpec& spec : entry.descriptor.options) {
      if (spec.doc.empty()) {
        return absl::InternalError(absl::StrCat("option '", spec.name, "' of '",
                                                name, "' is undocumented"));
      }
    }
    const auto unknown = Options::Make(entry.descriptor.options,
                                       {{"no_such_option_exists", "1"}});
    if (unknown.ok()) {
      return absl::InternalError(
          absl::StrCat("'", name, "' takes an unknown option"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPlugin(const std::string& path, Registry& registry,
                         Report& report) {
  report.Subject("plugin");
  const absl::Status loaded = LoadInto(path, registry);
  report.Property("is trusted, verified and registers", loaded);
  FUCINA_RETURN_IF_ERROR(loaded);
  report.Property("exports one symbol", ExportsOneSymbol(path));
  report.Property("registers into a second registry as well",
                  RegistersTwice(path, registry));
  absl::Status options = OptionsAreSound(registry.families());
  options.Update(OptionsAreSound(registry.adapters()));
  options.Update(OptionsAreSound(registry.drafters()));
  options.Update(OptionsAreSound(registry.constraints()));
  report.Property("documents its options and takes no others", options);
  return absl::OkStatus();
}

}  // namespace fucina::conformance
