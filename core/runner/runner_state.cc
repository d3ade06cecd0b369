#include "core/runner/runner_state.h"

#include "fucina/diag/status_macros.h"

namespace fucina {
namespace {

// A verification of drafts asks for a handful of rows, a scored prompt for
// thousands. Beyond this many rows memory is given back when no longer needed.
constexpr std::int64_t kKeptRows = 64;

}  // namespace

RunnerState::~RunnerState() = default;

absl::Status RunnerState::ReserveLogits(std::int64_t rows,
                                        std::int64_t vocab_size) {
  const bool oversized = logit_rows_ > kKeptRows && rows <= kKeptRows;
  if (rows <= logit_rows_ && !oversized) return absl::OkStatus();
  FUCINA_ASSIGN_OR_RETURN(
      Buffer buffer,
      Buffer::Allocate(static_cast<std::size_t>(rows) *
                       static_cast<std::size_t>(vocab_size) * sizeof(float)));
  logits_ = std::move(buffer);
  logit_rows_ = rows;
  return absl::OkStatus();
}

}  // namespace fucina
