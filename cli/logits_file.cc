#include "cli/logits_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/output_file.h"
#include "fucina/decode/sampler.h"
#include "fucina/diag/check.h"
#include "fucina/diag/printable.h"

namespace fucina::cli {
namespace {

static_assert(std::endian::native == std::endian::little,
              "dumps are little-endian");

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

absl::Status Unreadable(absl::string_view where) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": cannot be read: ", std::strerror(errno)));
}

int Overlap(std::span<const float> a, std::span<const float> b, int count) {
  const std::vector<TokenId> top_a = TopTokens(a, count);
  const std::vector<TokenId> top_b = TopTokens(b, count);
  return static_cast<int>(
      std::count_if(top_a.begin(), top_a.end(), [&](TokenId id) {
        return std::find(top_b.begin(), top_b.end(), id) != top_b.end();
      }));
}

double LogSumExp(std::span<const float> row) {
  const double max = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float value : row) sum += std::exp(value - max);
  return max + std::log(sum);
}

}  // namespace

absl::Status WriteLogits(const std::string& path,
                         std::span<const float> logits) {
  return WriteOutputFile("--logits-out", path,
                         {reinterpret_cast<const char*>(logits.data()),
                          logits.size() * sizeof(float)});
}

absl::StatusOr<std::vector<float>> ReadLogits(absl::string_view path,
                                              int vocab_size) {
  const std::string name(path);
  const std::string where =
      absl::StrCat("--compare-logits: '", Printable(path), "'");
  struct stat info = {};
  if (stat(name.c_str(), &info) != 0) return Unreadable(where);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": not a regular file"));
  }
  const auto expected = static_cast<std::int64_t>(vocab_size) *
                        static_cast<std::int64_t>(sizeof(float));
  if (info.st_size != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": expected ", vocab_size, " f32 logits (",
                     expected, " bytes), found ", info.st_size,
                     " bytes; it belongs to another model or is cut"));
  }
  File file(std::fopen(name.c_str(), "rb"));
  if (file == nullptr) return Unreadable(where);
  std::vector<float> logits(static_cast<std::size_t>(vocab_size));
  if (std::fread(logits.data(), sizeof(float), logits.size(), file.get()) !=
      logits.size()) {
    return Unreadable(where);
  }
  return logits;
}

std::vector<TokenId> TopTokens(std::span<const float> logits, int count) {
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto kept = static_cast<std::ptrdiff_t>(
      std::min<std::size_t>(ids.size(), static_cast<std::size_t>(count)));
  // NaN would break the ordering; it sorts last here and is reported elsewhere.
  const auto better = [&](TokenId a, TokenId b) {
    const bool nan_a = std::isnan(logits[a]);
    const bool nan_b = std::isnan(logits[b]);
    if (nan_a != nan_b) return nan_b;
    if (!nan_a && logits[a] != logits[b]) return logits[a] > logits[b];
    return a < b;
  };
  std::partial_sort(ids.begin(), ids.begin() + kept, ids.end(), better);
  ids.resize(static_cast<std::size_t>(kept));
  return ids;
}

std::string FormatTop(std::span<const float> logits, int count) {
  std::string text;
  for (const TokenId id : TopTokens(logits, count)) {
    absl::StrAppend(&text, text.empty() ? "" : " ", id, ":",
                    absl::StrFormat("%.4f", logits[id]));
  }
  return text;
}

LogitComparison Compare(std::span<const float> ours,
                        std::span<const float> reference) {
  FUCINA_CHECK(!ours.empty() && ours.size() == reference.size());
  LogitComparison result;
  double sum_abs = 0;
  double sum_squares = 0;
  double dot = 0;
  double norm_ours = 0;
  double norm_reference = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double a = ours[i];
    const double b = reference[i];
    if (!std::isfinite(a) || !std::isfinite(b)) result.finite = false;
    const double difference = std::abs(a - b);
    result.max_abs = std::max(result.max_abs, difference);
    sum_abs += difference;
    sum_squares += difference * difference;
    dot += a * b;
    norm_ours += a * a;
    norm_reference += b * b;
  }
  const auto count = static_cast<double>(ours.size());
  result.mean_abs = sum_abs / count;
  result.rms = std::sqrt(sum_squares / count);
  const double norms = std::sqrt(norm_ours) * std::sqrt(norm_reference);
  result.cosine = norms > 0 ? dot / norms : 1;
  result.top = TopTokens(ours, 1)[0];
  result.reference_top = TopTokens(reference, 1)[0];
  result.aligned = result.top == result.reference_top;
  const double margin = static_cast<double>(reference[result.reference_top]) -
                        static_cast<double>(reference[result.top]);
  result.near_tie = !result.aligned && margin < 2 * result.max_abs;
  result.top5_overlap = Overlap(ours, reference, 5);
  result.top20_overlap = Overlap(ours, reference, 20);
  if (result.finite) {
    const double log_ours = LogSumExp(ours);
    const double log_reference = LogSumExp(reference);
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const double log_p = reference[i] - log_reference;
      result.kl += std::exp(log_p) * (log_p - (ours[i] - log_ours));
    }
  } else {
    // A comparison with NaN is false: the figures would look like good ones.
    for (double* figure : {&result.max_abs, &result.mean_abs, &result.rms,
                           &result.cosine, &result.kl}) {
      *figure = std::numeric_limits<double>::quiet_NaN();
    }
  }
  return result;
}

std::string Format(const LogitComparison& comparison,
                   std::span<const float> ours,
                   std::span<const float> reference) {
  std::string text = absl::StrFormat(
      "compare logits: max_abs=%.6f mean_abs=%.6f rms=%.6f top=%d:%.4f "
      "ref_top=%d:%.4f aligned=%s%s\n",
      comparison.max_abs, comparison.mean_abs, comparison.rms, comparison.top,
      ours[comparison.top], comparison.reference_top,
      reference[comparison.reference_top],
      comparison.aligned ? "true" : "false",
      comparison.near_tie ? " (near-tie)" : "");
  absl::StrAppend(
      &text,
      absl::StrFormat("compare more: cosine=%.9f kl=%.6g top5=%d/5 top20=%d/20 "
                      "ref_margin=%.6f\n",
                      comparison.cosine, comparison.kl, comparison.top5_overlap,
                      comparison.top20_overlap,
                      static_cast<double>(reference[comparison.reference_top]) -
                          static_cast<double>(reference[TopTokens(
                              reference, 2)[ours.size() > 1 ? 1 : 0]])));
  absl::StrAppend(&text, "top tokens: ", FormatTop(ours, 5),
                  "\nref top tokens: ", FormatTop(reference, 5), "\n");
  return text;
}

absl::Status Judge(const LogitComparison& comparison,
                   const CompareLimits& limits) {
  if (!comparison.finite) {
    return absl::FailedPreconditionError(
        "the logits differ: a value is infinite or not a number");
  }
  if (!comparison.aligned) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the logits differ: best token ", comparison.top, ", expected ",
        comparison.reference_top,
        comparison.near_tie ? " (a near tie in the reference)" : ""));
  }
  if (limits.max_abs >= 0 && comparison.max_abs > limits.max_abs) {
    return absl::FailedPreconditionError(
        absl::StrCat("the logits differ: max_abs ", comparison.max_abs,
                     ", allowed ", limits.max_abs));
  }
  if (limits.max_rms >= 0 && comparison.rms > limits.max_rms) {
    return absl::FailedPreconditionError(
        absl::StrCat("the logits differ: rms ", comparison.rms, ", allowed ",
                     limits.max_rms));
  }
  if (comparison.top5_overlap < limits.min_top5) {
    return absl::FailedPreconditionError(
        absl::StrCat("the logits differ: ", comparison.top5_overlap,
                     " of the best five agree, expected ", limits.min_top5));
  }
  return absl::OkStatus();
}

}  // namespace fucina::cli
