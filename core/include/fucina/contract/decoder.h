#ifndef FUCINA_CONTRACT_DECODER_H_
#define FUCINA_CONTRACT_DECODER_H_

// The language model as the rest of the program sees it: tokens in, logits out.
// A family plugin makes a Decoder; the generator, drafters, adapter sources and
// the server use nothing else of it.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fucina/contract/adapter.h"
#include "fucina/export.h"
#include "fucina/tensor/tensor.h"

namespace fucina {

using TokenId = std::int32_t;

struct DecoderInfo {
  std::string architecture;  // GGUF general.architecture
  int num_layers = 0;        // of the trunk
  int hidden_size = 0;
  int vocab_size = 0;        // rows of the logits; may exceed the token count
  int context_length = 0;    // trained limit, tokens
  bool can_truncate = true;  // false for recurrent families: no speculation
  std::array<SiteShape, kNumLinearSites> sites = {};  // by LinearSite
  std::int64_t weight_bytes = 0;                      // resident for weights
  std::int64_t state_bytes_per_token = 0;             // of one state
  // Instruction-set level in use, for the report; empty when it has no choice.
  std::string kernel_level = {};
};

// What one sequence remembers between calls. One thread at a time.
class FUCINA_API DecodeState {
 public:
  virtual ~DecodeState();
  // Tokens held.
  virtual int length() const = 0;
  // Tokens it can hold.
  virtual int capacity() const = 0;
  // Forgets everything from `length` on; a no-op when `length` >= length().
  // InvalidArgument when negative, Unimplemented unless the decoder's
  // can_truncate. Afterwards the state is, bit for bit, one that never held the
  // forgotten tokens.
  virtual absl::Status Truncate(int length) = 0;
};

enum class TapRows { kNone, kLast, kAll };

// Sees the residual stream after each layer.
class FUCINA_API LayerTap {
 public:
  virtual ~LayerTap();
  // Which rows of the step OnLayer is shown after this layer; all by default.
  // The answer may not change. What nobody wants to see is not computed for a
  // tap.
  virtual TapRows Wants(int layer) const;
  // Called in layer order on the forward's thread.
  // position  of the first row shown; the state's length before, when all are
  // residual  [rows shown, hidden_size] f32, valid during the call
  virtual void OnLayer(int layer, int position, const Tensor& residual) = 0;
};

enum class LogitRows { kNone, kLast, kAll };

// One sequence's share of a forward pass.
struct SequenceStep {
  std::span<const TokenId> tokens = {};
  DecodeState* state = nullptr;  // never null in a call
  // [n, hidden_size] f32 appended after the tokens as if they were embedding
  // rows; empty for none.
  Tensor suffix_embeddings = {};
  LogitRows rows = LogitRows::kLast;
  const AdapterSet* adapter = nullptr;  // null: base weights alone
  LayerTap* tap = nullptr;              // null: nobody looks
  // Out: [rows, vocab_size] f32. Points into the state; valid until the state's
  // next use.
  Tensor logits = {};
};

// An immutable model. Safe to share between threads; each thread uses its own
// states.
class FUCINA_API Decoder {
 public:
  virtual ~Decoder();
  virtual const DecoderInfo& info() const = 0;

  // A state with room for `capacity` tokens. InvalidArgument when it is not
  // positive, ResourceExhausted with the bytes wanted when memory lacks.
  virtual absl::StatusOr<std::unique_ptr<DecodeState>> NewState(
      int capacity) const = 0;

  // Appends each step's input at positions [state->length(), …) and computes
  // the logit rows asked for. Prefill, one decode step, a verification of k
  // drafts, lockstep streams and a server's mixed batch are all this call.
  //
  // Errors, after which every state is as before: InvalidArgument for an empty
  // batch or step, a token outside [0, vocab_size), one state twice in the
  // batch or a state of another decoder; OutOfRange when a state has no room;
  // Unimplemented, by name, for a request this family does not honour.
  //
  // Promise: each logit row equals, bit for bit, the row that the same tokens
  // would give one at a time, alone, on any number of threads. Everything
  // lossless in this program rests on that sentence.
  virtual absl::Status Forward(std::span<SequenceStep> batch) const = 0;
};

}  // namespace fucina

#endif  // FUCINA_CONTRACT_DECODER_H_
