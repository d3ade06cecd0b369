#ifndef FUCINA_TENSOR_LOW_RANK_H_
#define FUCINA_TENSOR_LOW_RANK_H_

// A matrix [out, in] given as scale * A * B without ever being multiplied out.

#include "fucina/tensor/tensor.h"

namespace fucina {

struct LowRank {
  Tensor a;  // [out, rank] f32
  Tensor b;  // [rank, in] f32
  float scale = 1.0F;
};

}  // namespace fucina

#endif  // FUCINA_TENSOR_LOW_RANK_H_
