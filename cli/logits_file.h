#ifndef FUCINA_CLI_LOGITS_FILE_H_
#define FUCINA_CLI_LOGITS_FILE_H_

// The dump of one row of logits and its comparison with another: raw
// little-endian f32, one value per row of the vocabulary, no header. The same
// layout as llama.cpp's debug tools write.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/contract/decoder.h"

namespace fucina::cli {

// Writes `logits` as WriteOutputFile does, whose errors it returns.
absl::Status WriteLogits(const std::string& path,
                         std::span<const float> logits);

// Reads a dump of `vocab_size` values; the message names the path and both
// sizes.
absl::StatusOr<std::vector<float>> ReadLogits(absl::string_view path,
                                              int vocab_size);

// The `count` best ids, best first, ties to the lower id.
std::vector<TokenId> TopTokens(std::span<const float> logits, int count);
// "id:logit id:logit …" with four decimals.
std::string FormatTop(std::span<const float> logits, int count);

struct LogitComparison {
  double max_abs = 0;
  double mean_abs = 0;
  double rms = 0;
  double cosine = 0;
  double kl = 0;  // KL divergence of the reference to ours, nats
  TokenId top = 0;
  TokenId reference_top = 0;
  bool aligned = false;   // the same best token
  bool near_tie = false;  // not aligned, but the reference's two are closer
                          // than twice max_abs
  int top5_overlap = 0;
  int top20_overlap = 0;
  bool finite = true;  // both rows
};

// Differences in f64. REQUIRES: equal, non-zero sizes.
LogitComparison Compare(std::span<const float> ours,
                        std::span<const float> reference);

// What the comparison must satisfy besides a common best token.
struct CompareLimits {
  double max_abs = -1;  // negative: no limit
  double max_rms = -1;
  int min_top5 = 0;
};

// The compare lines of the parity tools.
std::string Format(const LogitComparison& comparison,
                   std::span<const float> ours,
                   std::span<const float> reference);

// OK, or what the comparison violates, with the figures.
absl::Status Judge(const LogitComparison& comparison,
                   const CompareLimits& limits);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_LOGITS_FILE_H_
