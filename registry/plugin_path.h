#ifndef FUCINA_REGISTRY_PLUGIN_PATH_H_
#define FUCINA_REGISTRY_PLUGIN_PATH_H_

// Where plugins may come from and what is trusted. A plugin is code with the
// user's rights; the rules here see to it that nobody else chooses it. Nothing
// in this file opens a plugin. Thread-safe: functions without state.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fucina {

// One directory of the search order.
struct PluginDirectory {
  std::string path;    // absolute
  std::string origin;  // who named it: the variable or "beside libfucina"
};

inline constexpr char kPluginPathVariable[] = "FUCINA_PLUGIN_PATH";

// The elements of a colon-separated list. InvalidArgument for a relative or an
// empty element; an empty text has no elements.
absl::StatusOr<std::vector<std::string>> SplitPluginPath(
    absl::string_view value);

// FUCINA_PLUGIN_PATH (ignored for a process with raised privileges), then
// fucina/plugins beside the libfucina that is loaded.
absl::StatusOr<std::vector<PluginDirectory>> DefaultPluginDirectories();

// <name> of "libfucina_<name>.so", or nothing when the file is called
// otherwise.
std::optional<std::string> PluginNameOf(absl::string_view file_name);

// The canonical path of `path`, when it may be loaded: a regular file called
// libfucina_<name>.so which, like its directory and the directory it was named
// in, only its owner and group can write to. NotFound, InvalidArgument or
// PermissionDenied otherwise; the message begins with the path.
absl::StatusOr<std::string> TrustedPluginFile(const std::string& path);

// InvalidArgument unless `path` is a complete shared library for this machine
// ("not a complete shared library") with a section of a plugin ("not a fucina
// plugin"). Reads headers only and trusts none of them: mapping a file that was
// cut short would kill the process.
absl::Status CheckPluginFormat(const std::string& path);

// What one directory scan found, in the order of the files' names. Not
// recursive; files with other names are none of our business.
struct PluginScan {
  std::vector<std::string> files;  // libfucina_*.so, joined with the directory
  std::string note;                // why the directory gave nothing, if so
};
PluginScan ScanPluginDirectory(const std::string& directory);

}  // namespace fucina

#endif  // FUCINA_REGISTRY_PLUGIN_PATH_H_
