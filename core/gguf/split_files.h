#ifndef FUCINA_CORE_GGUF_SPLIT_FILES_H_
#define FUCINA_CORE_GGUF_SPLIT_FILES_H_

// Names of the parts of a split model: <prefix>-00002-of-00003.gguf, numbers
// starting at 1 (inside the files they start at 0).

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fucina::gguf {

struct SplitName {
  std::string prefix;  // with the folder
  int number = 0;      // 1-based
  int count = 0;

  // The path of part `part` of the same model, 1-based.
  std::string PartPath(int part) const;
};

// nullopt when `path` does not end like a part.
std::optional<SplitName> ParseSplitName(absl::string_view path);

// The one model in a folder: its only .gguf file, or a part of its only split
// model. Errors list what is there; the caller puts the folder before them.
absl::StatusOr<std::string> FindModelInFolder(const std::string& folder);

}  // namespace fucina::gguf

#endif  // FUCINA_CORE_GGUF_SPLIT_FILES_H_
