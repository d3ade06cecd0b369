#ifndef FUCINA_OPS_NORM_H_
#define FUCINA_OPS_NORM_H_

// Root-mean-square normalisation of rows and of heads, and the residual
// addition that usually precedes it. Each row is computed by itself in one
// fixed order: squares summed in 16 f64 lanes, lanes combined by one tree, the
// root in f64, the scaling in f32.

#include <span>

#include "fucina/export.h"
#include "fucina/ops/context.h"
#include "fucina/tensor/tensor.h"

namespace fucina::ops {

// out = x * r * weight with r = 1 / sqrt(mean(x^2) + eps), row by row.
//
// x       [num_rows, size] f32
// weight  [size]
// out     [num_rows, size] f32; may be x itself
//
// Source: arXiv 1910.07467; eps is inside the root, as in every GGUF family.
FUCINA_API void RmsNorm(const Context& context, const Tensor& x,
                        std::span<const float> weight, float eps, Tensor out);

// RmsNorm of every head of every row, in place, all with the same weight: the
// query and key norm of Qwen3.
//
// x       [num_rows, num_heads * head_dim] f32, modified in place
// weight  [head_dim]
//
// REQUIRES: the row size is a multiple of weight.size().
FUCINA_API void HeadRmsNorm(const Context& context,
                            std::span<const float> weight, float eps, Tensor x);

// x = x + delta, element by element.
//
// x, delta  [num_rows, size] f32
FUCINA_API void AddInPlace(const Context& context, const Tensor& delta,
                           Tensor x);

// AddInPlace, then RmsNorm of the sum, in one pass over the rows. The bits are
// those of the two calls.
//
// x, delta, out  [num_rows, size] f32; out is neither of the others
// weight         [size]
FUCINA_API void AddRmsNorm(const Context& context, const Tensor& delta,
                           std::span<const float> weight, float eps, Tensor x,
                           Tensor out);

}  // namespace fucina::ops

#endif  // FUCINA_OPS_NORM_H_
