#include "registry/pipeline_config.h"

#include <sys/stat.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "registry/config_keys.h"

namespace fucina {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFileBytes = 1U << 20;
// drafter / options / name / element: no key needs a fifth level.
constexpr std::size_t kMaxDepth = 4;

// One node of the file; the tree is as deep as kMaxDepth and no larger than the
// file, because aliases are refused.
struct Node {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  Kind kind = Kind::kNull;
  int line = 0;
  std::string text = {};
  std::vector<std::pair<Node, Node>> members = {};  // of a map, in order
  std::vector<Node> elements = {};                  // of a sequence
};

// Builds the tree from parser events. After the first error it ignores what
// follows: the parser cannot be stopped without an exception.
class TreeBuilder final : public YAML::EventHandler {
 public:
  Node root;
  std::string error;  // empty: fine
  int error_line = 0;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    Add({.kind = Node::Kind::kNull, .line = mark.line + 1});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Fail(mark, "aliases (*name) are not allowed; write the value again");
  }
  void OnAnchor(const YAML::Mark& mark, const std::string&) override {
    Fail(mark, "anchors (&name) are not allowed; write the value again");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    CheckTag(mark, tag);
    Add({.kind = Node::Kind::kScalar, .line = mark.line + 1, .text = value});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag,
                       YAML::anchor_t, YAML::EmitterStyle::value) override {
    CheckTag(mark, tag);
    Open(mark, Node::Kind::kSequence);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag,
                  YAML::anchor_t, YAML::EmitterStyle::value) override {
    CheckTag(mark, tag);
    Open(mark, Node::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

 private:
  void Fail(const YAML::Mark& mark, std::string text) {
    if (!error.empty()) return;
    error = std::move(text);
    error_line = mark.line + 1;
  }

  void CheckTag(const YAML::Mark& mark, const std::string& tag) {
    // "?" is an untagged plain value, "!" an untagged quoted one.
    if (!tag.empty() && tag != "?" && tag != "!") {
      Fail(mark, "tags (!name) are not allowed");
    }
  }

  void Open(const YAML::Mark& mark, Node::Kind kind) {
    ++depth_;
    if (depth_ > kMaxDepth) {
      Fail(mark, "nested deeper than any key is");
    }
    if (!error.empty()) return;
    open_.push_back({.kind = kind, .line = mark.line + 1});
    keys_.emplace_back();
  }

  void Close() {
    --depth_;
    if (!error.empty()) return;
    Node node = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    Add(std::move(node));
  }

  void Add(Node node) {
    if (!error.empty()) return;
    if (open_.empty()) {
      root = std::move(node);
    } else if (open_.back().kind == Node::Kind::kSequence) {
      open_.back().elements.push_back(std::move(node));
    } else if (!keys_.back().has_value()) {
      keys_.back() = std::move(node);
    } else {
      open_.back().members.emplace_back(*std::move(keys_.back()),
                                        std::move(node));
      keys_.back().reset();
    }
  }

  std::size_t depth_ = 0;
  std::vector<Node> open_;
  // The key that waits for its value, for each open node.
  std::vector<std::optional<Node>> keys_;
};

// Walks the tree and sets keys.
class Reader {
 public:
  Reader(std::string name, std::string base_directory, PipelineConfig& config)
      : name_(std::move(name)),
        base_directory_(std::move(base_directory)),
        config_(config) {}

  absl::Status Read(const Node& root) {
    if (root.kind != Node::Kind::kMap) {
      return At(root.kind == Node::Kind::kNull ? 1 : root.line,
                "expected 'version: 1' and further keys, found no mapping");
    }
    bool has_version = false;
    for (const auto& [key, value] : root.members) {
      if (key.text != "version") continue;
      has_version = true;
      if (value.text != "1") {
        return At(
            value.line,
            absl::StrCat("version: expected 1, found '", Printable(value.text),
                         "'; this file was written for another fucina"));
      }
    }
    if (!has_version) {
      return At(root.line, "no 'version'; begin the file with 'version: 1'");
    }
    return ReadMap(root, "");
  }

 private:
  absl::Status At(int line, absl::string_view text) const {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ":", line, ": ", text));
  }

  Origin OriginOf(const Node& node, const std::string& key) const {
    return {.kind = Origin::Kind::kFile,
            .place = absl::StrCat(name_, ":", node.line),
            .what = key,
            .base_directory = base_directory_};
  }

  // Names that may stand directly below `prefix`.
  static std::vector<std::string> MembersOf(const std::string& prefix) {
    std::vector<std::string> members;
    const auto add = [&](absl::string_view name) {
      if (!absl::ConsumePrefix(&name, prefix) || name.empty()) return;
      std::string member(name.substr(0, name.find('.')));
      if (std::find(members.begin(), members.end(), member) == members.end()) {
        members.push_back(std::move(member));
      }
    };
    if (prefix.empty()) members.push_back("version");
    for (const ConfigKey& key : ConfigKeys()) add(key.name);
    for (absl::string_view options : OptionPrefixes()) add(options);
    return members;
  }

  absl::Status ReadMap(const Node& map, const std::string& prefix) {
    const std::vector<std::string> known = MembersOf(prefix);
    const bool is_options = known.empty();
    std::set<std::string> seen;
    for (const auto& [key, value] : map.members) {
      if (key.kind != Node::Kind::kScalar) {
        return At(key.line, "a key must be a plain text");
      }
      if (!seen.insert(key.text).second) {
        return At(key.line, absl::StrCat("key '", prefix, Printable(key.text),
                                         "' is given twice"));
      }
      if (prefix.empty() && key.text == "version") continue;
      if (!is_options &&
          std::find(known.begin(), known.end(), key.text) == known.end()) {
        return Unknown(key, prefix, known);
      }
      FUCINA_RETURN_IF_ERROR(ReadMember(key, value, prefix + key.text));
    }
    return absl::OkStatus();
  }

  absl::Status Unknown(const Node& key, const std::string& prefix,
                       const std::vector<std::string>& known) const {
    const std::string nearest = NearestName(key.text, known);
    return At(
        key.line,
        absl::StrCat(
            "unknown key '", Printable(key.text), "'",
            prefix.empty()
                ? ""
                : absl::StrCat(" in '", absl::StripSuffix(prefix, "."), "'"),
            nearest.empty()
                ? absl::StrCat("; known: ", absl::StrJoin(known, ", "))
                : absl::StrCat("; did you mean '", nearest, "'")));
  }

  absl::Status ReadMember(const Node& key, const Node& value,
                          const std::string& name) {
    const ConfigKey* config_key = FindConfigKey(name);
    const bool is_section = config_key == nullptr && !IsOption(name);
    const Origin origin = OriginOf(key, name);
    if (is_section) {
      if (value.kind == Node::Kind::kNull) return absl::OkStatus();
      if (value.kind != Node::Kind::kMap) {
        return absl::InvalidArgumentError(absl::StrCat(
            origin.Text(), ": expected a section with keys, found ",
            Describe(value)));
      }
      return ReadMap(value, name + ".");
    }
    switch (value.kind) {
      case Node::Kind::kScalar:
        if (config_key != nullptr && config_key->is_list) break;
        return Set(config_, name, value.text, origin);
      case Node::Kind::kSequence:
        if (config_key == nullptr) return SetOptionList(value, name, origin);
        if (!config_key->is_list) break;
        FUCINA_RETURN_IF_ERROR(SetEmptyList(config_, name, origin));
        for (const Node& element : value.elements) {
          const Origin place = OriginOf(element, name);
          if (element.kind != Node::Kind::kScalar) {
            return absl::InvalidArgumentError(
                absl::StrCat(place.Text(), ": expected ", config_key->expects,
                             ", found ", Describe(element)));
          }
          FUCINA_RETURN_IF_ERROR(Set(config_, name, element.text, place));
        }
        return absl::OkStatus();
      default:
        break;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(origin.Text(), ": expected ",
                     config_key == nullptr ? absl::string_view("a value")
                     : config_key->is_list ? absl::string_view("a list")
                                           : config_key->expects,
                     ", found ", Describe(value)));
  }

  static bool IsOption(const std::string& name) {
    for (absl::string_view prefix : OptionPrefixes()) {
      if (absl::StartsWith(name, prefix)) return true;
    }
    return false;
  }

  // Options take lists joined at commas.
  absl::Status SetOptionList(const Node& list, const std::string& name,
                             const Origin& origin) {
    std::vector<std::string> texts;
    for (const Node& element : list.elements) {
      if (element.kind != Node::Kind::kScalar ||
          absl::StrContains(element.text, ',')) {
        return absl::InvalidArgumentError(absl::StrCat(
            OriginOf(element, name).Text(),
            ": expected a text without a comma, found ", Describe(element)));
      }
      texts.push_back(element.text);
    }
    return Set(config_, name, absl::StrJoin(texts, ","), origin);
  }

  static std::string Describe(const Node& node) {
    switch (node.kind) {
      case Node::Kind::kNull:
        return "nothing";
      case Node::Kind::kScalar:
        return absl::StrCat("'", Printable(node.text), "'");
      case Node::Kind::kSequence:
        return "a list";
      case Node::Kind::kMap:
        return "keys";
    }
    return "";
  }

  std::string name_;
  std::string base_directory_;
  PipelineConfig& config_;
};

// A double-quoted YAML scalar. Control bytes and bytes that are not UTF-8 are
// written as \x escapes, which YAML reads as code points: texts that are not
// UTF-8 cannot be in a pipeline file to begin with.
std::string Quoted(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", std::string(1, c));
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppendFormat(&out, "\\x%02x", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

void DumpOptions(const OptionTexts& options, absl::string_view indent,
                 std::string& out) {
  if (options.empty()) return;
  absl::StrAppend(&out, indent, "options:\n");
  for (const auto& [name, value] : options) {
    absl::StrAppend(&out, indent, "  ", Quoted(name), ": ", Quoted(value.text),
                    "\n");
  }
}

}  // namespace

bool PipelineConfig::operator==(const PipelineConfig& other) const {
  const auto entries = [](const PipelineConfig& config) {
    std::optional<std::vector<std::string>> list;
    if (config.plugins.has_value()) {
      list.emplace();
      for (const PluginRequest& p : *config.plugins) list->push_back(p.entry);
    }
    return list;
  };
  return model == other.model && family == other.family &&
         options == other.options && entries(*this) == entries(other) &&
         threads == other.threads && context == other.context &&
         prefill_chunk == other.prefill_chunk &&
         cache_type == other.cache_type && kernel_level == other.kernel_level &&
         pre_tokenizer == other.pre_tokenizer && log_level == other.log_level &&
         memory_check == other.memory_check && sampling == other.sampling &&
         chat == other.chat && adapter == other.adapter &&
         drafter == other.drafter &&
         drafter_references == other.drafter_references &&
         max_draft == other.max_draft && draft_costs == other.draft_costs &&
         draft_gate == other.draft_gate && constraint == other.constraint;
}

std::string PipelineConfig::Blame(absl::string_view key) const {
  const auto it = origins.find(std::string(key));
  return it == origins.end() ? "" : it->second.Text() + ": ";
}

absl::Status ParsePipeline(absl::string_view text, const std::string& name,
                           const std::string& base_directory,
                           PipelineConfig& config) {
  const std::string shown = Printable(name);
  if (text.size() > kMaxFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, ": larger than 1 MiB; not a pipeline file"));
  }
  if (absl::StrContains(text, '\0')) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, ": holds a zero byte; not a text file"));
  }
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");  // byte order mark
  // Windows line ends must not get into the values. The end mark makes the
  // parser notice a quote that is never closed.
  std::istringstream in(absl::StrCat(
      absl::StrReplaceAll(text, {{"\r\n", "\n"}, {"\r", "\n"}}), "\n...\n"));

  TreeBuilder builder;
  try {
    YAML::Parser parser(in);
    parser.HandleNextDocument(builder);
    TreeBuilder next;
    if (builder.error.empty() && parser.HandleNextDocument(next)) {
      builder.error = "more than one document; a pipeline file holds one";
      builder.error_line = next.root.line;
    }
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(
        shown, ":", error.mark.line + 1, ": not YAML: ", Printable(error.msg)));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, ": not YAML: ", Printable(error.what())));
  }
  if (!builder.error.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, ":", builder.error_line, ": ", builder.error));
  }

  PipelineConfig result = config;
  FUCINA_RETURN_IF_ERROR(
      Reader(shown, base_directory, result).Read(builder.root));
  config = std::move(result);
  return absl::OkStatus();
}

absl::Status LoadPipelineFile(const std::string& path, PipelineConfig& config) {
  const std::string shown = Printable(path);
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    const std::string text = absl::StrCat(shown, ": ", std::strerror(errno));
    return errno == ENOENT ? absl::NotFoundError(text)
                           : absl::InvalidArgumentError(text);
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, ": not a regular file"));
  }
  if (static_cast<std::size_t>(info.st_size) > kMaxFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, ": larger than 1 MiB; not a pipeline file"));
  }
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, ": cannot be read: ", std::strerror(errno)));
  }
  std::error_code error;
  const fs::path directory = fs::absolute(path, error).parent_path();
  return ParsePipeline(text, path, directory.string(), config);
}

std::string DumpPipeline(const PipelineConfig& config) {
  std::string out = "version: 1\n";
  std::string section;
  const auto end_section = [&] {
    if (section == "adapter") DumpOptions(config.adapter.options, "  ", out);
    if (section == "drafter") DumpOptions(config.drafter.options, "  ", out);
    if (section == "constraint") {
      DumpOptions(config.constraint.options, "  ", out);
    }
  };
  for (const ConfigKey& key : ConfigKeys()) {
    const std::vector<std::string> parts = absl::StrSplit(key.name, '.');
    const std::string in = parts.size() > 1 ? parts[0] : "";
    if (in != section) {
      end_section();
      section = in;
      absl::StrAppend(&out, section, ":\n");
    }
    const absl::string_view indent = section.empty() ? "" : "  ";
    bool is_set = false;
    std::vector<std::string> texts = Get(config, key, is_set);
    if (!is_set) {
      absl::StrAppend(&out, indent, "# ", parts.back(), ": ", key.initial,
                      "\n");
    } else if (key.is_list) {
      for (std::string& text : texts) text = Quoted(text);
      absl::StrAppend(&out, indent, parts.back(), ": [",
                      absl::StrJoin(texts, ", "), "]\n");
    } else {
      // Texts are quoted, numbers and words are not.
      const bool plain = absl::StartsWith(key.expects, "a number") ||
                         absl::StartsWith(key.expects, "an integer") ||
                         absl::StartsWith(key.expects, "one of") ||
                         absl::StartsWith(key.expects, "true");
      absl::StrAppend(&out, indent, parts.back(), ": ",
                      plain ? texts[0] : Quoted(texts[0]), "\n");
    }
    if (key.name == "family") DumpOptions(config.options, "", out);
  }
  end_section();
  return out;
}

}  // namespace fucina
