#ifndef FUCINA_CORE_GGUF_GGUF_VALUE_H_
#define FUCINA_CORE_GGUF_GGUF_VALUE_H_

// Reads metadata values whatever width the writer chose: files in the wild
// store the same key as u32, u64 or i32.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/gguf/gguf_file.h"

namespace fucina::gguf {

// Bytes of one element of a type of fixed size; 0 for strings and arrays.
std::uint64_t FixedBytes(GgufType type);
bool IsInteger(GgufType type);
// False for a number the format does not define.
bool IsKnownType(std::uint32_t id);

// "u32 7", "string \"gpt2\"", "array of 3 f32": for messages.
std::string Describe(const GgufValue& value);

// The errors of these begin with "key 'name'"; see GgufFile for the rules.
absl::StatusOr<std::int64_t> ToInt(absl::string_view key,
                                   const GgufValue& value, std::int64_t min,
                                   std::int64_t max);
absl::StatusOr<double> ToFloat(absl::string_view key, const GgufValue& value);
absl::StatusOr<bool> ToBool(absl::string_view key, const GgufValue& value);
absl::StatusOr<absl::string_view> ToString(absl::string_view key,
                                           const GgufValue& value);
absl::StatusOr<std::vector<std::int64_t>> ToInts(absl::string_view key,
                                                 const GgufValue& value);
absl::StatusOr<std::vector<float>> ToFloats(absl::string_view key,
                                            const GgufValue& value);
absl::StatusOr<std::vector<absl::string_view>> ToStrings(
    absl::string_view key, const GgufValue& value);

}  // namespace fucina::gguf

#endif  // FUCINA_CORE_GGUF_GGUF_VALUE_H_
