#include "core/gguf/split_files.h"

#include <filesystem>
#include <map>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/gguf/gguf_status.h"
#include "fucina/diag/printable.h"

namespace fucina::gguf {
namespace {

constexpr absl::string_view kSuffix = ".gguf";

// Takes "-of-00003" style endings: `word` and five digits. False when absent.
bool ConsumeNumber(absl::string_view word, absl::string_view* text,
                   int* number) {
  constexpr std::size_t kDigits = 5;
  if (text->size() < word.size() + kDigits) return false;
  const absl::string_view tail =
      text->substr(text->size() - word.size() - kDigits);
  if (!absl::StartsWith(tail, word)) return false;
  const absl::string_view digits = tail.substr(word.size());
  for (const char c : digits) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return false;
  }
  text->remove_suffix(tail.size());
  return absl::SimpleAtoi(digits, number);
}

}  // namespace

std::string SplitName::PartPath(int part) const {
  return absl::StrFormat("%s-%05d-of-%05d%s", prefix, part, count, kSuffix);
}

std::optional<SplitName> ParseSplitName(absl::string_view path) {
  SplitName name;
  if (!absl::ConsumeSuffix(&path, kSuffix)) return std::nullopt;
  if (!ConsumeNumber("-of-", &path, &name.count)) return std::nullopt;
  if (!ConsumeNumber("-", &path, &name.number)) return std::nullopt;
  name.prefix = std::string(path);
  return name;
}

absl::StatusOr<std::string> FindModelInFolder(const std::string& folder) {
  // One entry per model; ordered, so that messages do not depend on the disk.
  std::map<std::string, std::string> models;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error) return SystemError(error.value(), "cannot list");
  while (entries != std::filesystem::directory_iterator()) {
    const std::string path = entries->path().string();
    if (absl::EndsWith(path, kSuffix)) {
      const std::optional<SplitName> name = ParseSplitName(path);
      models.emplace(name.has_value() ? name->PartPath(1) : path, path);
    }
    entries.increment(error);
    if (error) return SystemError(error.value(), "cannot list");
  }
  if (models.empty()) {
    return MakeError(absl::StatusCode::kNotFound, GgufError::kIo,
                     "is a folder without .gguf files");
  }
  if (models.size() > 1) {
    constexpr std::size_t kListed = 5;
    std::vector<std::string> names;
    for (const auto& [model, path] : models) {
      if (names.size() == kListed) {
        names.push_back("...");
        break;
      }
      names.push_back(
          Printable(std::filesystem::path(model).filename().string()));
    }
    return BadFile(
        GgufError::kIo, "is a folder with ", models.size(),
        " models, expected one; name the file: ", absl::StrJoin(names, ", "));
  }
  return models.begin()->second;
}

}  // namespace fucina::gguf
