#ifndef FUCINA_TENSOR_DTYPE_H_
#define FUCINA_TENSOR_DTYPE_H_

// Element types as GGUF files number them, and the size of their blocks.
// Source: the GGUF format document; ids and sizes are those of ggml.

#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"
#include "fucina/export.h"

namespace fucina {

enum class DType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
};

// What a type may be used for.
enum class DTypeUse {
  kWeight,      // a matrix of a model may have it
  kActivation,  // an intermediate of a kernel; refused as a weight
  kData,        // indices and the like; refused as a weight
};

struct DTypeTraits {
  DType dtype = DType::kF32;
  absl::string_view name;  // as ggml prints it, lower case
  int block_size = 0;      // elements per block; 1 for plain types
  int block_bytes = 0;     // bytes per block
  DTypeUse use = DTypeUse::kWeight;
};

// Every type this build knows, in id order.
FUCINA_API std::span<const DTypeTraits> AllDTypes();

// Null when no supported type has this number.
FUCINA_API const DTypeTraits* FindDType(std::uint32_t id);

// REQUIRES: `dtype` is one of the enumerators.
FUCINA_API const DTypeTraits& Traits(DType dtype);

// The name of a number that is known but not supported (removed formats,
// formats private to a fork, formats refused in this version) and why; empty
// views when the number means nothing to us.
struct UnsupportedDType {
  absl::string_view name;
  absl::string_view reason;
  bool removed = false;  // the format no longer exists in files
};
FUCINA_API UnsupportedDType FindUnsupportedDType(std::uint32_t id);

inline absl::string_view Name(DType dtype) { return Traits(dtype).name; }

// Bytes of one row of `num_elements` elements.
// REQUIRES: num_elements is a multiple of the block size.
FUCINA_API std::int64_t RowBytes(DType dtype, std::int64_t num_elements);

}  // namespace fucina

#endif  // FUCINA_TENSOR_DTYPE_H_
