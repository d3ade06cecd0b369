#ifndef FUCINA_GGUF_GGUF_WRITER_H_
#define FUCINA_GGUF_GGUF_WRITER_H_

// Writes GGUF files: version 3, little-endian, tensors back to back in the
// order they were added, each padded with zeros to the alignment. Used by
// tests, converters and saved adapters. Thread-compatible.
//
// general.architecture comes first whenever it was added; the other keys keep
// their order. general.quantization_version = 2 is added when a tensor is
// quantized and the key was not. general.alignment is 32 unless that key is
// added with another value.
//
// The Add functions do not fail; the first mistake (a name used twice, a bad
// dimension, a size that does not match) is remembered and returned, with the
// name of the key or tensor, by Serialize and Write.
// Source: the GGUF format document, version 3.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/export.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/tensor/dtype.h"

namespace fucina {

class FUCINA_API GgufWriter {
 public:
  GgufWriter();
  ~GgufWriter();
  GgufWriter(GgufWriter&&) noexcept;
  GgufWriter& operator=(GgufWriter&&) noexcept;

  // --- metadata -------------------------------------------------------------
  void AddU8(absl::string_view key, std::uint8_t value);
  void AddI8(absl::string_view key, std::int8_t value);
  void AddU16(absl::string_view key, std::uint16_t value);
  void AddI16(absl::string_view key, std::int16_t value);
  void AddU32(absl::string_view key, std::uint32_t value);
  void AddI32(absl::string_view key, std::int32_t value);
  void AddU64(absl::string_view key, std::uint64_t value);
  void AddI64(absl::string_view key, std::int64_t value);
  void AddF32(absl::string_view key, float value);
  void AddF64(absl::string_view key, double value);
  void AddBool(absl::string_view key, bool value);
  void AddString(absl::string_view key, absl::string_view value);

  void AddU32s(absl::string_view key, std::span<const std::uint32_t> values);
  void AddI32s(absl::string_view key, std::span<const std::int32_t> values);
  void AddF32s(absl::string_view key, std::span<const float> values);
  void AddBools(absl::string_view key, std::span<const bool> values);
  void AddStrings(absl::string_view key,
                  std::span<const absl::string_view> values);
  void AddStrings(absl::string_view key, std::span<const std::string> values);
  // A value as read from another file.
  void AddValue(absl::string_view key, const GgufValue& value);

  // --- tensors --------------------------------------------------------------
  // `ne` as in files: ne[0] varies fastest, so a matrix [out, in] is {in, out}.
  // `data` is borrowed and must live until the last Serialize or Write.
  void AddTensor(absl::string_view name, DType dtype,
                 std::span<const std::uint64_t> ne,
                 std::span<const std::byte> data);
  // The same with f32 values, which are copied.
  void AddF32Tensor(absl::string_view name, std::span<const std::uint64_t> ne,
                    std::span<const float> values);

  // The whole file. InvalidArgument for the first mistake (see above).
  absl::StatusOr<std::string> Serialize() const;

  // Writes the file so that `path` holds either what it held before or all of
  // the new content: a temporary file in the same folder, flushed to disk, then
  // renamed. Errors: those of Serialize, and PermissionDenied, NotFound or
  // ResourceExhausted (disk full) from the system, naming the path; nothing is
  // left behind then.
  absl::Status Write(absl::string_view path) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fucina

#endif  // FUCINA_GGUF_GGUF_WRITER_H_
