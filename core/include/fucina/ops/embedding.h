#ifndef FUCINA_OPS_EMBEDDING_H_
#define FUCINA_OPS_EMBEDDING_H_

// Rows of an embedding table.

#include <cstdint>
#include <span>

#include "fucina/export.h"
#include "fucina/ops/context.h"
#include "fucina/tensor/tensor.h"

namespace fucina::ops {

// Copies the table rows of `tokens` to `out` as f32, without scaling.
//
// table   [vocab_size, hidden_size], any weight type, rows as in the file
// tokens  [num_tokens]
// out     [num_tokens, hidden_size] f32
//
// REQUIRES: every token is in [0, vocab_size).
FUCINA_API void Embedding(const Context& context, const Tensor& table,
                          std::span<const std::int32_t> tokens, Tensor out);

}  // namespace fucina::ops

#endif  // FUCINA_OPS_EMBEDDING_H_
