#include "cli/plugins_command.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "registry/registry.h"

namespace fucina::cli {
namespace {

constexpr char kUsage[] =
    "usage: fucina plugins [--verbose] [--json] [--plugin NAME|PATH]...\n"
    "Lists the plugins found, what they offer, which files were refused and"
    " why,\nand the directories searched.\n"
    "  --verbose       options of everything that is offered\n"
    "  --json          the same as one JSON object\n"
    "  --plugin NAME   load only these; a value with a slash is a file\n";

struct Arguments {
  bool verbose = false;
  bool json = false;
  bool help = false;
  std::optional<std::vector<PluginRequest>> plugins;
};

absl::StatusOr<Arguments> Parse(std::span<const std::string> args) {
  const std::vector<std::string> known = {"--verbose", "--json", "--plugin",
                                          "--help"};
  Arguments parsed;
  for (std::size_t i = 0; i < args.size(); ++i) {
    absl::string_view arg = args[i];
    if (arg == "--verbose") {
      parsed.verbose = true;
    } else if (arg == "--json") {
      parsed.json = true;
    } else if (arg == "--help" || arg == "-h") {
      parsed.help = true;
    } else if (arg == "--plugin" || absl::ConsumePrefix(&arg, "--plugin=")) {
      std::string value(arg);
      if (arg == "--plugin") {
        if (++i == args.size()) {
          return absl::InvalidArgumentError("missing value for --plugin");
        }
        value = args[i];
      }
      if (value.empty()) {
        return absl::InvalidArgumentError(
            "--plugin: expected a plugin's name or file, found ''");
      }
      if (!parsed.plugins.has_value()) parsed.plugins.emplace();
      parsed.plugins->push_back({std::move(value), "--plugin: "});
    } else {
      const std::string nearest = NearestName(args[i], known);
      return absl::InvalidArgumentError(absl::StrCat(
          "unknown argument of plugins: ", Printable(args[i]),
          nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest)));
    }
  }
  return parsed;
}

// --- text
// ----------------------------------------------------------------------

template <typename Descriptor>
void WriteKind(absl::string_view title,
               const Registry::Table<Descriptor>& table, bool verbose,
               std::ostream& out) {
  if (table.empty()) return;
  out << title << "\n";
  std::size_t width = 0;
  for (const auto& [name, unused] : table) width = std::max(width, name.size());
  for (const auto& [name, entry] : table) {
    out << absl::StrFormat("  %-*s  %s  (%s)\n", static_cast<int>(width), name,
                           Printable(entry.descriptor.summary),
                           Printable(entry.plugin->file));
    if (!verbose) continue;
    for (const OptionSpec& option : entry.descriptor.options) {
      out << "      " << option.name << ": " << Name(option.type)
          << ", initially '" << Printable(option.default_value) << "'; "
          << Printable(option.doc) << "\n";
    }
    if (entry.descriptor.options.empty()) out << "      no options\n";
  }
}

void WriteText(const Registry& registry, bool verbose, std::ostream& out) {
  out << "plugins\n";
  for (const auto& plugin : registry.plugins()) {
    out << "  " << Printable(plugin->name) << " " << Printable(plugin->version)
        << "  " << Printable(plugin->license) << "  built with "
        << Printable(plugin->built_with) << "  " << Printable(plugin->path)
        << "\n";
  }
  if (registry.plugins().empty()) out << "  none\n";
  WriteKind("families", registry.families(), verbose, out);
  WriteKind("adapters", registry.adapters(), verbose, out);
  WriteKind("drafters", registry.drafters(), verbose, out);
  WriteKind("constraints", registry.constraints(), verbose, out);
  if (!registry.refused().empty()) {
    out << "refused\n";
    for (const RefusedPlugin& plugin : registry.refused()) {
      out << "  " << Printable(plugin.path) << "\n    "
          << plugin.reason.message() << "\n";
    }
  }
  out << "searched\n";
  for (const SearchedDirectory& place : registry.searched()) {
    out << "  " << Printable(place.directory.path) << "  ("
        << place.directory.origin << "; "
        << (place.note.empty() ? absl::StrCat(place.found, " found")
                               : place.note)
        << ")\n";
  }
}

// --- JSON
// ----------------------------------------------------------------------

using Json = nlohmann::ordered_json;

std::string Text(absl::string_view text) { return std::string(text); }

template <typename Descriptor>
Json JsonOf(const Registry::Table<Descriptor>& table) {
  Json list = Json::array();
  for (const auto& [name, entry] : table) {
    Json options = Json::array();
    for (const OptionSpec& option : entry.descriptor.options) {
      options.push_back({{"name", Text(option.name)},
                         {"expects", Text(Name(option.type))},
                         {"default", Text(option.default_value)},
                         {"doc", Text(option.doc)}});
    }
    list.push_back({{"name", name},
                    {"summary", Text(entry.descriptor.summary)},
                    {"plugin", entry.plugin->name},
                    {"options", std::move(options)}});
  }
  return list;
}

void WriteJson(const Registry& registry, std::ostream& out) {
  Json plugins = Json::array();
  for (const auto& plugin : registry.plugins()) {
    plugins.push_back({{"name", plugin->name},
                       {"version", plugin->version},
                       {"license", plugin->license},
                       {"built_with", plugin->built_with},
                       {"path", plugin->path}});
  }
  Json refused = Json::array();
  for (const RefusedPlugin& plugin : registry.refused()) {
    refused.push_back({{"name", plugin.name},
                       {"path", plugin.path},
                       {"reason", Text(plugin.reason.message())}});
  }
  Json searched = Json::array();
  for (const SearchedDirectory& place : registry.searched()) {
    searched.push_back({{"path", place.directory.path},
                        {"origin", place.directory.origin},
                        {"found", place.found},
                        {"note", place.note}});
  }
  const Json all = {{"plugins", std::move(plugins)},
                    {"families", JsonOf(registry.families())},
                    {"adapters", JsonOf(registry.adapters())},
                    {"drafters", JsonOf(registry.drafters())},
                    {"constraints", JsonOf(registry.constraints())},
                    {"refused", std::move(refused)},
                    {"searched", std::move(searched)}};
  // Paths are bytes; JSON is not.
  out << all.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace

absl::Status RunPlugins(std::span<const std::string> args, std::ostream& out) {
  FUCINA_ASSIGN_OR_RETURN(const Arguments arguments, Parse(args));
  if (arguments.help) {
    out << kUsage;
    return absl::OkStatus();
  }
  FUCINA_ASSIGN_OR_RETURN(const std::vector<PluginDirectory> directories,
                          DefaultPluginDirectories());
  Registry registry;
  const absl::Status status =
      arguments.plugins.has_value()
          ? registry.LoadNamed(*arguments.plugins, directories)
          : registry.LoadFound(directories);
  if (arguments.json) {
    WriteJson(registry, out);
  } else {
    WriteText(registry, arguments.verbose, out);
  }
  return status;
}

}  // namespace fucina::cli
