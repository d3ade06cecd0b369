#ifndef FUCINA_OPS_ACTIVATION_H_
#define FUCINA_OPS_ACTIVATION_H_

// Activation functions of feed-forward layers.

#include "fucina/export.h"
#include "fucina/ops/context.h"
#include "fucina/tensor/tensor.h"

namespace fucina::ops {

// out = silu(gate) * up with silu(g) = g / (1 + exp(-g)), element by element.
// A large negative g gives a zero, never a NaN.
//
// gate, up, out  [num_rows, ffn_size] f32; out may be gate or up
FUCINA_API void GatedSilu(const Context& context, const Tensor& gate,
                          const Tensor& up, Tensor out);

}  // namespace fucina::ops

#endif  // FUCINA_OPS_ACTIVATION_H_
