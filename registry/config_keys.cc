#include "registry/config_keys.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "fucina/text/chat_template.h"

namespace fucina {
namespace {

using C = PipelineConfig;

// Where a key's value lives; the alternative is the key's type.
using Field =
    std::variant<std::string& (*)(C&), int& (*)(C&), double& (*)(C&),
                 std::uint64_t& (*)(C&), std::optional<int>& (*)(C&),
                 std::optional<double>& (*)(C&), std::optional<bool>& (*)(C&),
                 bool& (*)(C&), std::vector<std::string>& (*)(C&),
                 std::vector<int>& (*)(C&),
                 std::optional<std::vector<PluginRequest>>& (*)(C&)>;

// How a text is understood beyond its type.
enum class Meaning { kPlain, kPath, kTemplate, kWord };

struct Row {
  ConfigKey key;
  Field field;
  double min = 0;
  double max = std::numeric_limits<double>::max();
  bool min_excluded = false;
  Meaning meaning = Meaning::kPlain;
};

constexpr double kMaxInt = std::numeric_limits<int>::max();

// Numbers and words of the ranges are those that sampling and chat check again
// where they use them; a test holds the two against each other.
const Row kRows[] = {
    {{"model", "--model", "PATH", "a path", "none",
      "GGUF file, any part of a split one, or the folder that holds it"},
     +[](C& c) -> std::string& { return c.model; },
     0,
     0,
     false,
     Meaning::kPath},
    {{"family", "--family", "NAME", "a family's name",
      "the file's general.architecture", "decoder family that runs the model"},
     +[](C& c) -> std::string& { return c.family; }},
    {{"plugins", "--plugin", "NAME|PATH", "a plugin's name or file",
      "every plugin found", "load only these plugins", true},
     +[](C& c) -> std::optional<std::vector<PluginRequest>>& {
       return c.plugins;
     }},
    {{"threads", "--threads", "N", "an integer from 0 to 1024", "0",
      "threads that compute; 0: the physical cores this process may use"},
     +[](C& c) -> int& { return c.threads; },
     0,
     1024},
    {{"context", "--ctx", "N", "an integer, 0 or more", "0",
      "tokens that a conversation may hold; 0: the trained context, less when "
      "memory lacks"},
     +[](C& c) -> int& { return c.context; },
     0,
     kMaxInt},
    {{"prefill_chunk", "--prefill-chunk", "N", "an integer from 1 to 65536",
      "512", "prompt tokens per forward pass; never changes results"},
     +[](C& c) -> int& { return c.prefill_chunk; },
     1,
     65536},
    {{"cache_type", "--cache-type", "TYPE", "one of auto, f16, q8_0, f32",
      "auto", "element type of the key/value cache; auto: the family's"},
     +[](C& c) -> std::string& { return c.cache_type; },
     0,
     0,
     false,
     Meaning::kWord},
    {{"kernel_level", "--kernel-level", "LEVEL",
      "one of auto, scalar, avx2, avx-vnni, avx512-vnni", "auto",
      "instruction set to use; auto: the best here; never changes results"},
     +[](C& c) -> std::string& { return c.kernel_level; },
     0,
     0,
     false,
     Meaning::kWord},
    {{"pre_tokenizer", "--pre", "NAME", "a pre-tokenizer's name",
      "the file's tokenizer.ggml.pre", "how text is cut before merging"},
     +[](C& c) -> std::string& { return c.pre_tokenizer; }},
    {{"log_level", "--log-level", "LEVEL",
      "one of info, warning, error, silent", "warning",
      "least severe messages to show on stderr"},
     +[](C& c) -> std::string& { return c.log_level; },
     0,
     0,
     false,
     Meaning::kWord},

    {{"memory_check", "", "BOOL", "true or false", "true",
      "refuse what will not fit into memory before loading it"},
     +[](C& c) -> bool& { return c.memory_check; }},

    {{"sampling.temperature", "--temp", "F", "a number from 0 to 1000",
      "the family's", "0 always takes the most likely token"},
     +[](C& c) -> std::optional<double>& { return c.sampling.temperature; },
     0,
     1000},
    {{"sampling.top_k", "--top-k", "N", "an integer, 0 or more", "the family's",
      "keep the N most likely tokens; 0 is off"},
     +[](C& c) -> std::optional<int>& { return c.sampling.top_k; },
     0,
     kMaxInt},
    {{"sampling.top_p", "--top-p", "F", "a number from 0 to 1", "the family's",
      "keep the most likely tokens that together reach F; 1 is off"},
     +[](C& c) -> std::optional<double>& { return c.sampling.top_p; },
     0,
     1},
    {{"sampling.min_p", "--min-p", "F", "a number from 0 to 1", "the family's",
      "drop tokens less likely than F times the best; 0 is off"},
     +[](C& c) -> std::optional<double>& { return c.sampling.min_p; },
     0,
     1},
    {{"sampling.repeat_penalty", "--repeat-penalty", "F", "a number above 0",
      "1", "divides the logits of recent tokens; 1 is off"},
     +[](C& c) -> double& { return c.sampling.repeat_penalty; },
     0,
     std::numeric_limits<double>::max(),
     true},
    {{"sampling.frequency_penalty", "", "F", "a number from -2 to 2", "0",
      "subtracted per occurrence in the window; 0 is off"},
     +[](C& c) -> double& { return c.sampling.frequency_penalty; },
     -2,
     2},
    {{"sampling.presence_penalty", "", "F", "a number from -2 to 2", "0",
      "subtracted once for a token in the window; 0 is off"},
     +[](C& c) -> double& { return c.sampling.presence_penalty; },
     -2,
     2},
    {{"sampling.penalty_window", "", "N", "an integer, 0 or more", "64",
      "last tokens that penalties look at"},
     +[](C& c) -> int& { return c.sampling.penalty_window; },
     0,
     kMaxInt},
    {{"sampling.seed", "--seed", "N",
      "an integer from 0 to 18446744073709551615", "0",
      "start of the random numbers; the same seed gives the same reply"},
     +[](C& c) -> std::uint64_t& { return c.sampling.seed; }},

    {{"chat.system", "--system", "TEXT", "a text", "none",
      "system message of a conversation"},
     +[](C& c) -> std::string& { return c.chat.system; }},
    {{"chat.thinking", "", "BOOL", "true or false", "the template's",
      "whether the model may think before it answers"},
     +[](C& c) -> std::optional<bool>& { return c.chat.thinking; }},
    {{"chat.max_tokens", "--max-tokens", "N", "an integer, 1 or more", "1024",
      "longest reply"},
     +[](C& c) -> int& { return c.chat.max_tokens; },
     1,
     kMaxInt},
    {{"chat.stop", "--stop-string", "TEXT", "a text that is not empty", "none",
      "end the reply before this text", true},
     +[](C& c) -> std::vector<std::string>& { return c.chat.stop; }},
    {{"chat.stop_tokens", "--stop", "ID", "a token id, 0 or more", "none",
      "end the reply at this token, besides the model's own end tokens", true},
     +[](C& c) -> std::vector<int>& { return c.chat.stop_tokens; },
     0,
     kMaxInt},
    {{"chat.template", "--chat-template", "NAME|PATH",
      "a built-in template's name or a file", "the model file's own",
      "template that turns messages into a prompt"},
     +[](C& c) -> std::string& { return c.chat.chat_template; },
     0,
     0,
     false,
     Meaning::kTemplate},
    {{"chat.template_arguments", "--template-arguments", "JSON",
      "a JSON object", "none", "further variables for the template"},
     +[](C& c) -> std::string& { return c.chat.template_arguments; }},

    {{"adapter.kind", "", "NAME", "an adapter source's name", "none",
      "where adapter weights come from"},
     +[](C& c) -> std::string& { return c.adapter.kind; }},
    {{"drafter.kind", "--drafter", "NAME", "a drafter's name", "none",
      "who proposes tokens; never changes results"},
     +[](C& c) -> std::string& { return c.drafter.kind; }},
    {{"drafter.references", "--spec-ref", "FILE", "a text file", "none",
      "text that may come up again, for the drafter; up to 8 files", true},
     +[](C& c) -> std::vector<std::string>& { return c.drafter_references; },
     0,
     0,
     false,
     Meaning::kPath},
    {{"drafter.max_draft", "--spec-draft", "N", "an integer from 1 to 64", "16",
      "tokens to draft at a time, at most; never changes results"},
     +[](C& c) -> int& { return c.max_draft; },
     1,
     64},
    {{"drafter.costs", "--spec-cost", "TABLE", "a text such as 1:1.05,4:1.3",
      "those of one machine",
      "what verifying drafts costs, until it is "
      "measured; as --spec-bench prints it"},
     +[](C& c) -> std::string& { return c.draft_costs; }},
    {{"drafter.gate", "", "BOOL", "true or false", "true",
      "draft only where it pays; never changes results"},
     +[](C& c) -> bool& { return c.draft_gate; }},
    {{"constraint.kind", "", "NAME", "a constraint's name", "none",
      "what a reply must satisfy"},
     +[](C& c) -> std::string& { return c.constraint.kind; }},
};

constexpr ConfigSwitch kSwitches[] = {
    {"--spec", "drafter.kind", "cascade",
     "draft from the text so far; changes speed and no token"},
    {"--no-spec-gate", "drafter.gate", "false",
     "draft whether it pays or not; for measurements"},
    {"--no-think", "chat.thinking", "false", "switch the model's thinking off"},
    {"--no-memory-check", "memory_check", "false",
     "load what memory seems too small for"},
};

constexpr absl::string_view kOptionPrefixes[] = {
    "options.", "adapter.options.", "drafter.options.", "constraint.options."};

OptionTexts* OptionsOf(C& config, absl::string_view prefix) {
  if (prefix == "options.") return &config.options;
  if (prefix == "adapter.options.") return &config.adapter.options;
  if (prefix == "drafter.options.") return &config.drafter.options;
  return &config.constraint.options;
}

const Row* FindRow(absl::string_view name) {
  const auto row =
      std::find_if(std::begin(kRows), std::end(kRows),
                   [name](const Row& r) { return r.key.name == name; });
  return row == std::end(kRows) ? nullptr : row;
}

absl::Status Bad(const Row& row, absl::string_view text, const Origin& origin) {
  std::string hint;
  if (row.key.name == "sampling.temperature" && absl::StartsWith(text, "-")) {
    hint = "; use 0 to always take the most likely token";
  }
  if (text == "yes" || text == "no" || text == "on" || text == "off") {
    if (absl::StartsWith(row.key.expects, "true")) hint = "; write it out";
  }
  return absl::InvalidArgumentError(absl::StrCat(origin.Text(), ": expected ",
                                                 row.key.expects, ", found '",
                                                 Printable(text), "'", hint));
}

bool InRange(const Row& row, double value) {
  return std::isfinite(value) && value <= row.max &&
         (row.min_excluded ? value > row.min : value >= row.min);
}

bool Read(const Row& row, absl::string_view text, int& out) {
  std::int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) ||
      !InRange(row, static_cast<double>(value)) ||
      value > std::numeric_limits<int>::max()) {
    return false;
  }
  out = static_cast<int>(value);
  return true;
}

bool Read(const Row& row, absl::string_view text, double& out) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !InRange(row, value)) return false;
  out = value;
  return true;
}

bool Read(const Row&, absl::string_view text, std::uint64_t& out) {
  std::uint64_t value = 0;
  if (absl::StrContains(text, '-') || !absl::SimpleAtoi(text, &value)) {
    return false;
  }
  out = value;
  return true;
}

bool Read(const Row&, absl::string_view text, bool& out) {
  out = text == "true";
  return text == "true" || text == "false";
}

std::string Resolve(absl::string_view path, const Origin& origin) {
  if (origin.base_directory.empty() || absl::StartsWith(path, "/")) {
    return std::string(path);
  }
  return (std::filesystem::path(origin.base_directory) / std::string(path))
      .lexically_normal()
      .string();
}

bool Read(const Row& row, absl::string_view text, std::string& out,
          const Origin& origin) {
  switch (row.meaning) {
    case Meaning::kPlain:
      // Only a text that a user writes for the model may be empty.
      if (text.empty() && row.key.name != "chat.system") return false;
      if (row.key.expects == "a JSON object" &&
          (!absl::StartsWith(absl::StripAsciiWhitespace(text), "{") ||
           !absl::EndsWith(absl::StripAsciiWhitespace(text), "}"))) {
        return false;
      }
      out = std::string(text);
      return true;
    case Meaning::kWord: {
      absl::string_view words = row.key.expects;
      if (!absl::ConsumePrefix(&words, "one of ")) return false;
      for (absl::string_view word : absl::StrSplit(words, ", ")) {
        if (word != text) continue;
        out = std::string(text);
        return true;
      }
      return false;
    }
    case Meaning::kTemplate:
      for (absl::string_view name : ChatTemplate::BuiltInNames()) {
        if (name != text) continue;
        out = std::string(text);
        return true;
      }
      [[fallthrough]];
    case Meaning::kPath:
      if (text.empty() || absl::StrContains(text, '\0')) return false;
      out = Resolve(text, origin);
      return true;
  }
  return false;
}

// Stores one value; false when the text is not one.
struct Store {
  const Row& row;
  absl::string_view text;
  const Origin& origin;
  bool start_anew;  // of a list
  C& config;

  bool operator()(std::string& (*field)(C&)) const {
    return Read(row, text, field(config), origin);
  }
  template <typename T>
  bool operator()(T& (*field)(C&)) const {
    return Read(row, text, field(config));
  }
  template <typename T>
  bool operator()(std::optional<T>& (*field)(C&)) const {
    T value{};
    if (!Read(row, text, value)) return false;
    field(config) = value;
    return true;
  }
  bool operator()(std::vector<std::string>& (*field)(C&)) const {
    if (text.empty()) return false;
    if (start_anew) field(config).clear();
    if (row.meaning == Meaning::kPath) {
      if (absl::StrContains(text, '\0')) return false;
      field(config).push_back(Resolve(text, origin));
    } else {
      field(config).emplace_back(text);
    }
    return true;
  }
  bool operator()(std::vector<int>& (*field)(C&)) const {
    int value = 0;
    if (!Read(row, text, value)) return false;
    if (start_anew) field(config).clear();
    field(config).push_back(value);
    return true;
  }
  bool operator()(
      std::optional<std::vector<PluginRequest>>& (*field)(C&)) const {
    if (text.empty() || absl::StrContains(text, '\0')) return false;
    auto& plugins = field(config);
    if (start_anew || !plugins.has_value()) plugins.emplace();
    const bool is_file = absl::StrContains(text, '/');
    plugins->push_back({is_file ? Resolve(text, origin) : std::string(text),
                        absl::StrCat(origin.Text(), ": ")});
    return true;
  }
};

// The shortest text that reads back to the same value.
std::string Text(double value) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value);
  return std::string(digits, end.ptr);
}

// The texts of a field.
struct Load {
  C& config;
  bool& is_set;

  using Texts = std::vector<std::string>;
  Texts operator()(std::string& (*field)(C&)) const {
    is_set = !field(config).empty();
    return {field(config)};
  }
  Texts operator()(int& (*field)(C&)) const {
    return {absl::StrCat(field(config))};
  }
  Texts operator()(double& (*field)(C&)) const { return {Text(field(config))}; }
  Texts operator()(std::uint64_t& (*field)(C&)) const {
    return {absl::StrCat(field(config))};
  }
  Texts operator()(bool& (*field)(C&)) const {
    return {field(config) ? "true" : "false"};
  }
  Texts operator()(std::optional<int>& (*field)(C&)) const {
    is_set = field(config).has_value();
    return {absl::StrCat(field(config).value_or(0))};
  }
  Texts operator()(std::optional<double>& (*field)(C&)) const {
    is_set = field(config).has_value();
    return {Text(field(config).value_or(0))};
  }
  Texts operator()(std::optional<bool>& (*field)(C&)) const {
    is_set = field(config).has_value();
    return {field(config).value_or(false) ? "true" : "false"};
  }
  Texts operator()(std::vector<std::string>& (*field)(C&)) const {
    is_set = !field(config).empty();
    return field(config);
  }
  Texts operator()(std::vector<int>& (*field)(C&)) const {
    is_set = !field(config).empty();
    Texts texts;
    for (const int value : field(config)) texts.push_back(absl::StrCat(value));
    return texts;
  }
  Texts operator()(
      std::optional<std::vector<PluginRequest>>& (*field)(C&)) const {
    is_set = field(config).has_value();
    Texts texts;
    if (is_set) {
      for (const PluginRequest& plugin : *field(config)) {
        texts.push_back(plugin.entry);
      }
    }
    return texts;
  }
};

struct Clear {
  C& config;
  template <typename T>
  bool operator()(std::vector<T>& (*field)(C&)) const {
    field(config).clear();
    return true;
  }
  bool operator()(
      std::optional<std::vector<PluginRequest>>& (*field)(C&)) const {
    field(config).emplace();
    return true;
  }
  template <typename T>
  bool operator()(T& (*)(C&)) const {
    return false;
  }
};

}  // namespace

std::span<const ConfigKey> ConfigKeys() {
  static const std::vector<ConfigKey> keys = [] {
    std::vector<ConfigKey> list;
    for (const Row& row : kRows) list.push_back(row.key);
    return list;
  }();
  return keys;
}

std::span<const ConfigSwitch> ConfigSwitches() { return kSwitches; }

std::span<const absl::string_view> OptionPrefixes() { return kOptionPrefixes; }

const ConfigKey* FindConfigKey(absl::string_view name) {
  for (const ConfigKey& key : ConfigKeys()) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

const ConfigKey* FindConfigFlag(absl::string_view flag) {
  if (flag.empty()) return nullptr;
  for (const ConfigKey& key : ConfigKeys()) {
    if (key.flag == flag) return &key;
  }
  return nullptr;
}

absl::Status Set(PipelineConfig& config, absl::string_view key,
                 absl::string_view text, const Origin& origin) {
  for (absl::string_view prefix : kOptionPrefixes) {
    absl::string_view name = key;
    if (!absl::ConsumePrefix(&name, prefix)) continue;
    (*OptionsOf(config, prefix))[std::string(name)] = {std::string(text),
                                                       origin};
    config.origins[std::string(key)] = origin;
    return absl::OkStatus();
  }
  const Row* row = FindRow(key);
  if (row == nullptr) {
    return absl::NotFoundError(
        absl::StrCat(origin.Text(), ": no key '", Printable(key), "'"));
  }
  const auto earlier = config.origins.find(std::string(key));
  const bool start_anew =
      earlier == config.origins.end() || earlier->second.kind != origin.kind;
  if (!std::visit(Store{*row, text, origin, start_anew, config}, row->field)) {
    return Bad(*row, text, origin);
  }
  config.origins[std::string(key)] = origin;
  return absl::OkStatus();
}

absl::Status SetEmptyList(PipelineConfig& config, absl::string_view key,
                          const Origin& origin) {
  const Row* row = FindRow(key);
  if (row == nullptr || !std::visit(Clear{config}, row->field)) {
    return absl::InvalidArgumentError(absl::StrCat(
        origin.Text(), ": expected ",
        row == nullptr ? absl::string_view("a text") : row->key.expects,
        ", found a list"));
  }
  config.origins[std::string(key)] = origin;
  return absl::OkStatus();
}

std::vector<std::string> Get(const PipelineConfig& config, const ConfigKey& key,
                             bool& is_set) {
  is_set = true;
  PipelineConfig copy = config;
  return std::visit(Load{copy, is_set}, FindRow(key.name)->field);
}

absl::StatusOr<Options> ResolveOptions(absl::string_view who,
                                       std::span<const OptionSpec> specs,
                                       const OptionTexts& texts) {
  std::vector<std::string> names;
  for (const OptionSpec& spec : specs) names.emplace_back(spec.name);
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : texts) {
    const auto spec = std::find_if(
        specs.begin(), specs.end(),
        [&name = name](const OptionSpec& s) { return s.name == name; });
    const std::string& where = value.origin.place;
    if (spec == specs.end()) {
      const std::string nearest = NearestName(name, names);
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": ", who, " has no option '", Printable(name), "'",
          !nearest.empty() ? absl::StrCat("; did you mean '", nearest, "'")
          : names.empty()
              ? std::string("; it has none")
              : absl::StrCat("; known: ", absl::StrJoin(names, ", "))));
    }
    auto parsed = ParseOptionValue(spec->type, value.text);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": option '", name, "' of ", who, ": ",
                       parsed.status().message()));
    }
    values[name] = value.text;
  }
  return Options::Make(specs, values);
}

}  // namespace fucina
