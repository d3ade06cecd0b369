#include "cli/verify_modes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "fucina/contract/checked_forward.h"
#include "fucina/decode/sampler.h"
#include "fucina/diag/check.h"
#include "fucina/diag/status_macros.h"

namespace fucina::cli {
namespace {

using Row = std::vector<float>;

// Appends `tokens` to `state` and copies the logit rows asked for.
absl::StatusOr<std::vector<Row>> Forward(const Decoder& decoder,
                                         DecodeState& state,
                                         std::span<const TokenId> tokens,
                                         LogitRows rows) {
  SequenceStep step = {.tokens = tokens, .state = &state, .rows = rows};
  FUCINA_RETURN_IF_ERROR(CheckedForward(decoder, step));
  std::vector<Row> result;
  for (std::int64_t i = 0; i < step.logits.num_rows(); ++i) {
    const float* row = step.logits.row_f32(i);
    result.emplace_back(row, row + step.logits.row_size());
    FUCINA_RETURN_IF_ERROR(CheckLogits(result.back(), state.length()));
  }
  return result;
}

absl::StatusOr<Row> ForwardLast(const Decoder& decoder, DecodeState& state,
                                std::span<const TokenId> tokens) {
  FUCINA_ASSIGN_OR_RETURN(std::vector<Row> rows,
                          Forward(decoder, state, tokens, LogitRows::kLast));
  return std::move(rows.front());
}

bool SameBits(const Row& a, const Row& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

double MaxAbs(const Row& a, const Row& b) {
  double max = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    max = std::max(
        max, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return max;
}

}  // namespace

absl::Status VerifyCache(const Decoder& decoder,
                         std::span<const TokenId> prompt, int steps,
                         std::ostream& out) {
  const int capacity = static_cast<int>(prompt.size()) + steps;
  FUCINA_ASSIGN_OR_RETURN(const auto cached, decoder.NewState(capacity));
  std::vector<TokenId> sequence(prompt.begin(), prompt.end());
  int aligned_steps = 0;
  int failed_steps = 0;
  double max_abs = 0;
  FUCINA_ASSIGN_OR_RETURN(Row ours, ForwardLast(decoder, *cached, prompt));
  for (int step = 0; step <= steps; ++step) {
    FUCINA_ASSIGN_OR_RETURN(const auto fresh, decoder.NewState(capacity));
    FUCINA_ASSIGN_OR_RETURN(const Row reference,
                            ForwardLast(decoder, *fresh, sequence));
    const TokenId top = ArgMax(ours);
    const TokenId reference_top = ArgMax(reference);
    const double difference = MaxAbs(ours, reference);
    max_abs = std::max(max_abs, difference);
    const bool aligned = top == reference_top;
    const bool benign =
        aligned || static_cast<double>(reference[reference_top]) -
                           static_cast<double>(reference[top]) <
                       2 * difference;
    aligned_steps += aligned ? 1 : 0;
    failed_steps += benign ? 0 : 1;
    out << absl::StrFormat(
        "step %d: cache_top=%d ref_top=%d aligned=%s max_abs=%.6g%s\n", step,
        top, reference_top, aligned ? "true" : "false", difference,
        aligned  ? ""
        : benign ? " (near-tie)"
                 : " (DIVERGED)");
    if (step == steps) break;
    sequence.push_back(top);
    FUCINA_ASSIGN_OR_RETURN(ours, ForwardLast(decoder, *cached, {&top, 1}));
  }
  out << absl::StrFormat("verify: %s (top-aligned %d/%d steps, max_abs=%.6g)\n",
                         failed_steps == 0 ? "PASS" : "FAIL", aligned_steps,
                         steps + 1, max_abs);
  if (failed_steps == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the cache changed the best token in ", failed_steps, " of ",
                   steps + 1, " steps"));
}

absl::Status VerifyBatch(const Decoder& decoder,
                         std::span<const TokenId> prompt, int steps,
                         std::ostream& out) {
  FUCINA_CHECK_GE(steps, 2);
  const int capacity = static_cast<int>(prompt.size()) + steps + 1;
  FUCINA_ASSIGN_OR_RETURN(const auto sequential, decoder.NewState(capacity));
  // rows[i] follows the prompt and i committed tokens.
  std::vector<Row> rows;
  std::vector<TokenId> committed;
  FUCINA_ASSIGN_OR_RETURN(Row row, ForwardLast(decoder, *sequential, prompt));
  rows.push_back(std::move(row));
  for (int i = 0; i < steps; ++i) {
    const TokenId token = ArgMax(rows.back());
    committed.push_back(token);
    FUCINA_ASSIGN_OR_RETURN(row,
                            ForwardLast(decoder, *sequential, {&token, 1}));
    rows.push_back(std::move(row));
  }

  int failures = 0;
  const auto report = [&](absl::string_view what, int equal, int count,
                          int first, double max_abs, int flips) {
    const bool same = equal == count;
    failures += same ? 0 : 1;
    out << what << ": " << equal << "/" << count << " rows bitwise equal";
    if (!same) {
      out << absl::StrFormat(
          ", first difference at row %d, max_abs=%.6g, top-1 flips %d", first,
          max_abs, flips);
    }
    out << "\n";
  };
  const auto compare = [&](absl::string_view what,
                           const std::vector<Row>& batch, int offset) {
    int equal = 0;
    int first = -1;
    int flips = 0;
    double max_abs = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Row& expected = rows[static_cast<std::size_t>(offset) + i];
      if (SameBits(batch[i], expected)) {
        ++equal;
        continue;
      }
      if (first < 0) first = static_cast<int>(i);
      max_abs = std::max(max_abs, MaxAbs(batch[i], expected));
      flips += ArgMax(batch[i]) == ArgMax(expected) ? 0 : 1;
    }
    report(what, equal, static_cast<int>(batch.size()), first, max_abs, flips);
  };

  for (const int m : {2, 3, 4, 5, 8, 12, 16, 24, 32}) {
    if (m > steps) break;
    FUCINA_ASSIGN_OR_RETURN(const auto state, decoder.NewState(capacity));
    FUCINA_RETURN_IF_ERROR(ForwardLast(decoder, *state, prompt).status());
    const std::span<const TokenId> tokens =
        std::span<const TokenId>(committed).first(m);
    FUCINA_ASSIGN_OR_RETURN(const std::vector<Row> batch,
                            Forward(decoder, *state, tokens, LogitRows::kAll));
    compare(absl::StrCat("batch m=", m), batch, 1);
    if (m < steps) {
      FUCINA_ASSIGN_OR_RETURN(
          const std::vector<Row> next,
          Forward(decoder, *state, {&committed[m], 1}, LogitRows::kAll));
      compare(absl::StrCat("  next step after m=", m), next, m + 1);
    }
  }

  if (decoder.info().can_truncate) {
    // One right token and wrong drafts behind it, cut off again.
    const int m = std::min(9, steps);
    FUCINA_ASSIGN_OR_RETURN(const auto state, decoder.NewState(capacity));
    FUCINA_RETURN_IF_ERROR(ForwardLast(decoder, *state, prompt).status());
    std::vector<TokenId> tokens(static_cast<std::size_t>(m), 0);
    tokens[0] = committed[0];
    FUCINA_RETURN_IF_ERROR(
        Forward(decoder, *state, tokens, LogitRows::kAll).status());
    FUCINA_RETURN_IF_ERROR(
        state->Truncate(static_cast<int>(prompt.size()) + 1));
    std::vector<Row> replay;
    for (int i = 1; i < steps; ++i) {
      FUCINA_ASSIGN_OR_RETURN(row,
                              ForwardLast(decoder, *state, {&committed[i], 1}));
      replay.push_back(std::move(row));
    }
    compare(absl::StrCat("truncate and replay m=", m), replay, 2);
  }

  out << "verify batch: " << (failures == 0 ? "PASS" : "FAIL") << "\n";
  if (failures == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      failures, " comparisons of batched with single steps differ"));
}

}  // namespace fucina::cli
