#ifndef FUCINA_CLI_PLUGINS_COMMAND_H_
#define FUCINA_CLI_PLUGINS_COMMAND_H_

// `fucina plugins`: what was found, what it offers, what was refused and where
// was looked.

#include <ostream>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace fucina::cli {

// Arguments after the command's name: --verbose (options of everything),
// --json, --plugin NAME|PATH (only these; may be repeated), --help.
//
// Writes the listing to `out`, also when plugins were refused: that is part of
// the answer. InvalidArgument for a wrong argument; when the plugins contradict
// one another the listing is written and the contradiction returned.
absl::Status RunPlugins(std::span<const std::string> args, std::ostream& out);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_PLUGINS_COMMAND_H_
