#include "fucina/gguf/gguf_writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/gguf/atomic_file.h"
#include "core/gguf/gguf_parser.h"
#include "core/gguf/gguf_status.h"
#include "core/gguf/gguf_value.h"
#include "core/gguf/tensor_layout.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"

namespace fucina {
namespace {

using gguf::BadFile;

constexpr std::uint32_t kVersion = 3;
constexpr absl::string_view kArchitecture = "general.architecture";
constexpr absl::string_view kAlignment = "general.alignment";
constexpr absl::string_view kQuantizationVersion =
    "general.quantization_version";
// One less than the reader takes: ggml's names end with a zero in 64 bytes.
constexpr std::size_t kMaxNameBytes = 63;

template <typename T>
void Put(T value, std::string* out) {
  static_assert(std::is_arithmetic_v<T>);
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out->append(bytes, sizeof(T));
}

void PutString(absl::string_view text, std::string* out) {
  Put<std::uint64_t>(text.size(), out);
  absl::StrAppend(out, text);
}

void PutType(GgufType type, std::string* out) {
  Put(static_cast<std::uint32_t>(type), out);
}

// An array of numbers: type, element type, count, elements.
template <typename T>
std::string ArrayOf(GgufType element_type, std::span<const T> values) {
  std::string out;
  PutType(GgufType::kArray, &out);
  PutType(element_type, &out);
  Put<std::uint64_t>(values.size(), &out);
  for (const T& value : values) Put(value, &out);
  return out;
}

template <typename String>
std::string ArrayOfStrings(std::span<const String> values) {
  std::string out;
  PutType(GgufType::kArray, &out);
  PutType(GgufType::kString, &out);
  Put<std::uint64_t>(values.size(), &out);
  for (const String& value : values) PutString(value, &out);
  return out;
}

template <typename T>
std::string Scalar(GgufType type, T value) {
  std::string out;
  PutType(type, &out);
  Put(value, &out);
  return out;
}

struct WrittenTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::uint64_t> ne;
  std::span<const std::byte> data;
};

}  // namespace

struct GgufWriter::Impl {
  struct KeyValue {
    std::string key;
    std::string encoded;  // type and value
  };

  std::vector<KeyValue> key_values;
  absl::flat_hash_set<std::string> keys;
  std::vector<WrittenTensor> tensors;
  absl::flat_hash_set<std::string> names;
  std::deque<std::vector<float>> owned;  // values that tensors point to
  std::uint64_t alignment = gguf::kDefaultAlignment;
  bool quantized = false;
  absl::Status status;  // the first mistake

  void Fail(absl::Status mistake) { status.Update(std::move(mistake)); }
  void AddKeyValue(absl::string_view key, std::string encoded);
  bool SetAlignment(absl::string_view encoded);
  absl::Status CheckTensor(const WrittenTensor& tensor) const;
  std::string EncodeHead() const;
};

void GgufWriter::Impl::AddKeyValue(absl::string_view key, std::string encoded) {
  const bool well_formed = !key.empty() && key.size() <= 65535 &&
                           std::all_of(key.begin(), key.end(), [](char c) {
                             return (c >= 'a' && c <= 'z') ||
                                    (c >= '0' && c <= '9') || c == '_' ||
                                    c == '.' || c == '-';
                           });
  if (!well_formed) {
    Fail(BadFile(GgufError::kBadKey, "key '", Printable(key, 80),
                 "': expected 1 to 65535 bytes out of a-z, 0-9, '_', '.' and "
                 "'-'"));
    return;
  }
  if (!keys.insert(std::string(key)).second) {
    Fail(BadFile(GgufError::kDuplicateKey, "key '", key,
                 "' was added twice, expected once"));
    return;
  }
  if (key == kAlignment && !SetAlignment(encoded)) return;
  KeyValue key_value = {std::string(key), std::move(encoded)};
  if (key == kArchitecture) {
    key_values.insert(key_values.begin(), std::move(key_value));
  } else {
    key_values.push_back(std::move(key_value));
  }
}

// ggml reads this key as u32 and nothing else.
bool GgufWriter::Impl::SetAlignment(absl::string_view encoded) {
  std::uint32_t value = 0;
  const bool is_u32 =
      absl::StartsWith(encoded, Scalar(GgufType::kU32, value).substr(0, 4));
  if (is_u32) std::memcpy(&value, encoded.data() + 4, sizeof(value));
  if (value < gguf::kMinAlignment || value > gguf::kMaxAlignment ||
      (value & (value - 1)) != 0) {
    Fail(BadFile(
        GgufError::kBadAlignment, "key '", kAlignment,
        "': expected a u32 power of two from ", gguf::kMinAlignment, " to ",
        gguf::kMaxAlignment,
        is_u32 ? absl::StrCat(", found ", value) : ", found another type"));
    return false;
  }
  alignment = value;
  return true;
}

absl::Status GgufWriter::Impl::CheckTensor(const WrittenTensor& tensor) const {
  const std::string where =
      absl::StrCat("tensor '", Printable(tensor.name), "'");
  if (tensor.name.empty() || tensor.name.size() > kMaxNameBytes ||
      tensor.name.find('\0') != std::string::npos) {
    return BadFile(GgufError::kBadTensorName, where, ": name has ",
                   tensor.name.size(), " bytes, expected 1 to ", kMaxNameBytes,
                   " and no zero byte");
  }
  if (tensor.ne.empty() || tensor.ne.size() > gguf::kMaxDims) {
    return BadFile(GgufError::kBadNDims, where, ": ", tensor.ne.size(),
                   " dimensions, expected 1 to ", gguf::kMaxDims);
  }
  std::array<std::uint64_t, gguf::kMaxDims> ne = {1, 1, 1, 1};
  std::copy(tensor.ne.begin(), tensor.ne.end(), ne.begin());
  FUCINA_RETURN_IF_ERROR(gguf::CheckDims(tensor.name, ne.data(),
                                         static_cast<int>(tensor.ne.size())));
  FUCINA_ASSIGN_OR_RETURN(
      const std::uint64_t size_bytes,
      gguf::TensorBytes(tensor.name, tensor.dtype, ne.data()));
  if (tensor.data.size() != size_bytes) {
    return BadFile(GgufError::kValueRange, where, ": given ",
                   tensor.data.size(), " bytes, expected ", size_bytes,
                   " for its shape and type ", Name(tensor.dtype));
  }
  return absl::OkStatus();
}

// Everything before the tensor data, padded.
std::string GgufWriter::Impl::EncodeHead() const {
  const bool add_quantization_version =
      quantized && !keys.contains(kQuantizationVersion);
  std::string out = "GGUF";
  Put(kVersion, &out);
  Put<std::uint64_t>(tensors.size(), &out);
  Put<std::uint64_t>(key_values.size() + (add_quantization_version ? 1 : 0),
                     &out);
  for (const KeyValue& key_value : key_values) {
    PutString(key_value.key, &out);
    out += key_value.encoded;
  }
  if (add_quantization_version) {
    PutString(kQuantizationVersion, &out);
    out += Scalar<std::uint32_t>(GgufType::kU32, 2);
  }
  std::uint64_t offset = 0;
  for (const WrittenTensor& tensor : tensors) {
    PutString(tensor.name, &out);
    Put(static_cast<std::uint32_t>(tensor.ne.size()), &out);
    for (const std::uint64_t dim : tensor.ne) Put(dim, &out);
    Put(static_cast<std::uint32_t>(tensor.dtype), &out);
    Put(offset, &out);
    offset = gguf::PadTo(offset + tensor.data.size(), alignment);
  }
  out.resize(gguf::PadTo(out.size(), alignment), '\0');
  return out;
}

GgufWriter::GgufWriter() : impl_(std::make_unique<Impl>()) {}
GgufWriter::~GgufWriter() = default;
GgufWriter::GgufWriter(GgufWriter&&) noexcept = default;
GgufWriter& GgufWriter::operator=(GgufWriter&&) noexcept = default;

void GgufWriter::AddU8(absl::string_view key, std::uint8_t value) {
  impl_->AddKeyValue(key, Scalar(GgufType::kU8, value));
}
void GgufWriter::AddI8(absl::string_view key, std::int8_t value) {
  impl_->AddKeyValue(key, Scalar(GgufType::kI8, value));
}
void GgufWriter::AddU16(absl::string_view key, std::uint16_t value) {
  impl_->AddKeyValue(key, Scalar(GgufType::kU16, value));
}
void GgufWriter::AddI16(absl::string_view key, std::int16_t value) {
  impl_->AddKeyValue(key, Scalar(GgufType::kI16, value));
}
void GgufWriter::AddU32(absl::string_view key, std::uint32_t value) {
  impl_->AddKeyValue(key, Scalar(GgufType::kU32, value));
}
void GgufWriter::AddI32(absl::string_view key, std::int32_t value) {
  impl_->AddKeyValue(key, Scalar(GgufType::kI32, value));
}
void GgufWriter::AddU64(absl::string_view key, std::uint64_t value) {
  impl_->AddKeyValue(key, Scalar(GgufType::kU64, value));
}
void GgufWriter::AddI64(absl::string_view key, std::int64_t value) {
  impl_->AddKeyValue(key, Scalar(GgufType::kI64, value));
}
void GgufWriter::AddF32(absl::string_view key, float value) {
  impl_->AddKeyValue(key, Scalar(GgufType::kF32, value));
}
void GgufWriter::AddF64(absl::string_view key, double value) {
  impl_->AddKeyValue(key, Scalar(GgufType::kF64, value));
}
void GgufWriter::AddBool(absl::string_view key, bool value) {
  impl_->AddKeyValue(key, Scalar<std::uint8_t>(GgufType::kBool, value ? 1 : 0));
}
void GgufWriter::AddString(absl::string_view key, absl::string_view value) {
  std::string encoded;
  PutType(GgufType::kString, &encoded);
  PutString(value, &encoded);
  impl_->AddKeyValue(key, std::move(encoded));
}

void GgufWriter::AddU32s(absl::string_view key,
                         std::span<const std::uint32_t> values) {
  impl_->AddKeyValue(key, ArrayOf(GgufType::kU32, values));
}
void GgufWriter::AddI32s(absl::string_view key,
                         std::span<const std::int32_t> values) {
  impl_->AddKeyValue(key, ArrayOf(GgufType::kI32, values));
}
void GgufWriter::AddF32s(absl::string_view key, std::span<const float> values) {
  impl_->AddKeyValue(key, ArrayOf(GgufType::kF32, values));
}
void GgufWriter::AddBools(absl::string_view key, std::span<const bool> values) {
  static_assert(sizeof(bool) == 1);
  impl_->AddKeyValue(key, ArrayOf(GgufType::kBool, values));
}
void GgufWriter::AddStrings(absl::string_view key,
                            std::span<const absl::string_view> values) {
  impl_->AddKeyValue(key, ArrayOfStrings(values));
}
void GgufWriter::AddStrings(absl::string_view key,
                            std::span<const std::string> values) {
  impl_->AddKeyValue(key, ArrayOfStrings(values));
}

void GgufWriter::AddValue(absl::string_view key, const GgufValue& value) {
  std::string encoded;
  PutType(value.type, &encoded);
  if (value.type == GgufType::kArray) {
    PutType(value.element_type, &encoded);
    Put(value.count, &encoded);
    absl::StrAppend(&encoded, value.bytes);
  } else if (value.type == GgufType::kString) {
    PutString(value.bytes, &encoded);
  } else {
    absl::StrAppend(&encoded, value.bytes);
  }
  impl_->AddKeyValue(key, std::move(encoded));
}

void GgufWriter::AddTensor(absl::string_view name, DType dtype,
                           std::span<const std::uint64_t> ne,
                           std::span<const std::byte> data) {
  WrittenTensor tensor = {std::string(name), dtype,
                          std::vector<std::uint64_t>(ne.begin(), ne.end()),
                          data};
  absl::Status mistake = impl_->CheckTensor(tensor);
  if (!mistake.ok()) return impl_->Fail(std::move(mistake));
  if (!impl_->names.insert(tensor.name).second) {
    return impl_->Fail(BadFile(GgufError::kDuplicateTensor, "tensor '",
                               Printable(name),
                               "' was added twice, expected once"));
  }
  impl_->quantized = impl_->quantized || Traits(dtype).block_size > 1;
  impl_->tensors.push_back(std::move(tensor));
}

void GgufWriter::AddF32Tensor(absl::string_view name,
                              std::span<const std::uint64_t> ne,
                              std::span<const float> values) {
  const std::vector<float>& copy =
      impl_->owned.emplace_back(values.begin(), values.end());
  AddTensor(name, DType::kF32, ne, std::as_bytes(std::span(copy)));
}

absl::StatusOr<std::string> GgufWriter::Serialize() const {
  FUCINA_RETURN_IF_ERROR(impl_->status);
  std::string out = impl_->EncodeHead();
  for (const WrittenTensor& tensor : impl_->tensors) {
    out.append(reinterpret_cast<const char*>(tensor.data.data()),
               tensor.data.size());
    out.resize(gguf::PadTo(out.size(), impl_->alignment), '\0');
  }
  return out;
}

absl::Status GgufWriter::Write(absl::string_view path) const {
  FUCINA_RETURN_IF_ERROR(impl_->status);
  const std::string shown = Printable(path);
  if (path.empty() || path.find('\0') != absl::string_view::npos) {
    return BadFile(GgufError::kIo, "'", shown,
                   "': expected a path, which is not empty and has no zero "
                   "byte");
  }
  const absl::Status status = [&]() -> absl::Status {
    FUCINA_ASSIGN_OR_RETURN(gguf::AtomicFile file,
                            gguf::AtomicFile::Create(std::string(path)));
    const std::string head = impl_->EncodeHead();
    FUCINA_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(head))));
    const std::vector<std::byte> zeros(impl_->alignment);
    for (const WrittenTensor& tensor : impl_->tensors) {
      FUCINA_RETURN_IF_ERROR(file.Append(tensor.data));
      const std::uint64_t size = tensor.data.size();
      FUCINA_RETURN_IF_ERROR(file.Append(
          std::span(zeros).first(gguf::PadTo(size, impl_->alignment) - size)));
    }
    return file.Commit();
  }();
  return status.ok() ? status : gguf::WithPrefix(shown, status);
}

}  // namespace fucina
