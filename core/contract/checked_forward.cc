#include "fucina/contract/checked_forward.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"

namespace fucina {
namespace {

constexpr char kPayload[] = "fucina.broken_decoder";

// Empty when all is well.
std::string Complaint(const DecoderInfo& info, const SequenceStep& step,
                      int length_before) {
  const std::int64_t input =
      static_cast<std::int64_t>(step.tokens.size()) +
      (step.suffix_embeddings.rank() == 0 ? 0
                                          : step.suffix_embeddings.num_rows());
  const std::int64_t length = length_before + input;
  if (step.state->length() != length) {
    return absl::StrCat("its state holds ", step.state->length(),
                        " tokens after a forward, expected ", length);
  }
  if (step.rows == LogitRows::kNone) return "";
  const std::int64_t rows = step.rows == LogitRows::kAll ? input : 1;
  const Tensor& logits = step.logits;
  if (logits.rank() == 2 && logits.dtype() == DType::kF32 &&
      logits.dim(0) == rows && logits.dim(1) == info.vocab_size &&
      logits.data() != nullptr) {
    return "";
  }
  return absl::StrCat("its logits are ",
                      logits.rank() == 0 ? "missing" : logits.DebugString(),
                      ", expected f32 [", rows, ", ", info.vocab_size, "]");
}

}  // namespace

absl::Status CheckedForward(const Decoder& decoder, SequenceStep& step) {
  const int length_before = step.state->length();
  FUCINA_RETURN_IF_ERROR(decoder.Forward({&step, 1}));
  return CheckForwarded(decoder, length_before, step);
}

absl::Status CheckForwarded(const Decoder& decoder, int length_before,
                            SequenceStep& step) {
  const std::string complaint = Complaint(decoder.info(), step, length_before);
  if (complaint.empty()) return absl::OkStatus();
  step.logits = Tensor();
  // The first complaint is the one to tell.
  step.state->Truncate(length_before).IgnoreError();
  absl::Status broken = absl::InternalError(absl::StrCat(
      "the decoder of family '", Printable(decoder.info().architecture),
      "' broke the contract: ", complaint));
  broken.SetPayload(kPayload, absl::Cord());
  return broken;
}

bool BlamesDecoder(const absl::Status& status) {
  return status.GetPayload(kPayload).has_value();
}

}  // namespace fucina
