#include "cli/rates.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fucina::cli {

void Rates::Add(int tokens, double ms) {
  tokens_.push_back(tokens);
  ms_.push_back(ms);
  per_second_.push_back(ms > 0 ? tokens * 1e3 / ms : 0);
}

double Rates::mean() const {
  if (per_second_.empty()) return 0;
  return std::accumulate(per_second_.begin(), per_second_.end(), 0.0) /
         static_cast<double>(per_second_.size());
}

double Rates::median() const {
  if (per_second_.empty()) return 0;
  std::vector<double> sorted = per_second_;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle]
                                : (sorted[middle - 1] + sorted[middle]) / 2;
}

double Rates::SumOfSquares() const {
  const double center = mean();
  double sum = 0;
  for (const double rate : per_second_) {
    sum += (rate - center) * (rate - center);
  }
  return sum;
}

std::string Rates::Line(absl::string_view label) const {
  if (per_second_.empty()) return "";
  const auto [min, max] =
      std::minmax_element(per_second_.begin(), per_second_.end());
  const double deviation =
      std::sqrt(SumOfSquares() / static_cast<double>(per_second_.size()));
  return absl::StrCat(
      label, absl::StrFormat(": %.2f ± %.2f tok/s  (min %.2f, max %.2f)\n",
                             mean(), deviation, *min, *max));
}

nlohmann::ordered_json Rates::Json() const {
  std::vector<std::int64_t> ns;
  for (const double ms : ms_) {
    ns.push_back(static_cast<std::int64_t>(std::llround(ms * 1e6)));
  }
  const std::size_t n = per_second_.size();
  const double deviation =
      n > 1 ? std::sqrt(SumOfSquares() / static_cast<double>(n - 1)) : 0;
  const auto [min, max] =
      std::minmax_element(per_second_.begin(), per_second_.end());
  return {{"tokens", tokens_},
          {"samples_ns", ns},
          {"tok_per_s",
           {{"median", median()},
            {"mean", mean()},
            {"stdev", deviation},
            {"cv", mean() > 0 ? deviation / mean() : 0},
            {"min", n > 0 ? *min : 0},
            {"max", n > 0 ? *max : 0}}}};
}

}  // namespace fucina::cli
