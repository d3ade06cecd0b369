// fucina-conformance: does a plugin keep the contract? One line per property on
// standard output. Exit status 0 when all hold, 1 when one does not, 2 for a
// wrong command line, 3 for a plugin or model that cannot be used at all, 4
// when the lines cannot be written.

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fucina/diag/printable.h"
#include "registry/registry.h"
#include "tests/conformance/kind_checks.h"
#include "tests/conformance/plugin_suite.h"
#include "tests/conformance/report.h"
#include "tests/conformance/stdout_trap.h"

namespace fucina::conformance {
namespace {

constexpr char kUsage[] =
    "usage: fucina-conformance --plugin libfucina_<name>.so"
    " [--model <small.gguf>]\n"
    "           [--kind family|drafter|constraint [--name NAME]"
    " [--option KEY=VALUE]...]\n"
    "Checks the promises of the plugin contract. --model is a small model: of"
    " one of the\nplugin's families, or with the vocabulary that its"
    " constraints are made for;\nwithout it only what holds for every plugin is"
    " checked. --kind checks that kind only,\n--name one of its descriptors, "
    "and"
    " --option sets an option of what is checked.\n";

int Usage(const std::string& error) {
  std::cerr << "fucina-conformance: error: " << error << "\n" << kUsage;
  return 2;
}

int Run(const std::string& plugin, const Request& request) {
  Report report;
  Registry registry;
  StdoutTrap trap;
  // A name without a slash would be searched for; this one is a file.
  const std::string path =
      plugin.find('/') == std::string::npos ? "./" + plugin : plugin;
  std::vector<std::string> notes;
  const bool usable = CheckPlugin(path, registry, report).ok() &&
                      CheckKinds(request, registry, report, notes);
  const long printed = trap.Release();
  report.Subject("plugin");
  report.Property("prints nothing on standard output",
                  printed == 0
                      ? absl::OkStatus()
                      : absl::InternalError(absl::StrCat(printed, " bytes")));
  std::cout << report.text();
  for (const std::string& note : notes) std::cout << "note  " << note << "\n";
  std::cout << report.num_checked() << " properties, " << report.num_failed()
            << " failed\n";
  if (!usable) return 3;
  if (!std::cout.flush()) {
    std::cerr << "fucina-conformance: error: standard output cannot be "
                 "written\n";
    return 4;
  }
  return report.all_hold() ? 0 : 1;
}

int Main(int argc, char** argv) {
  std::string plugin;
  Request request;
  const std::vector<std::string> args(argv + 1, argv + argc);
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--help" || args[i] == "-h") {
      std::cout << kUsage;
      return 0;
    }
    std::string option;
    std::string* target = args[i] == "--plugin"   ? &plugin
                          : args[i] == "--model"  ? &request.model
                          : args[i] == "--kind"   ? &request.kind
                          : args[i] == "--name"   ? &request.name
                          : args[i] == "--option" ? &option
                                                  : nullptr;
    if (target == nullptr) return Usage("unknown flag: " + Printable(args[i]));
    if (++i == args.size()) return Usage("missing value for " + args[i - 1]);
    if (!target->empty()) return Usage(args[i - 1] + " is given twice");
    if (args[i].empty()) return Usage(args[i - 1] + ": expected a value");
    *target = args[i];
    if (target != &option) continue;
    const std::size_t equals = option.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return Usage("--option: expected key=value, found '" + option + "'");
    }
    if (request.options.count(option.substr(0, equals)) > 0) {
      return Usage("--option " + option.substr(0, equals) + " is given twice");
    }
    request.options[option.substr(0, equals)] = option.substr(equals + 1);
  }
  if (plugin.empty()) return Usage("no --plugin");
  const std::string& kind = request.kind;
  if (!kind.empty() && kind != "family" && kind != "drafter" &&
      kind != "constraint") {
    return Usage("--kind: expected family, drafter or constraint, found '" +
                 kind + "'");
  }
  if (!kind.empty() && request.model.empty()) {
    return Usage("--kind needs --model");
  }
  if (kind.empty() && !(request.options.empty() && request.name.empty())) {
    return Usage("--name and --option need --kind");
  }
  return Run(plugin, request);
}

}  // namespace
}  // namespace fucina::conformance

int main(int argc, char** argv) {
  return fucina::conformance::Main(argc, argv);
}
