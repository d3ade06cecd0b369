#ifndef FUCINA_CONTRACT_CHECKED_FORWARD_H_
#define FUCINA_CONTRACT_CHECKED_FORWARD_H_

// A decoder comes from a plugin. Whoever reads its logits goes through this
// check, so that a wrong shape is an error with a name instead of a read past
// the end.

#include "absl/status/status.h"
#include "fucina/contract/decoder.h"
#include "fucina/export.h"

namespace fucina {

// decoder.Forward for one step, and then: the state holds the step's input, and
// the logits are f32 [rows asked for, vocab_size], row after row.
//
// Errors of the decoder as they are; Internal, naming its architecture, what it
// returned and what was expected, when the promise is broken. The state is then
// cut back to what it held, as far as the decoder can.
FUCINA_API absl::Status CheckedForward(const Decoder& decoder,
                                       SequenceStep& step);

// The check alone, of one step of a batch that decoder.Forward returned OK for.
// `length_before` is what the step's state held before.
FUCINA_API absl::Status CheckForwarded(const Decoder& decoder,
                                       int length_before, SequenceStep& step);

// Whether `status` is such a broken promise, so that whoever knows which plugin
// made the decoder can name it.
FUCINA_API bool BlamesDecoder(const absl::Status& status);

}  // namespace fucina

#endif  // FUCINA_CONTRACT_CHECKED_FORWARD_H_
