#ifndef FUCINA_CORE_DECODE_TOP_CANDIDATES_H_
#define FUCINA_CORE_DECODE_TOP_CANDIDATES_H_

#include <span>

#include "fucina/contract/decoder.h"
#include "fucina/export.h"

namespace fucina {

// The ids of the `out.size()` largest logits, best first; the lower id wins a
// tie. REQUIRES: out is not empty and not longer than logits; no NaN matters.
FUCINA_API void TopCandidates(std::span<const float> logits,
                              std::span<TokenId> out);

}  // namespace fucina

#endif  // FUCINA_CORE_DECODE_TOP_CANDIDATES_H_
