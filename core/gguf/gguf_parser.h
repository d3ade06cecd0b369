#ifndef FUCINA_CORE_GGUF_GGUF_PARSER_H_
#define FUCINA_CORE_GGUF_GGUF_PARSER_H_

// Reads the header, the metadata and the tensor directory of one GGUF file and
// checks all of it. Tensor bytes are not touched.
// Source: the GGUF format document, versions 2 and 3.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/gguf/gguf_file.h"

namespace fucina::gguf {

// One file as read; views point into the bytes it was read from.
struct ParsedPart {
  std::uint32_t version = 0;
  std::uint64_t alignment = 32;
  std::uint64_t data_start = 0;
  std::vector<absl::string_view> keys;  // file order
  std::vector<GgufValue> values;        // parallel to keys
  absl::flat_hash_map<absl::string_view, std::size_t> key_index;
  std::vector<GgufTensorInfo> tensors;  // file order
  std::vector<std::string> notes;

  const GgufValue* Find(absl::string_view key) const {
    const auto it = key_index.find(key);
    return it == key_index.end() ? nullptr : &values[it->second];
  }
};

// Errors name key or tensor, the value found and the one expected; the caller
// puts the file's name before them. Memory used is proportional to the items
// really present, never to a number that the file merely claims.
absl::StatusOr<ParsedPart> ParsePart(std::span<const std::byte> bytes);

}  // namespace fucina::gguf

#endif  // FUCINA_CORE_GGUF_GGUF_PARSER_H_
