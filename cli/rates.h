#ifndef FUCINA_CLI_RATES_H_
#define FUCINA_CLI_RATES_H_

// Repeated measurements of one span, as tokens per second.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fucina::cli {

// Samples of one thing measured: how many tokens in how much time.
class Rates {
 public:
  void Add(int tokens, double ms);
  std::size_t size() const { return per_second_.size(); }
  double mean() const;
  double median() const;

  // "LABEL: MEAN ± STD tok/s  (min A, max B)\n", STD the deviation of the
  // population. The label is printed as it is, padding included.
  std::string Line(absl::string_view label) const;
  // Tokens and nanoseconds of every sample, and of the rates median, mean,
  // sample deviation (0 of one sample), its share of the mean, and the range.
  nlohmann::ordered_json Json() const;

 private:
  double SumOfSquares() const;  // of differences from the mean

  std::vector<int> tokens_;
  std::vector<double> ms_;
  std::vector<double> per_second_;
};

}  // namespace fucina::cli

#endif  // FUCINA_CLI_RATES_H_
