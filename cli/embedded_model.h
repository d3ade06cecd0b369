#ifndef FUCINA_CLI_EMBEDDED_MODEL_H_
#define FUCINA_CLI_EMBEDDED_MODEL_H_

// The model that comes with fucina and answers when the user names none.

#include <string>

#include "absl/status/statusor.h"

namespace fucina::cli {

// Its path: share/fucina/models beside the folder of the running program, in
// the build tree and in an installed one alike. NotFound says where it was
// looked for and how to name another model.
absl::StatusOr<std::string> EmbeddedModelPath();

}  // namespace fucina::cli

#endif  // FUCINA_CLI_EMBEDDED_MODEL_H_
