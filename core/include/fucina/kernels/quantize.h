#ifndef FUCINA_KERNELS_QUANTIZE_H_
#define FUCINA_KERNELS_QUANTIZE_H_

// Rows between f32 and the block formats of GGUF files.
//
// Decoding is bit-exact with the file format's reference: products in f32, in
// the reference's order, never fused. Encoding follows the reference rules, so
// a row encoded here has the bytes that the reference encoder writes.
//
// Pure functions on pointers: no allocation, no state. Thread-safe. Source and
// destination must not overlap. Pointers to blocks need no alignment beyond
// two bytes (one for MXFP4; four for F32, and for Q8_K, which only lives in
// our own buffers).

#include <cstdint>

#include "fucina/export.h"
#include "fucina/tensor/dtype.h"

namespace fucina {

// True for every type DequantizeRow takes: all weight types, and Q8_1 and Q8_K.
FUCINA_API bool CanDequantize(DType dtype);

// Decodes one row.
//
// src  [n / block size] blocks of `dtype`
// dst  [n] f32
//
// REQUIRES: CanDequantize(dtype); n is a multiple of the block size.
// Any bit pattern decodes; a scale that is not finite shows in the result.
FUCINA_API void DequantizeRow(DType dtype, const void* src, float* dst,
                              std::int64_t n);

// True for every type QuantizeRow takes: F32, F16, BF16, Q4_0, Q4_1, Q5_0,
// Q5_1, Q8_0, Q8_1, Q2_K to Q6_K, Q8_K, IQ4_NL, IQ4_XS, MXFP4, TQ1_0, TQ2_0.
// The IQ1, IQ2 and IQ3 encoders need calibration data and are not here.
FUCINA_API bool CanQuantize(DType dtype);

// Encodes one row without importance data.
//
// src  [n] f32, finite
// dst  [n / block size] blocks of `dtype`, every byte written
//
// REQUIRES: CanQuantize(dtype); n is a multiple of the block size.
// Input that is not finite gives unspecified codes under a scale that is not
// finite either, or a large one; nothing traps. Values too large for an f16
// scale make it infinite: FindInvalidBlock tells.
FUCINA_API void QuantizeRow(DType dtype, const float* src, void* dst,
                            std::int64_t n);

// Looks for a block that decodes to NaN or infinity whatever its codes: a
// scale or minimum that is not finite, an MXFP4 exponent of 255; for F32, F16
// and BF16 an element that is not finite. Quant codes are always valid.
//
// src  [n / block size] blocks of `dtype`
//
// Returns the index of the first such block (element, for the plain types),
// -1 if there is none. REQUIRES: as for DequantizeRow.
FUCINA_API std::int64_t FindInvalidBlock(DType dtype, const void* src,
                                         std::int64_t n);

}  // namespace fucina

#endif  // FUCINA_KERNELS_QUANTIZE_H_
