#include "core/gguf/gguf_value.h"

#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/gguf/byte_cursor.h"
#include "core/gguf/gguf_status.h"
#include "fucina/diag/check.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"

namespace fucina {

absl::string_view Name(GgufType type) {
  switch (type) {
    case GgufType::kU8:
      return "u8";
    case GgufType::kI8:
      return "i8";
    case GgufType::kU16:
      return "u16";
    case GgufType::kI16:
      return "i16";
    case GgufType::kU32:
      return "u32";
    case GgufType::kI32:
      return "i32";
    case GgufType::kF32:
      return "f32";
    case GgufType::kBool:
      return "bool";
    case GgufType::kString:
      return "string";
    case GgufType::kArray:
      return "array";
    case GgufType::kU64:
      return "u64";
    case GgufType::kI64:
      return "i64";
    case GgufType::kF64:
      return "f64";
  }
  return "unknown";
}

namespace gguf {
namespace {

// The getters copy; a vocabulary has some 10^5 entries, so this bounds what a
// hostile file can make a caller allocate without ever touching a real one.
constexpr std::uint64_t kMaxCopiedElements = std::uint64_t{1} << 24;

constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

template <typename T>
T Load(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// A stored integer; u64 above the i64 range keeps its value in `large`.
struct Integer {
  std::int64_t value = 0;
  std::uint64_t large = 0;  // non-zero only when `value` cannot hold it

  std::string Text() const {
    return large != 0 ? absl::StrCat(large) : absl::StrCat(value);
  }
};

// REQUIRES: IsInteger(type).
Integer LoadInteger(GgufType type, const char* bytes) {
  FUCINA_CHECK(IsInteger(type)) << std::string(Name(type));
  switch (type) {
    case GgufType::kU8:
      return {Load<std::uint8_t>(bytes)};
    case GgufType::kI8:
      return {Load<std::int8_t>(bytes)};
    case GgufType::kU16:
      return {Load<std::uint16_t>(bytes)};
    case GgufType::kI16:
      return {Load<std::int16_t>(bytes)};
    case GgufType::kU32:
      return {Load<std::uint32_t>(bytes)};
    case GgufType::kI32:
      return {Load<std::int32_t>(bytes)};
    case GgufType::kI64:
      return {Load<std::int64_t>(bytes)};
    case GgufType::kU64: {
      const auto value = Load<std::uint64_t>(bytes);
      if (value > static_cast<std::uint64_t>(kInt64Max)) return {0, value};
      return {static_cast<std::int64_t>(value)};
    }
    default:
      return {};
  }
}

bool IsNumber(GgufType type) {
  return IsInteger(type) || type == GgufType::kF32 || type == GgufType::kF64;
}

// REQUIRES: IsNumber(type).
double LoadNumber(GgufType type, const char* bytes) {
  if (type == GgufType::kF32) return static_cast<double>(Load<float>(bytes));
  if (type == GgufType::kF64) return Load<double>(bytes);
  const Integer integer = LoadInteger(type, bytes);
  return integer.large != 0 ? static_cast<double>(integer.large)
                            : static_cast<double>(integer.value);
}

absl::Status WrongClass(absl::string_view key, absl::string_view expected,
                        const GgufValue& value) {
  return BadFile(GgufError::kBadValueType, "key '", Printable(key),
                 "': expected ", expected, ", found ", Describe(value));
}

absl::Status CheckArray(absl::string_view key, absl::string_view expected,
                        bool element_fits, const GgufValue& value) {
  if (value.type != GgufType::kArray || !element_fits) {
    return WrongClass(key, expected, value);
  }
  if (value.count > kMaxCopiedElements) {
    return BadFile(GgufError::kArrayLimit, "key '", Printable(key),
                   "': ", value.count, " elements are more than the ",
                   kMaxCopiedElements, " that this program reads");
  }
  return absl::OkStatus();
}

}  // namespace

std::uint64_t FixedBytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

bool IsInteger(GgufType type) {
  return FixedBytes(type) != 0 && type != GgufType::kBool &&
         type != GgufType::kF32 && type != GgufType::kF64;
}

bool IsKnownType(std::uint32_t id) {
  return id <= static_cast<std::uint32_t>(GgufType::kF64);
}

std::string Describe(const GgufValue& value) {
  if (value.type == GgufType::kArray) {
    return absl::StrCat("array of ", value.count, " ",
                        Name(value.element_type));
  }
  if (value.type == GgufType::kString) {
    return absl::StrCat("string \"", Printable(value.bytes, 60), "\"");
  }
  if (value.type == GgufType::kBool) {
    return value.bytes[0] == 0 ? "bool false" : "bool true";
  }
  if (IsInteger(value.type)) {
    return absl::StrCat(Name(value.type), " ",
                        LoadInteger(value.type, value.bytes.data()).Text());
  }
  return absl::StrCat(Name(value.type), " ",
                      LoadNumber(value.type, value.bytes.data()));
}

absl::StatusOr<std::int64_t> ToInt(absl::string_view key,
                                   const GgufValue& value, std::int64_t min,
                                   std::int64_t max) {
  if (!IsInteger(value.type)) return WrongClass(key, "an integer", value);
  const Integer integer = LoadInteger(value.type, value.bytes.data());
  if (integer.large != 0 || integer.value < min || integer.value > max) {
    return BadFile(GgufError::kValueRange, "key '", Printable(key),
                   "': expected an integer from ", min, " to ", max, ", found ",
                   Describe(value));
  }
  return integer.value;
}

absl::StatusOr<double> ToFloat(absl::string_view key, const GgufValue& value) {
  if (!IsNumber(value.type)) return WrongClass(key, "a number", value);
  return LoadNumber(value.type, value.bytes.data());
}

absl::StatusOr<bool> ToBool(absl::string_view key, const GgufValue& value) {
  if (value.type == GgufType::kBool) return value.bytes[0] != 0;
  if (IsInteger(value.type)) {
    const Integer integer = LoadInteger(value.type, value.bytes.data());
    if (integer.large == 0 && (integer.value == 0 || integer.value == 1)) {
      return integer.value == 1;
    }
  }
  return WrongClass(key, "a bool (or the integer 0 or 1)", value);
}

absl::StatusOr<absl::string_view> ToString(absl::string_view key,
                                           const GgufValue& value) {
  if (value.type != GgufType::kString) {
    return WrongClass(key, "a string", value);
  }
  return value.bytes;
}

absl::StatusOr<std::vector<std::int64_t>> ToInts(absl::string_view key,
                                                 const GgufValue& value) {
  FUCINA_RETURN_IF_ERROR(CheckArray(key, "an array of integers",
                                    IsInteger(value.element_type), value));
  const std::uint64_t element_bytes = FixedBytes(value.element_type);
  std::vector<std::int64_t> result;
  result.reserve(value.count);
  for (std::uint64_t i = 0; i < value.count; ++i) {
    const Integer integer =
        LoadInteger(value.element_type, value.bytes.data() + i * element_bytes);
    if (integer.large != 0) {
      return BadFile(GgufError::kValueRange, "key '", Printable(key),
                     "': element ", i, " is ", integer.large,
                     ", expected at most ", kInt64Max);
    }
    result.push_back(integer.value);
  }
  return result;
}

absl::StatusOr<std::vector<float>> ToFloats(absl::string_view key,
                                            const GgufValue& value) {
  FUCINA_RETURN_IF_ERROR(CheckArray(key, "an array of numbers",
                                    IsNumber(value.element_type), value));
  const std::uint64_t element_bytes = FixedBytes(value.element_type);
  std::vector<float> result;
  result.reserve(value.count);
  for (std::uint64_t i = 0; i < value.count; ++i) {
    result.push_back(static_cast<float>(LoadNumber(
        value.element_type, value.bytes.data() + i * element_bytes)));
  }
  return result;
}

absl::StatusOr<std::vector<absl::string_view>> ToStrings(
    absl::string_view key, const GgufValue& value) {
  FUCINA_RETURN_IF_ERROR(CheckArray(key, "an array of strings",
                                    value.element_type == GgufType::kString,
                                    value));
  ByteCursor cursor(std::as_bytes(std::span(value.bytes)));
  std::vector<absl::string_view> result;
  result.reserve(value.count);
  for (std::uint64_t i = 0; i < value.count; ++i) {
    std::uint64_t length = 0;
    absl::string_view text;
    const bool complete = cursor.Read(&length) && cursor.Take(length, &text);
    FUCINA_CHECK(complete) << "the parser walked this array before";
    result.push_back(text);
  }
  return result;
}

}  // namespace gguf
}  // namespace fucina
