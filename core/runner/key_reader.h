#ifndef FUCINA_RUNNER_KEY_READER_H_
#define FUCINA_RUNNER_KEY_READER_H_

// Typed access to the metadata keys of one architecture. Every message names
// file, key, value found and what was expected.

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/gguf/gguf_file.h"

namespace fucina {

class KeyReader {
 public:
  static constexpr std::int64_t kMaxInt =
      std::numeric_limits<std::int32_t>::max();

  // `block_count` is the key, without prefix, that says how many entries a
  // per-block array must have.
  KeyReader(const GgufFile& file, absl::string_view architecture,
            absl::string_view block_count);

  // "<architecture>.<suffix>".
  std::string Key(absl::string_view suffix) const;

  // "<file>: key '<key>' is <found>; expected <expected>".
  absl::Status Error(absl::string_view key, absl::string_view found,
                     absl::string_view expected) const;
  // "<file>: key '<key>' is <found>; <why>".
  absl::Status Unsupported(absl::string_view key, absl::string_view found,
                           absl::string_view why) const;

  // A size or count in [0, max]; nullopt when missing or 0, which files use
  // with the same meaning. An array with one entry per block is accepted when
  // all entries agree.
  absl::StatusOr<std::optional<std::int64_t>> Count(
      absl::string_view suffix, std::int64_t max = kMaxInt) const;
  // The same in [1, max]; missing is an error.
  absl::StatusOr<std::int64_t> RequiredCount(absl::string_view suffix,
                                             std::int64_t max = kMaxInt) const;
  // A finite number, or `fallback` when the key is missing.
  absl::StatusOr<double> Float(absl::string_view suffix, double fallback) const;

  // The architecture's keys whose suffix is not in `known`, quoted, the first
  // five and a count; empty when there are none.
  std::string ListKeysExcept(std::span<const absl::string_view> known) const;

 private:
  absl::StatusOr<std::optional<std::int64_t>> UniformArray(
      const std::string& key, std::int64_t max) const;

  const GgufFile& file_;
  std::string prefix_;
  std::string block_count_key_;
};

}  // namespace fucina

#endif  // FUCINA_RUNNER_KEY_READER_H_
