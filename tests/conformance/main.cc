// fucina-conformance: does a plugin keep the contract? One line per property on
// standard output. Exit status 0 when all hold, 1 when one does not, 2 for a
// wrong command line, 3 for a plugin or model that cannot be used at all.

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fucina/gguf/gguf_file.h"
#include "registry/registry.h"
#include "tests/conformance/family_suite.h"
#include "tests/conformance/plugin_suite.h"
#include "tests/conformance/report.h"

namespace fucina::conformance {
namespace {

constexpr char kUsage[] =
    "usage: fucina-conformance --plugin libfucina_<name>.so"
    " [--model <tiny.gguf>] [--kind family]\n"
    "Checks the promises of the plugin contract. --model is a small model of"
    " one of the\nplugin's families; without it only what holds for every"
    " plugin is checked.\n";

struct Arguments {
  std::string plugin;
  std::string model;
  std::string kind;
};

// Everything written to standard output while it lives goes to a file instead.
class StdoutTrap {
 public:
  StdoutTrap() : saved_(dup(STDOUT_FILENO)), file_(std::tmpfile()) {
    std::fflush(stdout);
    if (file_ != nullptr) dup2(fileno(file_), STDOUT_FILENO);
  }
  // Restores standard output and returns how many bytes were caught.
  long Release() {
    std::cout.flush();
    std::fflush(stdout);
    const long caught =
        file_ == nullptr ? 0
                         : static_cast<long>(lseek(fileno(file_), 0, SEEK_END));
    dup2(saved_, STDOUT_FILENO);
    close(saved_);
    if (file_ != nullptr) std::fclose(file_);
    return caught;
  }

 private:
  int saved_;
  std::FILE* file_;
};

int Usage(const std::string& error) {
  std::cerr << "fucina-conformance: error: " << error << "\n" << kUsage;
  return 2;
}

// Which of the plugin's families the model belongs to; null and a line in the
// report when none.
const Family* FamilyOf(const Registry& registry, const std::string& model,
                       Report& report) {
  report.Subject("model");
  const auto file = GgufFile::Open(model);
  if (!file.ok()) {
    report.Property("can be read", file.status());
    return nullptr;
  }
  const auto architecture = (*file)->GetString("general.architecture");
  if (!architecture.ok() || !architecture->has_value()) {
    report.Property("has an architecture",
                    absl::InvalidArgumentError("no general.architecture"));
    return nullptr;
  }
  const auto family = registry.FindFamily(**architecture);
  if (!family.ok()) {
    report.Property("is of a family of the plugin", family.status());
    return nullptr;
  }
  return &(*family)->descriptor;
}

int Run(const Arguments& arguments) {
  Report report;
  Registry registry;
  StdoutTrap trap;
  const std::string path = std::filesystem::absolute(arguments.plugin).string();
  bool usable = CheckPlugin(path, registry, report).ok();
  if (usable && !arguments.model.empty()) {
    const Family* family = FamilyOf(registry, arguments.model, report);
    usable = family != nullptr;
    if (usable) CheckFamily(*family, arguments.model, report);
  }
  const long printed = trap.Release();
  report.Subject("plugin");
  report.Property("prints nothing on standard output",
                  printed == 0
                      ? absl::OkStatus()
                      : absl::InternalError(absl::StrCat(printed, " bytes")));
  std::cout << report.text();
  if (usable && arguments.model.empty() && !registry.families().empty()) {
    std::cout << "note  families were not checked: give --model\n";
  }
  for (const auto& [name, unused] : registry.adapters()) {
    std::cout << "note  adapter '" << name << "': has no suite here\n";
  }
  for (const auto& [name, unused] : registry.drafters()) {
    std::cout << "note  drafter '" << name << "': has no suite here\n";
  }
  for (const auto& [name, unused] : registry.constraints()) {
    std::cout << "note  constraint '" << name << "': has no suite here\n";
  }
  std::cout << report.num_checked() << " properties, " << report.num_failed()
            << " failed\n";
  if (!usable) return 3;
  return report.all_hold() ? 0 : 1;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  const std::vector<std::string> args(argv + 1, argv + argc);
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--help") {
      std::cout << kUsage;
      return 0;
    }
    std::string* target = args[i] == "--plugin"  ? &arguments.plugin
                          : args[i] == "--model" ? &arguments.model
                          : args[i] == "--kind"  ? &arguments.kind
                                                 : nullptr;
    if (target == nullptr) return Usage("unknown flag: " + args[i]);
    if (++i == args.size()) return Usage("missing value for " + args[i - 1]);
    *target = args[i];
  }
  if (arguments.plugin.empty()) return Usage("no --plugin");
  if (!arguments.kind.empty() && arguments.kind != "family") {
    return Usage("--kind: expected family, found '" + arguments.kind + "'");
  }
  return Run(arguments);
}

}  // namespace
}  // namespace fucina::conformance

int main(int argc, char** argv) {
  return fucina::conformance::Main(argc, argv);
}
