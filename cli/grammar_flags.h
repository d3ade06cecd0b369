#ifndef FUCINA_CLI_GRAMMAR_FLAGS_H_
#define FUCINA_CLI_GRAMMAR_FLAGS_H_

// --json-schema, --lark and --regex: sugar over the pipeline's constraint.

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "registry/pipeline_config.h"

namespace fucina::cli {

struct GrammarFlags {
  std::optional<std::string> json_schema;  // a text, or "@FILE"
  std::optional<std::string> lark;         // the same
  std::optional<std::string> regex;        // always a text
  bool json_compact = false;
};

// Puts the grammar into `config`; one given by flag replaces all that a
// pipeline file says about constraints. InvalidArgument for more than one, an
// empty one and a file that cannot be read (named, with the reason), and for
// json_compact without a schema.
absl::Status FillConstraint(const GrammarFlags& flags, PipelineConfig& config);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_GRAMMAR_FLAGS_H_
