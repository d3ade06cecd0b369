#ifndef FUCINA_OPS_TOKEN_MASK_H_
#define FUCINA_OPS_TOKEN_MASK_H_

// A set of tokens, one bit each, applied to their logits.

#include <cstdint>
#include <span>

#include "fucina/export.h"

namespace fucina::ops {

// Sets -inf on every logit whose bit is zero; the others stay as they are. On
// the calling thread, with the fastest kernels of this machine: all give the
// same result.
//
// allowed  bit i % 32 of word i / 32 is token i
// logits   [vocab_size], at most 32 per word
//
// REQUIRES: allowed.size() * 32 >= logits.size().
FUCINA_API void ApplyTokenMask(std::span<const std::uint32_t> allowed,
                               std::span<float> logits);

}  // namespace fucina::ops

#endif  // FUCINA_OPS_TOKEN_MASK_H_
