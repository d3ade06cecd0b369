#ifndef FUCINA_REGISTRY_CONFIG_KEYS_H_
#define FUCINA_REGISTRY_CONFIG_KEYS_H_

// The table of pipeline keys: names, flags, ranges and their words. The YAML
// reader, the command line, --dump-config and docs/pipelines.md all follow it,
// and Set is the one place where a value is checked. Thread-safe: constants.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/contract/options.h"
#include "registry/pipeline_config.h"

namespace fucina {

struct ConfigKey {
  absl::string_view name;     // "sampling.temperature"
  absl::string_view flag;     // "--temp"; empty when only the file can set it
  absl::string_view value;    // how help calls the value: "F", "N", "TEXT"
  absl::string_view expects;  // "a number from 0 to 1": used in messages
  absl::string_view initial;  // what holds when nobody sets it
  absl::string_view doc;      // one line
  bool is_list = false;       // may be given several times
};

// In the order of docs and dumps. Keys of a section stand together.
std::span<const ConfigKey> ConfigKeys();

// Null when there is none.
const ConfigKey* FindConfigKey(absl::string_view name);
const ConfigKey* FindConfigFlag(absl::string_view flag);

// Flags without a value that set a key: --no-think sets chat.thinking to false.
struct ConfigSwitch {
  absl::string_view flag;
  absl::string_view key;
  absl::string_view text;
  absl::string_view doc;
};
std::span<const ConfigSwitch> ConfigSwitches();

// Sections whose members are a plugin's options, with any name:
// "options.", "adapter.options.", "drafter.options.", "constraint.options.".
std::span<const absl::string_view> OptionPrefixes();

// Sets one key, checked. For a list, each call adds one element; the first call
// of another kind of origin starts the list anew, so that flags replace what a
// file says. NotFound for an unknown key, InvalidArgument for a bad value: the
// message is "<origin>: expected <expects>, found '<text>'".
absl::Status Set(PipelineConfig& config, absl::string_view key,
                 absl::string_view text, const Origin& origin);

// Sets a list to no elements.
absl::Status SetEmptyList(PipelineConfig& config, absl::string_view key,
                          const Origin& origin);

// Elements of each key for a dump: nothing for an unset one. Texts are such
// that Set reads them back.
std::vector<std::string> Get(const PipelineConfig& config, const ConfigKey& key,
                             bool& is_set);

// Options of a plugin object from the texts of a pipeline. `who` is "drafter
// 'cascade'". InvalidArgument, beginning with the origin, for an option it does
// not have (with the nearest one) or a value of another type.
absl::StatusOr<Options> ResolveOptions(absl::string_view who,
                                       std::span<const OptionSpec> specs,
                                       const OptionTexts& texts);

}  // namespace fucina

#endif  // FUCINA_REGISTRY_CONFIG_KEYS_H_
