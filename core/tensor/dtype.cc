#include "fucina/tensor/dtype.h"

#include <algorithm>
#include <array>

#include "fucina/diag/check.h"

namespace fucina {
namespace {

constexpr auto kWeight = DTypeUse::kWeight;
constexpr auto kActivation = DTypeUse::kActivation;
constexpr auto kData = DTypeUse::kData;

constexpr std::array kTraits = {
    DTypeTraits{DType::kF32, "f32", 1, 4, kWeight},
    DTypeTraits{DType::kF16, "f16", 1, 2, kWeight},
    DTypeTraits{DType::kQ4_0, "q4_0", 32, 18, kWeight},
    DTypeTraits{DType::kQ4_1, "q4_1", 32, 20, kWeight},
    DTypeTraits{DType::kQ5_0, "q5_0", 32, 22, kWeight},
    DTypeTraits{DType::kQ5_1, "q5_1", 32, 24, kWeight},
    DTypeTraits{DType::kQ8_0, "q8_0", 32, 34, kWeight},
    DTypeTraits{DType::kQ8_1, "q8_1", 32, 36, kActivation},
    DTypeTraits{DType::kQ2_K, "q2_k", 256, 84, kWeight},
    DTypeTraits{DType::kQ3_K, "q3_k", 256, 110, kWeight},
    DTypeTraits{DType::kQ4_K, "q4_k", 256, 144, kWeight},
    DTypeTraits{DType::kQ5_K, "q5_k", 256, 176, kWeight},
    DTypeTraits{DType::kQ6_K, "q6_k", 256, 210, kWeight},
    DTypeTraits{DType::kQ8_K, "q8_k", 256, 292, kActivation},
    DTypeTraits{DType::kIQ2_XXS, "iq2_xxs", 256, 66, kWeight},
    DTypeTraits{DType::kIQ2_XS, "iq2_xs", 256, 74, kWeight},
    DTypeTraits{DType::kIQ3_XXS, "iq3_xxs", 256, 98, kWeight},
    DTypeTraits{DType::kIQ1_S, "iq1_s", 256, 50, kWeight},
    DTypeTraits{DType::kIQ4_NL, "iq4_nl", 32, 18, kWeight},
    DTypeTraits{DType::kIQ3_S, "iq3_s", 256, 110, kWeight},
    DTypeTraits{DType::kIQ2_S, "iq2_s", 256, 82, kWeight},
    DTypeTraits{DType::kIQ4_XS, "iq4_xs", 256, 136, kWeight},
    DTypeTraits{DType::kI8, "i8", 1, 1, kData},
    DTypeTraits{DType::kI16, "i16", 1, 2, kData},
    DTypeTraits{DType::kI32, "i32", 1, 4, kData},
    DTypeTraits{DType::kI64, "i64", 1, 8, kData},
    DTypeTraits{DType::kF64, "f64", 1, 8, kData},
    DTypeTraits{DType::kIQ1_M, "iq1_m", 256, 56, kWeight},
    DTypeTraits{DType::kBF16, "bf16", 1, 2, kWeight},
    DTypeTraits{DType::kTQ1_0, "tq1_0", 256, 54, kWeight},
    DTypeTraits{DType::kTQ2_0, "tq2_0", 256, 66, kWeight},
    DTypeTraits{DType::kMXFP4, "mxfp4", 32, 17, kWeight},
};

}  // namespace

std::span<const DTypeTraits> AllDTypes() { return kTraits; }

const DTypeTraits* FindDType(std::uint32_t id) {
  const auto* it = std::find_if(
      kTraits.begin(), kTraits.end(), [id](const DTypeTraits& traits) {
        return static_cast<std::uint32_t>(traits.dtype) == id;
      });
  return it == kTraits.end() ? nullptr : it;
}

const DTypeTraits& Traits(DType dtype) {
  const DTypeTraits* traits = FindDType(static_cast<std::uint32_t>(dtype));
  FUCINA_CHECK(traits != nullptr) << "type id " << static_cast<int>(dtype);
  return *traits;
}

UnsupportedDType FindUnsupportedDType(std::uint32_t id) {
  constexpr absl::string_view kRepacked =
      "repacked at load now; download the plain file";
  constexpr absl::string_view kGone = "removed from the format long ago";
  constexpr absl::string_view kLater = "not supported in this version";
  switch (id) {
    case 4:
      return {"q4_2", kGone, true};
    case 5:
      return {"q4_3", kGone, true};
    case 31:
      return {"q4_0_4_4", kRepacked, true};
    case 32:
      return {"q4_0_4_8", kRepacked, true};
    case 33:
      return {"q4_0_8_8", kRepacked, true};
    case 36:
      return {"iq4_nl_4_4", kRepacked, true};
    case 37:
      return {"iq4_nl_4_8", kRepacked, true};
    case 38:
      return {"iq4_nl_8_8", kRepacked, true};
    case 40:
      return {"nvfp4", kLater, false};
    case 41:
      return {"q1_0", kLater, false};
    case 42:
      return {"q2_0", "this number means two different formats", false};
    default:
      return {};
  }
}

std::int64_t RowBytes(DType dtype, std::int64_t num_elements) {
  const DTypeTraits& traits = Traits(dtype);
  FUCINA_CHECK_EQ(num_elements % traits.block_size, 0);
  return num_elements / traits.block_size * traits.block_bytes;
}

}  // namespace fucina
