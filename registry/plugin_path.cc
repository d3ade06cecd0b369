#include "registry/plugin_path.h"

#include <elf.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "registry/plugin_loader.h"  // CoreLibraryPath

namespace fucina {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kPrefix = "libfucina_";
constexpr absl::string_view kSuffix = ".so";

bool WritableByOthers(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) != 0 || (info.st_mode & S_IWOTH) != 0;
}

absl::Status Incomplete(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(Printable(path), ": not a complete shared library: ", why));
}

// Reads `size` bytes at `offset`; false when the file has fewer.
bool ReadAt(std::ifstream& file, std::uint64_t file_bytes, std::uint64_t offset,
            std::uint64_t size, void* out) {
  if (offset > file_bytes || size > file_bytes - offset) return false;
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(static_cast<char*>(out), static_cast<std::streamsize>(size));
  return file.good();
}

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#else
#error "plugins: name this processor's ELF machine number"
#endif

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitPluginPath(
    absl::string_view value) {
  std::vector<std::string> directories;
  if (value.empty()) return directories;
  for (absl::string_view element : absl::StrSplit(value, ':')) {
    if (!absl::StartsWith(element, "/")) {
      return absl::InvalidArgumentError(absl::StrCat(
          kPluginPathVariable, ": '", Printable(element),
          "' is not an absolute path; write every directory in full, separated "
          "by single colons"));
    }
    directories.emplace_back(element);
  }
  return directories;
}

absl::StatusOr<std::vector<PluginDirectory>> DefaultPluginDirectories() {
  std::vector<PluginDirectory> directories;
  if (const char* value = secure_getenv(kPluginPathVariable)) {
    FUCINA_ASSIGN_OR_RETURN(std::vector<std::string> paths,
                            SplitPluginPath(value));
    for (std::string& path : paths) {
      directories.push_back({std::move(path), kPluginPathVariable});
    }
  }
  FUCINA_ASSIGN_OR_RETURN(std::string core, CoreLibraryPath());
  directories.push_back(
      {(fs::path(core).parent_path() / "fucina" / "plugins").string(),
       "beside libfucina"});
  return directories;
}

std::optional<std::string> PluginNameOf(absl::string_view file_name) {
  if (!absl::StartsWith(file_name, kPrefix) ||
      !absl::EndsWith(file_name, kSuffix) ||
      file_name.size() <= kPrefix.size() + kSuffix.size()) {
    return std::nullopt;
  }
  return std::string(file_name.substr(
      kPrefix.size(), file_name.size() - kPrefix.size() - kSuffix.size()));
}

absl::StatusOr<std::string> TrustedPluginFile(const std::string& path) {
  std::error_code error;
  const fs::path canonical = fs::canonical(path, error);
  if (error) {
    if (error == std::errc::no_such_file_or_directory) {
      return absl::NotFoundError(
          absl::StrCat(Printable(path), ": no such file"));
    }
    return absl::InvalidArgumentError(
        absl::StrCat(Printable(path), ": ", error.message()));
  }
  const std::string shown = Printable(canonical.string());
  if (!fs::is_regular_file(canonical, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, ": not a regular file"));
  }
  if (!PluginNameOf(canonical.filename().string()).has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, ": not called libfucina_<name>.so"));
  }
  if (WritableByOthers(canonical.string())) {
    return absl::PermissionDeniedError(
        absl::StrCat(shown, ": the file is world-writable; chmod o-w it"));
  }
  // Whoever can write to the directory can replace the file; and a link is only
  // as trustworthy as the directory that holds it.
  const std::string named_in = fs::path(path).parent_path().string();
  for (const std::string& directory :
       {canonical.parent_path().string(), named_in}) {
    if (WritableByOthers(directory.empty() ? "." : directory)) {
      return absl::PermissionDeniedError(
          absl::StrCat(directory == named_in ? Printable(path) : shown,
                       ": its directory is world-writable; chmod o-w ",
                       Printable(directory)));
    }
  }
  return canonical.string();
}

absl::Status CheckPluginFormat(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) {
    return absl::InvalidArgumentError(absl::StrCat(
        Printable(path), ": cannot be read: ", std::strerror(errno)));
  }
  const auto file_bytes = static_cast<std::uint64_t>(file.tellg());
  if (file_bytes == 0) return Incomplete(path, "the file is empty");

  Elf64_Ehdr header;
  if (!ReadAt(file, file_bytes, 0, sizeof(header), &header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return Incomplete(path, "no ELF header");
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != kMachine) {
    return Incomplete(path, "built for another processor");
  }
  if (header.e_type != ET_DYN) {
    return Incomplete(path, "an ELF file of another kind");
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr) ||
      header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0 ||
      header.e_shstrndx >= header.e_shnum) {
    return Incomplete(path, "its ELF header contradicts itself");
  }

  // What the loader will map must be there.
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!ReadAt(file, file_bytes, header.e_phoff,
              segments.size() * sizeof(Elf64_Phdr), segments.data())) {
    return Incomplete(path, "it was cut short");
  }
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD) continue;
    if (segment.p_offset > file_bytes ||
        segment.p_filesz > file_bytes - segment.p_offset) {
      return Incomplete(path, "it was cut short");
    }
  }

  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (!ReadAt(file, file_bytes, header.e_shoff,
              sections.size() * sizeof(Elf64_Shdr), sections.data())) {
    return Incomplete(path, "it was cut short");
  }
  const Elf64_Shdr& names_section = sections[header.e_shstrndx];
  // Far above any library's list of names, far below what could hurt.
  constexpr std::uint64_t kMaxNamesBytes = 16U << 20;
  if (names_section.sh_size == 0 || names_section.sh_size > kMaxNamesBytes ||
      names_section.sh_offset > file_bytes ||
      names_section.sh_size > file_bytes - names_section.sh_offset) {
    return Incomplete(path, "it was cut short");
  }
  std::string names(names_section.sh_size, '\0');
  if (!ReadAt(file, file_bytes, names_section.sh_offset, names.size(),
              names.data())) {
    return Incomplete(path, "it was cut short");
  }
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_name >= names.size()) continue;
    // c_str() ends at the next NUL or at the end of the table.
    if (std::strcmp(names.c_str() + section.sh_name, "fucina") == 0) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Printable(path),
                   ": not a fucina plugin: no section 'fucina'; "
                   "is FUCINA_PLUGIN missing in its source"));
}

PluginScan ScanPluginDirectory(const std::string& directory) {
  PluginScan scan;
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  if (error) {
    scan.note = error == std::errc::no_such_file_or_directory ? "absent"
                                                              : error.message();
    return scan;
  }
  while (entries != fs::directory_iterator()) {
    if (PluginNameOf(entries->path().filename().string()).has_value()) {
      scan.files.push_back(entries->path().string());
    }
    entries.increment(error);
    if (error) {
      scan.note = error.message();
      break;
    }
  }
  std::sort(scan.files.begin(), scan.files.end());
  if (scan.files.empty() && scan.note.empty()) scan.note = "no plugins";
  return scan;
}

}  // namespace fucina
