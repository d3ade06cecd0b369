#include "cli/embedded_model.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace fucina::cli {

absl::StatusOr<std::string> EmbeddedModelPath() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path path = program.parent_path().parent_path() / "share" /
                        "fucina" / "models" / "atlas-6m-q8_0.gguf";
  if (!error && fs::is_regular_file(path, error)) return path.string();
  return absl::NotFoundError(
      absl::StrCat("no model named, and the embedded one is not at ",
                   path.string(), "; name a GGUF file"));
}

}  // namespace fucina::cli
