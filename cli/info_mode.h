#ifndef FUCINA_CLI_INFO_MODE_H_
#define FUCINA_CLI_INFO_MODE_H_

// `--info` and `--tokenize`: what a model file says, without its weights.

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "registry/pipeline.h"

namespace fucina::cli {

// The file's summary, its vocabulary and special tokens, and its chat template.
absl::Status PrintInfo(const Pipeline& pipeline, std::ostream& out);

// One id per line and nothing else; no begin or end tokens are added.
absl::Status PrintTokens(const Pipeline& pipeline, const std::string& text,
                         std::ostream& out);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_INFO_MODE_H_
