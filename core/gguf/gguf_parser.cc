#include "core/gguf/gguf_parser.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/numeric/bits.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/gguf/byte_cursor.h"
#include "core/gguf/gguf_status.h"
#include "core/gguf/gguf_value.h"
#include "core/gguf/tensor_layout.h"
#include "core/gguf/wrong_file.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"

namespace fucina::gguf {
namespace {

constexpr std::uint64_t kHeaderBytes = 24;
constexpr std::uint64_t kMaxKeyBytes = 65535;
constexpr std::uint64_t kMaxStringBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxArrayElements = std::uint64_t{1} << 30;
// ggml holds 63 bytes and a terminator; the format document allows 64.
constexpr std::uint64_t kMaxNameBytes = 64;
// Key length 8 + one byte of key + type 4 + one byte of value.
constexpr std::uint64_t kMinKeyValueBytes = 14;
// Name length 8 + one byte + n_dims 4 + one dimension 8 + type 4 + offset 8.
constexpr std::uint64_t kMinTensorInfoBytes = 33;
// What is reserved because the file merely claims a count.
constexpr std::uint64_t kMaxReservedBytes = std::uint64_t{1} << 20;

constexpr absl::string_view kIncomplete =
    "; the file is damaged or its download incomplete";

template <typename T>
void ReserveBounded(std::uint64_t count, std::vector<T>* items) {
  items->reserve(std::min(count, kMaxReservedBytes / sizeof(T)));
}

std::string SupportedTypes() {
  std::string list;
  for (const DTypeTraits& traits : AllDTypes()) {
    absl::StrAppend(&list, list.empty() ? "" : ", ", traits.name);
  }
  return list;
}

class PartParser {
 public:
  explicit PartParser(std::span<const std::byte> bytes)
      : bytes_(bytes), cursor_(bytes) {}

  absl::StatusOr<ParsedPart> Parse() {
    FUCINA_RETURN_IF_ERROR(ParseHeader());
    ReserveBounded(kv_count_, &part_.keys);
    ReserveBounded(kv_count_, &part_.values);
    for (std::uint64_t i = 0; i < kv_count_; ++i) {
      FUCINA_RETURN_IF_ERROR(ParseKeyValue(i));
    }
    FUCINA_RETURN_IF_ERROR(ReadAlignment());
    ReserveBounded(tensor_count_, &part_.tensors);
    for (std::uint64_t i = 0; i < tensor_count_; ++i) {
      FUCINA_RETURN_IF_ERROR(ParseTensorInfo(i));
    }
    FUCINA_RETURN_IF_ERROR(PlaceTensors());
    return std::move(part_);
  }

 private:
  absl::Status Truncated(absl::string_view where) const {
    return BadFile(GgufError::kTruncated, "the file ends inside ", where,
                   " (at byte ", bytes_.size(), ")", kIncomplete);
  }

  absl::Status ParseHeader() {
    const absl::string_view head(reinterpret_cast<const char*>(bytes_.data()),
                                 std::min<std::size_t>(bytes_.size(), 512));
    const bool has_magic = head.substr(0, 4) == "GGUF";
    if (bytes_.empty()) {
      return BadFile(GgufError::kTruncated, "the file is empty");
    }
    if (bytes_.size() < kHeaderBytes) {
      const std::string guess = has_magic ? "" : GuessWrongFile(head);
      return BadFile(GgufError::kTruncated, "the file has ", bytes_.size(),
                     " bytes, expected at least ", kHeaderBytes,
                     guess.empty() ? "" : "; it ", guess);
    }
    if (!has_magic) {
      const std::string guess = GuessWrongFile(head);
      return BadFile(GgufError::kBadMagic, "not a GGUF file: it starts with \"",
                     Printable(head.substr(0, 4)), "\", expected \"GGUF\"",
                     guess.empty() ? "" : "; it ", guess);
    }
    std::uint32_t magic = 0;
    cursor_.Read(&magic);
    cursor_.Read(&part_.version);
    cursor_.Read(&tensor_count_);
    cursor_.Read(&kv_count_);
    FUCINA_RETURN_IF_ERROR(CheckVersion());
    FUCINA_RETURN_IF_ERROR(
        CheckCount("tensors", tensor_count_, kMinTensorInfoBytes));
    return CheckCount("metadata keys", kv_count_, kMinKeyValueBytes);
  }

  absl::Status CheckVersion() const {
    const std::uint32_t version = part_.version;
    if (version == 2 || version == 3) return absl::OkStatus();
    const std::uint32_t swapped = version >> 24 | (version >> 8 & 0xFF00u) |
                                  (version << 8 & 0xFF0000u) | version << 24;
    if ((version & 0xFFFFu) == 0 && swapped >= 1 && swapped <= 3) {
      return BadFile(GgufError::kWrongEndian, "version bytes are those of ",
                     swapped,
                     " in the other byte order: a big-endian file; get or "
                     "convert the little-endian one");
    }
    if (version == 1) {
      return BadFile(GgufError::kUnsupportedVersion,
                     "GGUF version 1 is obsolete, expected 2 or 3; convert or "
                     "download the model again");
    }
    return BadFile(GgufError::kUnsupportedVersion, "GGUF version ", version,
                   " is not supported, expected 2 or 3");
  }

  absl::Status CheckCount(absl::string_view what, std::uint64_t count,
                          std::uint64_t min_bytes) const {
    const std::uint64_t most = cursor_.remaining() / min_bytes;
    if (count <= most) return absl::OkStatus();
    return BadFile(GgufError::kCountLimit, "the header announces ", count, " ",
                   what, ", but the ", cursor_.remaining(),
                   " bytes after it hold at most ", most);
  }

  // --- metadata -------------------------------------------------------------

  absl::Status ParseKeyValue(std::uint64_t index) {
    absl::string_view key;
    FUCINA_RETURN_IF_ERROR(ParseKey(index, &key));
    const std::string where = absl::StrCat("key '", Printable(key), "'");

    std::uint32_t type_id = 0;
    if (!cursor_.Read(&type_id)) return Truncated(where);
    if (!IsKnownType(type_id)) {
      return BadFile(GgufError::kBadValueType, where, ": unknown value type ",
                     type_id, ", expected 0 to 12");
    }
    GgufValue value;
    value.type = static_cast<GgufType>(type_id);
    if (value.type == GgufType::kArray) {
      FUCINA_RETURN_IF_ERROR(ParseArray(where, &value));
    } else if (value.type == GgufType::kString) {
      FUCINA_RETURN_IF_ERROR(ParseString(where, &value.bytes));
    } else {
      if (!cursor_.Take(FixedBytes(value.type), &value.bytes)) {
        return Truncated(absl::StrCat("the value of ", where));
      }
      if (value.type == GgufType::kBool) {
        FUCINA_RETURN_IF_ERROR(CheckBools(where, value.bytes));
      }
    }
    if (!part_.key_index.emplace(key, part_.keys.size()).second) {
      return BadFile(GgufError::kDuplicateKey, where,
                     " occurs twice, expected once");
    }
    part_.keys.push_back(key);
    part_.values.push_back(value);
    return absl::OkStatus();
  }

  absl::Status ParseKey(std::uint64_t index, absl::string_view* key) {
    const std::string where =
        absl::StrCat("metadata key ", index + 1, " of ", kv_count_);
    std::uint64_t length = 0;
    if (!cursor_.Read(&length)) return Truncated(where);
    if (length == 0 || length > kMaxKeyBytes) {
      return BadFile(GgufError::kBadKey, where, ": name has ", length,
                     " bytes, expected 1 to ", kMaxKeyBytes);
    }
    if (!cursor_.Take(length, key)) return Truncated(where);
    for (const char c : *key) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20 || byte == 0x7F) {
        return BadFile(GgufError::kBadKey, where, ": name '", Printable(*key),
                       "' has the control byte ",
                       absl::StrFormat("0x%02x", byte),
                       ", expected lower-case words and dots");
      }
    }
    return absl::OkStatus();
  }

  absl::Status ParseString(absl::string_view where, absl::string_view* text) {
    std::uint64_t length = 0;
    if (!cursor_.Read(&length)) {
      return Truncated(absl::StrCat("the value of ", where));
    }
    if (length > kMaxStringBytes) {
      return BadFile(GgufError::kStringLimit, where, ": string of ", length,
                     " bytes, expected at most ", kMaxStringBytes);
    }
    if (!cursor_.Take(length, text)) {
      return BadFile(GgufError::kStringLimit, where, ": string of ", length,
                     " bytes, but the file has only ", cursor_.remaining(),
                     " more", kIncomplete);
    }
    return absl::OkStatus();
  }

  absl::Status ParseArray(absl::string_view where, GgufValue* value) {
    std::uint32_t type_id = 0;
    if (!cursor_.Read(&type_id) || !cursor_.Read(&value->count)) {
      return Truncated(absl::StrCat("the value of ", where));
    }
    if (!IsKnownType(type_id)) {
      return BadFile(GgufError::kBadValueType, where,
                     ": unknown array element type ", type_id,
                     ", expected 0 to 8 or 10 to 12");
    }
    value->element_type = static_cast<GgufType>(type_id);
    if (value->element_type == GgufType::kArray) {
      return BadFile(GgufError::kNestedArray, where,
                     ": array of arrays, expected an array of numbers, bools "
                     "or strings");
    }
    if (value->count > kMaxArrayElements) {
      return BadFile(GgufError::kArrayLimit, where, ": array of ", value->count,
                     " elements, expected at most ", kMaxArrayElements);
    }
    const bool strings = value->element_type == GgufType::kString;
    // A string needs at least the eight bytes of its length.
    const std::uint64_t element_bytes =
        strings ? 8 : FixedBytes(value->element_type);
    if (value->count * element_bytes > cursor_.remaining()) {
      return BadFile(GgufError::kArrayLimit, where, ": array of ", value->count,
                     " ", Name(value->element_type), ", but the file has only ",
                     cursor_.remaining(), " more bytes", kIncomplete);
    }
    if (strings) return WalkStrings(where, value);
    cursor_.Take(value->count * element_bytes, &value->bytes);
    if (value->element_type == GgufType::kBool) {
      return CheckBools(where, value->bytes);
    }
    return absl::OkStatus();
  }

  // Finds the end of an array of strings and proves that each is inside.
  absl::Status WalkStrings(absl::string_view where, GgufValue* value) {
    const std::uint64_t begin = cursor_.position();
    for (std::uint64_t i = 0; i < value->count; ++i) {
      std::uint64_t length = 0;
      absl::string_view text;
      if (!cursor_.Read(&length)) {
        return Truncated(absl::StrCat("string ", i, " of ", where));
      }
      if (length > kMaxStringBytes || !cursor_.Take(length, &text)) {
        return BadFile(GgufError::kStringLimit, where, ": string ", i, " has ",
                       length, " bytes, but the file has only ",
                       cursor_.remaining(), " more, and ", kMaxStringBytes,
                       " are allowed", kIncomplete);
      }
    }
    const std::uint64_t size = cursor_.position() - begin;
    value->bytes =
        absl::string_view(reinterpret_cast<const char*>(bytes_.data()) + begin,
                          static_cast<std::size_t>(size));
    return absl::OkStatus();
  }

  static absl::Status CheckBools(absl::string_view where,
                                 absl::string_view bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      if (byte > 1) {
        return BadFile(GgufError::kBadBool, where, ": bool ",
                       bytes.size() == 1 ? "" : absl::StrCat(i, " "),
                       "has the byte ", static_cast<int>(byte),
                       ", expected 0 or 1");
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadAlignment() {
    constexpr absl::string_view kKey = "general.alignment";
    part_.alignment = kDefaultAlignment;
    const GgufValue* value = part_.Find(kKey);
    if (value == nullptr) return absl::OkStatus();
    const absl::StatusOr<std::int64_t> alignment =
        ToInt(kKey, *value, kMinAlignment, kMaxAlignment);
    if (!alignment.ok() || (*alignment & (*alignment - 1)) != 0) {
      return BadFile(GgufError::kBadAlignment, "key '", kKey,
                     "': expected a power of two from ", kMinAlignment, " to ",
                     kMaxAlignment, ", found ", Describe(*value));
    }
    part_.alignment = static_cast<std::uint64_t>(*alignment);
    return absl::OkStatus();
  }

  // --- tensor directory -----------------------------------------------------

  absl::Status ParseTensorInfo(std::uint64_t index) {
    GgufTensorInfo info;
    FUCINA_RETURN_IF_ERROR(ParseTensorName(index, &info.name));
    const std::string where =
        absl::StrCat("tensor '", Printable(info.name), "'");
    std::uint32_t rank = 0;
    if (!cursor_.Read(&rank)) return Truncated(where);
    if (rank < 1 || rank > kMaxDims) {
      return BadFile(GgufError::kBadNDims, where, ": ", rank,
                     " dimensions, expected 1 to ", kMaxDims);
    }
    info.rank = static_cast<int>(rank);
    for (int i = 0; i < info.rank; ++i) {
      if (!cursor_.Read(&info.ne[i])) return Truncated(where);
    }
    FUCINA_RETURN_IF_ERROR(CheckDims(info.name, info.ne, info.rank));

    std::uint32_t type_id = 0;
    if (!cursor_.Read(&type_id)) return Truncated(where);
    const DTypeTraits* traits = FindDType(type_id);
    if (traits == nullptr) return UnsupportedType(where, type_id);
    info.dtype = traits->dtype;
    FUCINA_ASSIGN_OR_RETURN(info.size_bytes,
                            TensorBytes(info.name, info.dtype, info.ne));
    // Relative to the data section until PlaceTensors knows where that begins.
    if (!cursor_.Read(&info.file_offset)) return Truncated(where);
    if (!names_.insert(info.name).second) {
      return BadFile(GgufError::kDuplicateTensor, where,
                     " occurs twice, expected once");
    }
    part_.tensors.push_back(info);
    return absl::OkStatus();
  }

  absl::Status ParseTensorName(std::uint64_t index, absl::string_view* name) {
    const std::string where =
        absl::StrCat("tensor ", index + 1, " of ", tensor_count_);
    std::uint64_t length = 0;
    if (!cursor_.Read(&length)) return Truncated(where);
    if (length == 0 || length > kMaxNameBytes) {
      return BadFile(GgufError::kBadTensorName, where, ": name has ", length,
                     " bytes, expected 1 to ", kMaxNameBytes);
    }
    if (!cursor_.Take(length, name)) return Truncated(where);
    if (name->find('\0') != absl::string_view::npos) {
      return BadFile(GgufError::kBadTensorName, where, ": name '",
                     Printable(*name), "' has a zero byte");
    }
    if (length == kMaxNameBytes) {
      part_.notes.push_back(absl::StrCat("tensor '", Printable(*name),
                                         "' has a name of 64 bytes, which "
                                         "other readers refuse"));
    }
    return absl::OkStatus();
  }

  static absl::Status UnsupportedType(absl::string_view where,
                                      std::uint32_t type_id) {
    const UnsupportedDType known = FindUnsupportedDType(type_id);
    return BadFile(known.removed ? GgufError::kRemovedTensorType
                                 : GgufError::kUnknownTensorType,
                   where, ": tensor type ", type_id,
                   known.name.empty()
                       ? std::string(" is unknown")
                       : absl::StrCat(" (", known.name, "): ", known.reason),
                   "; supported are ", SupportedTypes());
  }

  absl::Status PlaceTensors() {
    part_.data_start = PadTo(cursor_.position(), part_.alignment);
    if (part_.data_start > bytes_.size()) {
      if (!part_.tensors.empty()) {
        return Truncated("the padding before the tensor data");
      }
      // Vocabulary-only files are written like this, and nothing is lost.
      part_.data_start = bytes_.size();
      part_.notes.push_back("no padding after the metadata");
    }
    std::vector<Placement> placements;
    placements.reserve(part_.tensors.size());
    for (const GgufTensorInfo& info : part_.tensors) {
      placements.push_back({info.name, info.file_offset, info.size_bytes});
    }
    FUCINA_RETURN_IF_ERROR(CheckLayout(placements, part_.alignment,
                                       bytes_.size() - part_.data_start,
                                       &part_.notes));
    for (GgufTensorInfo& info : part_.tensors) {
      info.file_offset += part_.data_start;
      info.data = bytes_.data() + info.file_offset;
    }
    return absl::OkStatus();
  }

  std::span<const std::byte> bytes_;
  ByteCursor cursor_;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t kv_count_ = 0;
  ParsedPart part_;
  absl::flat_hash_set<absl::string_view> names_;
};

}  // namespace

absl::StatusOr<ParsedPart> ParsePart(std::span<const std::byte> bytes) {
  return PartParser(bytes).Parse();
}

}  // namespace fucina::gguf
