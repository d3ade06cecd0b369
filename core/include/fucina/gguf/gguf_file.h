#ifndef FUCINA_GGUF_GGUF_FILE_H_
#define FUCINA_GGUF_GGUF_FILE_H_

// A mapped model file: metadata and tensors by name, from one GGUF file or from
// all parts of a split one. Everything a file says is checked against what is
// there before it is used; see docs/formats/gguf.md.
//
// Immutable after Open, safe to share between threads. Views and tensors borrow
// from the mapping and live as long as the object.
// Source: the GGUF format document, versions 2 and 3.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/export.h"
#include "fucina/tensor/dtype.h"
#include "fucina/tensor/tensor.h"

namespace fucina {

// Metadata value types as the file numbers them.
enum class GgufType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

FUCINA_API absl::string_view Name(GgufType type);

// One metadata value, viewed in the mapping.
struct GgufValue {
  GgufType type = GgufType::kU32;
  GgufType element_type = GgufType::kU32;  // of an array
  std::uint64_t count = 1;                 // elements of an array
  // Scalars and arrays of numbers: the raw little-endian bytes, unaligned.
  // A string: its bytes. An array of strings: see GgufFile::GetStrings.
  absl::string_view bytes;
};

struct GgufTensorInfo {
  absl::string_view name;
  DType dtype = DType::kF32;
  int rank = 0;
  // As in the file: ne[0] varies fastest; missing trailing dimensions are 1.
  std::uint64_t ne[4] = {1, 1, 1, 1};
  std::uint64_t size_bytes = 0;
  int part = 0;                   // which file of a split model
  std::uint64_t file_offset = 0;  // absolute, in that file
  const std::byte* data = nullptr;
};

class FUCINA_API GgufFile {
 public:
  // Maps and validates `path`: a file, any part of a split model, or a folder
  // that holds exactly one model. InvalidArgument for content that breaks the
  // format (the message begins with the path and names key, tensor, value found
  // and expected; see gguf_error.h), NotFound for a missing file or part,
  // PermissionDenied where the system says so. Nothing is loaded half, and no
  // weight is read.
  static absl::StatusOr<std::unique_ptr<GgufFile>> Open(absl::string_view path);
  // The same for one file's bytes in memory; used by tests and the fuzzer.
  // `bytes` must outlive the result, and must be aligned to 32 bytes if tensors
  // are to be viewed. A part of a split model is refused.
  static absl::StatusOr<std::unique_ptr<GgufFile>> Parse(
      absl::string_view name, std::span<const std::byte> bytes);

  ~GgufFile();
  GgufFile(const GgufFile&) = delete;
  GgufFile& operator=(const GgufFile&) = delete;

  // As given to Open; safe to print (control bytes escaped).
  const std::string& display_name() const;
  int version() const;
  int num_parts() const;
  std::uint64_t file_bytes() const;  // all parts
  // The path of one part, safe to print. REQUIRES: 0 <= part < num_parts().
  const std::string& part_name(int part) const;
  // Facts worth knowing that are no errors: gaps, order, trailing bytes.
  std::span<const std::string> notes() const;

  // --- metadata -------------------------------------------------------------
  std::span<const absl::string_view> keys() const;  // file order
  bool Has(absl::string_view key) const;
  const GgufValue* Find(absl::string_view key) const;  // null when absent

  // Typed access. nullopt when the key is absent; InvalidArgument naming the
  // key when it has another class or does not fit. Integers accept every
  // integer type whose value fits, floats accept f32, f64 and integers, bools
  // accept bool and the integers 0 and 1. Of a split model only the first part
  // has metadata. The lists take arrays only, of at most 2^24 elements; strings
  // are views into the mapping.
  absl::StatusOr<std::optional<std::int64_t>> GetInt(absl::string_view key,
                                                     std::int64_t min,
                                                     std::int64_t max) const;
  absl::StatusOr<std::optional<double>> GetFloat(absl::string_view key) const;
  absl::StatusOr<std::optional<bool>> GetBool(absl::string_view key) const;
  absl::StatusOr<std::optional<absl::string_view>> GetString(
      absl::string_view key) const;
  absl::StatusOr<std::optional<std::vector<std::int64_t>>> GetInts(
      absl::string_view key) const;
  absl::StatusOr<std::optional<std::vector<float>>> GetFloats(
      absl::string_view key) const;
  absl::StatusOr<std::optional<std::vector<absl::string_view>>> GetStrings(
      absl::string_view key) const;

  // --- tensors --------------------------------------------------------------
  std::span<const GgufTensorInfo> tensors() const;  // file order, part by part
  const GgufTensorInfo* FindTensor(absl::string_view name) const;
  // A read-only view, shape outermost first: ne {in, out} becomes [out, in].
  static Tensor View(const GgufTensorInfo& info);
  // Tells the system that these bytes of a tensor's data, or all of them, were
  // copied and need not stay in memory. Reading them again is correct, only
  // slow. Thread-safe.
  void Release(std::span<const std::byte> bytes) const;
  // Copies bytes [offset, offset + out.size()) of a tensor by positioned reads,
  // past the mapping: what streams from disk uses this, since a file cut or a
  // disk failing meanwhile is then an error and not a signal. Thread-safe.
  // REQUIRES: the range lies inside the tensor.
  absl::Status ReadAt(const GgufTensorInfo& info, std::uint64_t offset,
                      std::span<std::byte> out) const;
  // DataLoss, naming the part, when a file got shorter since Open. Touching the
  // mapping would then end the process; loaders ask before they start.
  absl::Status CheckUnchanged() const;

 private:
  struct Impl;
  explicit GgufFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fucina

#endif  // FUCINA_GGUF_GGUF_FILE_H_
