#ifndef FUCINA_CONTRACT_PHASE_TIMES_H_
#define FUCINA_CONTRACT_PHASE_TIMES_H_

// Where the time of a forward goes. Measuring adds clock reads between phases
// and changes nothing else: the same kernels run.

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "fucina/export.h"

namespace fucina {

// In the order in which a layer runs them and a report prints them.
enum class Phase {
  kAttnPrep,      // norm before attention, quantized activations
  kQkv,           // query, key and value maps
  kQkNormRope,    // head norms, rotary embedding
  kAttention,     // rows into the cache, attention over it
  kAttnOut,       // output map
  kAttnResidual,  // its addition
  kFfnPrep,       // norm before the feed-forward
  kRouter,        // expert choice
  kGateUp,        // gate and up maps; of experts: the whole mixture
  kSwiglu,        // their product, where it is not part of gate_up
  kDown,          // down map
  kFfnResidual,   // its addition
  kFinal,         // last norm and output matrix
  kOther,         // embedding and bookkeeping
};
inline constexpr int kNumPhases = 14;

// "attn_prep", "qkv", …
FUCINA_API absl::string_view Name(Phase phase);

// Sums of wall time since the last Clear. Written by forwards of one thread.
struct PhaseTimes {
  std::array<std::int64_t, kNumPhases> phase_ns = {};  // by Phase
  std::int64_t num_forwards = 0;
  std::int64_t num_layers = 0;  // of all forwards together

  void Clear() { *this = PhaseTimes{}; }
};

// A decoder that can tell where its time goes; ask a Decoder by dynamic_cast.
class FUCINA_API PhaseReporter {
 public:
  virtual ~PhaseReporter();
  // Adds the time of each phase of every forward to `times`; null stops. Set
  // it while no forward runs. `times` must outlive its use.
  virtual void set_phase_times(PhaseTimes* times) = 0;
};

}  // namespace fucina

#endif  // FUCINA_CONTRACT_PHASE_TIMES_H_
