#ifndef FUCINA_TESTS_CORE_GGUF_RAW_GGUF_H_
#define FUCINA_TESTS_CORE_GGUF_RAW_GGUF_H_

// GGUF files put together byte by byte, so that a test can lie in any field.
// Knows nothing of GgufWriter.

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/gguf/gguf_error.h"
#include "fucina/gguf/gguf_file.h"

namespace fucina {

template <typename T>
std::string Raw(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

inline std::string RawString(absl::string_view text) {
  return Raw<std::uint64_t>(text.size()) + std::string(text);
}

// The value types by number.
enum RawType : std::uint32_t {
  kRawU8 = 0,
  kRawI8 = 1,
  kRawU16 = 2,
  kRawI16 = 3,
  kRawU32 = 4,
  kRawI32 = 5,
  kRawF32 = 6,
  kRawBool = 7,
  kRawString = 8,
  kRawArray = 9,
  kRawU64 = 10,
  kRawI64 = 11,
  kRawF64 = 12,
};

inline std::string RawKeyValue(absl::string_view key, std::uint32_t type,
                               const std::string& value) {
  return RawString(key) + Raw(type) + value;
}

inline std::string RawArrayValue(std::uint32_t element_type,
                                 std::uint64_t count,
                                 const std::string& elements) {
  return Raw(element_type) + Raw(count) + elements;
}

struct RawTensor {
  std::string name = "a";
  std::vector<std::uint64_t> dims = {4};
  std::uint32_t type = 0;
  std::uint64_t offset = 0;

  std::string Bytes() const {
    std::string bytes =
        RawString(name) + Raw(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t dim : dims) bytes += Raw(dim);
    return bytes + Raw(type) + Raw(offset);
  }
};

// Header, keys, directory, padding, data. `infos` and `key_values` are encoded
// already; the counts are theirs unless overridden.
struct RawFile {
  std::uint32_t version = 3;
  std::vector<std::string> key_values = {};
  std::vector<std::string> infos = {};
  std::string data = {};
  std::uint64_t alignment = 32;
  std::int64_t tensor_count = -1;
  std::int64_t kv_count = -1;

  std::string Bytes() const {
    std::string bytes =
        "GGUF" + Raw(version) +
        Raw(tensor_count < 0 ? static_cast<std::uint64_t>(infos.size())
                             : static_cast<std::uint64_t>(tensor_count)) +
        Raw(kv_count < 0 ? static_cast<std::uint64_t>(key_values.size())
                         : static_cast<std::uint64_t>(kv_count));
    for (const std::string& key_value : key_values) bytes += key_value;
    for (const std::string& info : infos) bytes += info;
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment, '\0');
    return bytes + data;
  }
};

inline std::string FileWithKey(const std::string& key_value) {
  return RawFile{.key_values = {key_value}}.Bytes();
}

inline std::string FileWithTensor(const RawTensor& tensor,
                                  std::size_t data_bytes = 64) {
  return RawFile{.infos = {tensor.Bytes()},
                 .data = std::string(data_bytes, '\x11')}
      .Bytes();
}

inline absl::StatusOr<std::unique_ptr<GgufFile>> ParseRaw(
    const std::string& bytes) {
  return GgufFile::Parse("model.gguf", std::as_bytes(std::span(bytes)));
}

}  // namespace fucina

#endif  // FUCINA_TESTS_CORE_GGUF_RAW_GGUF_H_
