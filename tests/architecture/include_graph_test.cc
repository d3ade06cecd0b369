// The arrows of docs/architecture.md, enforced: every #include "fucina/…" (and
// every private include of another file of ours) is held against the table of
// who may include whom, and no file may include itself through others.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = FUCINA_SOURCE_DIR;

// Room → rooms it may include. Its own is always allowed.
const std::map<std::string, std::set<std::string>>& Allowed() {
  static const std::map<std::string, std::set<std::string>> allowed = {
      {"diag", {}},
      {"parallel", {"diag"}},
      {"tensor", {"diag"}},
      {"gguf", {"tensor", "diag"}},
      {"kernels", {"tensor"}},
      {"ops", {"kernels", "tensor", "parallel", "diag"}},
      {"contract", {"tensor", "diag"}},
      {"model",
       {"contract", "ops", "kernels", "gguf", "tensor", "parallel", "diag"}},
      {"runner",
       {"model", "contract", "ops", "kernels", "gguf", "tensor", "parallel",
        "diag"}},
      {"jinja", {"diag"}},
      {"text", {"jinja", "gguf", "diag"}},
      {"decode", {"contract", "tensor", "diag"}},
      {"chat", {"decode", "text", "contract", "model", "tensor", "diag"}},
      // Beyond the contract only what the layout table of abi.h measures: the
      // types of every header that a plugin may include.
      {"plugin",
       {"contract", "tensor", "gguf", "parallel", "text", "ops", "model",
        "runner"}},
      {"registry",
       {"plugin", "contract", "decode", "text", "chat", "gguf", "parallel",
        "diag"}},
      {"plugins",
       {"plugin", "contract", "runner", "model", "ops", "gguf", "text",
        "tensor", "parallel", "diag"}},
      {"cli",
       {"registry", "plugin", "contract", "chat", "decode", "text", "gguf",
        "kernels", "tensor", "parallel", "diag"}},
  };
  return allowed;
}

// Files whose arrows are narrower than their room's.
const std::map<std::string, std::set<std::string>>& AllowedHeaders() {
  // kernels sees number formats only; chat takes only the saved cache of model.
  // Loaders and the reference block decode rows of the file's formats; the
  // runner picks the kernel level.
  static const std::map<std::string, std::set<std::string>> headers = {
      {"kernels>tensor", {"fucina/tensor/dtype.h", "fucina/tensor/blocks.h"}},
      {"model>kernels", {"fucina/kernels/quantize.h"}},
      {"runner>kernels",
       {"fucina/kernels/kernels.h", "fucina/kernels/quantize.h",
        "fucina/kernels/f16.h"}},
      {"chat>model", {"fucina/model/kv_file.h"}},
      {"cli>kernels", {"fucina/kernels/kernels.h"}},
      {"plugin>text", {"fucina/text/tokenizer.h"}},
  };
  return headers;
}

bool IsSource(const fs::path& path) {
  return path.extension() == ".h" || path.extension() == ".cc";
}

// "core/gguf/x.cc" and "core/include/fucina/gguf/x.h" are of room gguf.
std::string RoomOf(const fs::path& relative) {
  std::vector<std::string> parts;
  for (const fs::path& part : relative) parts.push_back(part.string());
  if (parts.size() < 2) return "";
  if (parts[0] == "core") {
    if (parts[1] == "include") return parts.size() > 4 ? parts[3] : "";
    return parts.size() > 2 ? parts[1] : "";
  }
  if (parts[0] == "registry") {
    return parts[1] == "include" ? "plugin" : "registry";
  }
  if (parts[0] == "plugins") return "plugins";
  if (parts[0] == "cli") return "cli";
  return "";
}

struct Include {
  fs::path file;  // relative to the root
  int line = 0;
  std::string target;
};

std::vector<Include> ReadIncludes() {
  std::vector<Include> includes;
  const std::regex pattern("^\\s*#\\s*include\\s*\"([^\"]+)\"");
  for (const char* top : {"core", "registry", "plugins", "cli"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / top)) {
      if (!entry.is_regular_file() || !IsSource(entry.path())) continue;
      std::ifstream in(entry.path());
      std::string text;
      for (int line = 1; std::getline(in, text); ++line) {
        std::smatch match;
        if (std::regex_search(text, match, pattern)) {
          includes.push_back(
              {fs::relative(entry.path(), kRoot), line, match[1]});
        }
      }
    }
  }
  return includes;
}

// The file of ours that an include names, relative to the root; empty for
// third-party headers.
fs::path Resolve(const Include& include) {
  const std::string& target = include.target;
  for (const fs::path& candidate :
       {fs::path("core/include") / target,
        fs::path("registry/include") / target, fs::path(target),
        include.file.parent_path() / target}) {
    if (fs::exists(kRoot / candidate)) return candidate.lexically_normal();
  }
  return {};
}

TEST(IncludeGraph, EveryArrowIsInTheTable) {
  const std::vector<Include> includes = ReadIncludes();
  ASSERT_GT(includes.size(), 100U) << "the scan found too little to mean much";
  for (const Include& include : includes) {
    const std::string from = RoomOf(include.file);
    const fs::path resolved = Resolve(include);
    // version.h is configured into the build tree; export.h belongs to no room.
    if (resolved.empty() && (include.target.rfind("fucina/", 0) != 0 ||
                             include.target == "fucina/version.h")) {
      continue;
    }
    EXPECT_FALSE(resolved.empty())
        << include.file << ":" << include.line
        << ": no such file of ours: " << include.target;
    const std::string to = RoomOf(resolved);
    if (from.empty() || to.empty() || from == to) continue;
    const std::string where = include.file.string() + ":" +
                              std::to_string(include.line) + ": '" + from +
                              "' may not include '" + include.target + "'";
    const auto room = Allowed().find(from);
    ASSERT_NE(room, Allowed().end()) << where << " (unknown room)";
    EXPECT_TRUE(room->second.count(to)) << where;
    const auto narrow = AllowedHeaders().find(from + ">" + to);
    if (narrow != AllowedHeaders().end()) {
      EXPECT_TRUE(narrow->second.count(include.target)) << where;
    }
  }
}

TEST(IncludeGraph, PluginsDoNotIncludeOneAnother) {
  for (const Include& include : ReadIncludes()) {
    if (RoomOf(include.file) != "plugins") continue;
    const fs::path resolved = Resolve(include);
    if (resolved.empty() || RoomOf(resolved) != "plugins") continue;
    EXPECT_EQ(*std::next(include.file.begin()), *std::next(resolved.begin()))
        << include.file << ":" << include.line;
  }
}

TEST(IncludeGraph, ForeignLibrariesStayInTheirFile) {
  // Header prefix → the only files that may include it.
  const std::map<std::string, std::set<std::string>> homes = {
      {"boost/dll/alias.hpp", {"registry/include/fucina/plugin/manifest.h"}},
      {"boost/",
       {"registry/plugin_loader.cc",
        "registry/include/fucina/plugin/manifest.h"}},
      {"yaml-cpp/", {"registry/pipeline_config.cc"}},
      {"CLI/", {"cli/run_flags.cc"}},
  };
  const std::regex pattern("^\\s*#\\s*include\\s*[\"<]([^\">]+)[\">]");
  for (const char* top : {"core", "registry", "plugins", "cli"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / top)) {
      if (!entry.is_regular_file() || !IsSource(entry.path())) continue;
      const std::string file = fs::relative(entry.path(), kRoot).string();
      std::ifstream in(entry.path());
      std::string text;
      for (int line = 1; std::getline(in, text); ++line) {
        std::smatch match;
        if (!std::regex_search(text, match, pattern)) continue;
        const std::string target = match[1];
        for (const auto& [prefix, files] : homes) {
          if (target.rfind(prefix, 0) == 0) {
            EXPECT_TRUE(files.count(file))
                << file << ":" << line << ": " << target;
            break;
          }
        }
        // Vector arithmetic lives in the kernels room and nowhere else. The
        // thread team touches the processor, not numbers: its pause hint and
        // the control register that flushes subnormals.
        const bool touches_processor =
            file == "core/parallel/thread_pool.cc" ||
            file == "core/parallel/flush_denormals.cc";
        if (target.find("intrin.h") != std::string::npos &&
            !touches_processor) {
          EXPECT_EQ(RoomOf(file), "kernels") << file << ":" << line;
        }
      }
    }
  }
}

TEST(IncludeGraph, NoFileIncludesItselfThroughOthers) {
  std::map<std::string, std::set<std::string>> edges;
  for (const Include& include : ReadIncludes()) {
    const fs::path resolved = Resolve(include);
    if (!resolved.empty()) {
      edges[include.file.string()].insert(resolved.string());
    }
  }
  enum class Mark { kNew, kOpen, kDone };
  std::map<std::string, Mark> marks;
  std::vector<std::string> path;
  const auto visit = [&](const auto& self, const std::string& file) -> bool {
    Mark& mark = marks[file];
    if (mark == Mark::kDone) return true;
    path.push_back(file);
    if (mark == Mark::kOpen) return false;
    mark = Mark::kOpen;
    for (const std::string& next : edges[file]) {
      if (!self(self, next)) return false;
    }
    path.pop_back();
    marks[file] = Mark::kDone;
    return true;
  };
  std::vector<std::string> files;
  for (const auto& [file, unused] : edges) files.push_back(file);
  for (const std::string& file : files) {
    std::string cycle;
    if (!visit(visit, file)) {
      for (const std::string& step : path) cycle += step + " → ";
    }
    ASSERT_TRUE(cycle.empty()) << cycle;
  }
}

}  // namespace
