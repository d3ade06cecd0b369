#include "core/runner/key_reader.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fucina/diag/status_macros.h"

namespace fucina {

KeyReader::KeyReader(const GgufFile& file, absl::string_view architecture,
                     absl::string_view block_count)
    : file_(file),
      prefix_(absl::StrCat(architecture, ".")),
      block_count_key_(absl::StrCat(prefix_, block_count)) {}

std::string KeyReader::Key(absl::string_view suffix) const {
  return absl::StrCat(prefix_, suffix);
}

absl::Status KeyReader::Error(absl::string_view key, absl::string_view found,
                              absl::string_view expected) const {
  return absl::InvalidArgumentError(absl::StrCat(file_.display_name(),
                                                 ": key '", key, "' is ", found,
                                                 "; expected ", expected));
}

absl::Status KeyReader::Unsupported(absl::string_view key,
                                    absl::string_view found,
                                    absl::string_view why) const {
  return absl::UnimplementedError(absl::StrCat(file_.display_name(), ": key '",
                                               key, "' is ", found, "; ", why));
}

absl::StatusOr<std::optional<std::int64_t>> KeyReader::Count(
    absl::string_view suffix, std::int64_t max) const {
  const std::string key = Key(suffix);
  const GgufValue* value = file_.Find(key);
  std::optional<std::int64_t> count;
  if (value == nullptr) return count;
  if (value->type == GgufType::kArray) {
    FUCINA_ASSIGN_OR_RETURN(count, UniformArray(key, max));
  } else {
    FUCINA_ASSIGN_OR_RETURN(count, file_.GetInt(key, 0, max));
  }
  if (count.has_value() && *count == 0) count.reset();
  return count;
}

absl::StatusOr<std::int64_t> KeyReader::RequiredCount(absl::string_view suffix,
                                                      std::int64_t max) const {
  FUCINA_ASSIGN_OR_RETURN(std::optional<std::int64_t> count,
                          Count(suffix, max));
  if (!count.has_value()) {
    return Error(Key(suffix), file_.Has(Key(suffix)) ? "0" : "missing",
                 absl::StrCat("an integer from 1 to ", max));
  }
  return *count;
}

absl::StatusOr<double> KeyReader::Float(absl::string_view suffix,
                                        double fallback) const {
  const std::string key = Key(suffix);
  FUCINA_ASSIGN_OR_RETURN(std::optional<double> value, file_.GetFloat(key));
  if (!value.has_value()) return fallback;
  if (!std::isfinite(*value)) {
    return Error(key, absl::StrCat(*value), "a finite number");
  }
  return *value;
}

std::string KeyReader::ListKeysExcept(
    std::span<const absl::string_view> known) const {
  constexpr std::size_t kListed = 5;
  std::vector<std::string> listed;
  std::size_t count = 0;
  for (absl::string_view key : file_.keys()) {
    if (!absl::StartsWith(key, prefix_)) continue;
    const absl::string_view suffix = key.substr(prefix_.size());
    if (std::find(known.begin(), known.end(), suffix) != known.end()) continue;
    if (++count > kListed) continue;
    listed.push_back(absl::StrCat("'", absl::Utf8SafeCHexEscape(key), "'"));
  }
  std::string text = absl::StrJoin(listed, ", ");
  if (count > kListed)
    absl::StrAppend(&text, " and ", count - kListed, " more");
  return text;
}

absl::StatusOr<std::optional<std::int64_t>> KeyReader::UniformArray(
    const std::string& key, std::int64_t max) const {
  const absl::StatusOr<std::optional<std::vector<std::int64_t>>> read =
      file_.GetInts(key);
  FUCINA_RETURN_IF_ERROR(read.status());
  const std::span<const std::int64_t> values(**read);
  FUCINA_ASSIGN_OR_RETURN(std::optional<std::int64_t> blocks,
                          file_.GetInt(block_count_key_, 0, kMaxInt));
  const std::size_t count = values.size();
  if (count == 0 || static_cast<std::int64_t>(count) != blocks.value_or(0)) {
    return Error(key, absl::StrCat("an array of ", count, " entries"),
                 absl::StrCat("one number, or one for each of the ",
                              blocks.value_or(0), " blocks"));
  }
  const std::int64_t first = values.front();
  for (std::int64_t value : values) {
    if (value != first) {
      return Unsupported(key,
                         absl::StrCat("an array with ", first, " and ", value),
                         "per-layer geometry is not supported");
    }
  }
  if (first < 0 || first > max) {
    return Error(key, absl::StrCat("an array of ", first),
                 absl::StrCat("integers from 0 to ", max));
  }
  return std::optional<std::int64_t>(first);
}

}  // namespace fucina
