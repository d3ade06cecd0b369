#ifndef FUCINA_CORE_DECODE_LARGEST_H_
#define FUCINA_CORE_DECODE_LARGEST_H_

#include <span>

namespace fucina {

// The largest of `values`, -inf when there are none; a NaN counts for nothing.
float Largest(std::span<const float> values);

}  // namespace fucina

#endif  // FUCINA_CORE_DECODE_LARGEST_H_
