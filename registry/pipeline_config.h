#ifndef FUCINA_REGISTRY_PIPELINE_CONFIG_H_
#define FUCINA_REGISTRY_PIPELINE_CONFIG_H_

// All that a user can choose about a pipeline, as one checked struct. It is
// filled from a YAML file and from flags through the same table of keys
// (config_keys.h), so both mean the same and are refused with the same words.
// See docs/pipelines.md. Thread-compatible.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "registry/registry.h"  // PluginRequest

namespace fucina {

// Who gave a value; put before messages about it.
struct Origin {
  enum class Kind { kDefault, kFile, kFlag };
  Kind kind = Kind::kDefault;
  std::string place;  // "pipeline.yaml:12" or "--temp"
  std::string what;   // "sampling.temperature" in a file; empty for a flag
  // Relative paths are taken relative to this; empty: the working directory.
  std::string base_directory;

  std::string Text() const {
    return what.empty() ? place : place + ": " + what;
  }
};

// An option of a plugin, checked against its specs when the plugin is known.
struct OptionText {
  std::string text;  // lists joined by commas
  Origin origin;
  bool operator==(const OptionText& other) const { return text == other.text; }
};
using OptionTexts = std::map<std::string, OptionText>;

// A plugin object by name; an empty kind means none.
struct PluginSection {
  std::string kind;
  OptionTexts options;
  bool operator==(const PluginSection&) const = default;
};

// Unset values are the family's advice.
struct SamplingConfig {
  std::optional<double> temperature;
  std::optional<int> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  double repeat_penalty = 1;
  double frequency_penalty = 0;
  double presence_penalty = 0;
  int penalty_window = 64;
  std::uint64_t seed = 0;
  bool operator==(const SamplingConfig&) const = default;
};

struct ChatConfig {
  std::string system;            // empty: no system message
  std::optional<bool> thinking;  // unset: as the template does by itself
  int max_tokens = 1024;         // of one reply
  std::vector<std::string> stop;
  std::vector<int> stop_tokens;
  // A built-in template's name or a file; empty: the model file's own.
  std::string chat_template;
  std::string template_arguments;  // a JSON object; empty for none
  bool operator==(const ChatConfig&) const = default;
};

struct PipelineConfig {
  std::string model;    // a GGUF file, any part of a split one, or its folder
  std::string family;   // empty: the file's general.architecture
  OptionTexts options;  // of the family
  // Only these plugins; unset: every one found.
  std::optional<std::vector<PluginRequest>> plugins;
  int threads = 0;  // 0: as many as compute well here
  int context = 0;  // tokens; 0: what the model was trained for, within memory
  int prefill_chunk = 512;
  std::string cache_type = "auto";
  std::string kernel_level = "auto";
  std::string pre_tokenizer;  // empty: as the model file says
  std::string log_level = "warning";
  bool memory_check = true;
  SamplingConfig sampling;
  ChatConfig chat;
  PluginSection adapter;
  PluginSection drafter;
  std::vector<std::string> drafter_references;  // text files
  int max_draft = 16;
  std::string draft_costs = {};  // "1:1.05,2:1.1"; empty: as they come
  bool draft_gate = true;
  PluginSection constraint;

  // Who set which key; keys that nobody set are absent. Not part of equality.
  std::map<std::string, Origin> origins;

  bool operator==(const PipelineConfig& other) const;

  // "pipeline.yaml:3: model: " or "--family: " when somebody set the key.
  std::string Blame(absl::string_view key) const;
};

// Reads a pipeline file over `config`; on error `config` is as before.
//
// NotFound or InvalidArgument, beginning with the file's name and, where there
// is one, the line: a file that is not YAML, has another version, an unknown
// key (with the nearest known one), a key twice, a value of the wrong type or
// out of range; also anchors, aliases, tags, several documents, more than
// 1 MiB, or nesting that no key needs.
absl::Status LoadPipelineFile(const std::string& path, PipelineConfig& config);

// The same for text in memory. `name` stands in messages.
absl::Status ParsePipeline(absl::string_view text, const std::string& name,
                           const std::string& base_directory,
                           PipelineConfig& config);

// The configuration as a pipeline file that reads back to an equal one. Values
// nobody set are shown as comments.
std::string DumpPipeline(const PipelineConfig& config);

}  // namespace fucina

#endif  // FUCINA_REGISTRY_PIPELINE_CONFIG_H_
