#include "fucina/ops/token_mask.h"

#include <cstddef>
#include <limits>

#include "fucina/diag/check.h"
#include "fucina/kernels/kernels.h"

namespace fucina::ops {

void ApplyTokenMask(std::span<const std::uint32_t> allowed,
                    std::span<float> logits) {
  constexpr std::size_t kWordBits = 32;
  FUCINA_CHECK_GE(allowed.size() * kWordBits, logits.size());
  static const Kernels& kernels = *KernelsFor(BestKernelLevel());
  kernels.rows.keep_marked(
      allowed.data(), -std::numeric_limits<float>::infinity(),
      static_cast<std::int64_t>(logits.size()), logits.data());
}

}  // namespace fucina::ops
