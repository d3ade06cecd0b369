#include "fucina/decode/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/decode/largest.h"
#include "fucina/diag/check.h"
#include "fucina/diag/status_macros.h"

namespace fucina {
namespace {

// First size of the sorted head when no top-k bounds it; grows fourfold until
// the draw falls inside. Most draws of a trained model end in the first.
constexpr std::size_t kFirstHead = 256;

// Beyond it every draw is a throw of dice, and the number a slip of the pen.
constexpr double kMaxTemperature = 1000;

absl::Status InRange(absl::string_view field, double value, double min,
                     double max, bool min_excluded, absl::string_view range) {
  const bool above = min_excluded ? value > min : value >= min;
  if (std::isfinite(value) && above && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected ", range, ", found ", value));
}

}  // namespace

absl::Status Validate(const SamplerConfig& config) {
  constexpr double kMax = std::numeric_limits<double>::max();
  FUCINA_RETURN_IF_ERROR(InRange("temperature", config.temperature, 0,
                                 kMaxTemperature, false,
                                 "0 to 1000 (0 is greedy)"));
  FUCINA_RETURN_IF_ERROR(InRange("top_k", config.top_k, 0, kMax, false,
                                 "an integer of at least 0 (0 keeps all)"));
  FUCINA_RETURN_IF_ERROR(InRange("top_p", config.top_p, 0, 1, false, "0 to 1"));
  FUCINA_RETURN_IF_ERROR(InRange("min_p", config.min_p, 0, 1, false, "0 to 1"));
  FUCINA_RETURN_IF_ERROR(InRange("repeat_penalty", config.repeat_penalty, 0,
                                 kMax, true,
                                 "a finite number above 0 (1 is off)"));
  FUCINA_RETURN_IF_ERROR(InRange("frequency_penalty", config.frequency_penalty,
                                 -2, 2, false, "-2 to 2"));
  FUCINA_RETURN_IF_ERROR(InRange("presence_penalty", config.presence_penalty,
                                 -2, 2, false, "-2 to 2"));
  return InRange("penalty_window", config.penalty_window, 0, kMax, false,
                 "an integer of at least 0");
}

Sampler::Sampler(const SamplerConfig& config, int vocab_size)
    : config_(config), random_(config.seed) {
  FUCINA_CHECK(Validate(config).ok()) << Validate(config).message();
  FUCINA_CHECK_GE(vocab_size, 1);
  if (config_.temperature > 0) best_.reserve(vocab_size);
  // Enough for every usual window; a larger one grows with the text.
  constexpr int kReserved = 4096;
  window_.reserve(std::min(config_.penalty_window, kReserved));
}

void Sampler::Restart() { random_ = Random(config_.seed); }

absl::StatusOr<TokenId> Sampler::Sample(std::span<float> logits,
                                        std::span<const TokenId> history) {
  ApplyPenalties(logits, history);
  const TokenId best = ArgMax(logits);
  if (!std::isfinite(logits[best])) {
    return absl::InvalidArgumentError("all tokens masked");
  }
  if (config_.temperature == 0) return best;
  return Draw(logits);
}

void Sampler::ApplyPenalties(std::span<float> logits,
                             std::span<const TokenId> history) {
  const double repeat = config_.repeat_penalty;
  const double frequency = config_.frequency_penalty;
  const double presence = config_.presence_penalty;
  if (repeat == 1 && frequency == 0 && presence == 0) return;
  const std::size_t count = std::min<std::size_t>(
      history.size(), static_cast<std::size_t>(config_.penalty_window));
  window_.assign(history.end() - static_cast<std::ptrdiff_t>(count),
                 history.end());
  std::sort(window_.begin(), window_.end());
  for (std::size_t i = 0; i < window_.size();) {
    std::size_t end = i;
    while (end < window_.size() && window_[end] == window_[i]) ++end;
    const TokenId id = window_[i];
    if (id >= 0 && static_cast<std::size_t>(id) < logits.size()) {
      double logit = logits[id];
      logit = logit > 0 ? logit / repeat : logit * repeat;
      logit -= static_cast<double>(end - i) * frequency + presence;
      // A repeat penalty near zero can lift a logit past the largest float;
      // minus infinity stays what it is.
      constexpr double kLargest = std::numeric_limits<float>::max();
      logits[id] = static_cast<float>(std::min(logit, kLargest));
    }
    i = end;
  }
}

// Fills best_ with the `count` best finite-or-not entries, best first.
void Sampler::SelectBest(std::span<const float> logits, std::size_t count) {
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  };
  count = std::min(count, logits.size());
  best_.clear();
  if (count * 8 > logits.size()) {
    for (std::size_t i = 0; i < logits.size(); ++i) {
      best_.push_back({logits[i], static_cast<TokenId>(i)});
    }
    std::partial_sort(best_.begin(),
                      best_.begin() + static_cast<std::ptrdiff_t>(count),
                      best_.end(), better);
    best_.resize(count);
    return;
  }
  // A heap whose top is the worst kept entry: one comparison per logit.
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const Candidate candidate = {logits[i], static_cast<TokenId>(i)};
    if (best_.size() < count) {
      best_.push_back(candidate);
      std::push_heap(best_.begin(), best_.end(), better);
    } else if (candidate.logit > best_.front().logit) {
      // An equal logit has a higher id than all kept ones: it never replaces.
      std::pop_heap(best_.begin(), best_.end(), better);
      best_.back() = candidate;
      std::push_heap(best_.begin(), best_.end(), better);
    }
  }
  std::sort_heap(best_.begin(), best_.end(), better);
}

TokenId Sampler::Draw(std::span<const float> logits) {
  const bool bounded = config_.top_k > 0 &&
                       static_cast<std::size_t>(config_.top_k) < logits.size();
  std::size_t head = bounded ? static_cast<std::size_t>(config_.top_k)
                             : std::min(kFirstHead, logits.size());
  const std::size_t last_head = bounded ? head : logits.size();
  SelectBest(logits, head);

  const double max = best_.front().logit;
  const double inverse = 1.0 / config_.temperature;
  const auto weight = [max, inverse](float logit) {
    // A temperature near zero can overflow the product of an exact tie: 0 *
    // inf.
    return logit == max ? 1.0 : std::exp((logit - max) * inverse);
  };
  // The softmax denominator: over the top-k set, or over every token.
  double total = 0;
  if (bounded) {
    for (const Candidate& candidate : best_) total += weight(candidate.logit);
  } else {
    for (const float logit : logits) total += weight(logit);
  }

  // How many of the sorted candidates survive top-p and min-p, and their sum.
  // With an unbounded set the head grows until its end is known.
  const double uniform = random_.NextUniform();
  const double best_weight = 1.0;
  while (true) {
    double kept_sum = 0;
    std::size_t kept = 0;
    bool complete = false;
    for (const Candidate& candidate : best_) {
      const double w = weight(candidate.logit);
      if (kept > 0 && config_.min_p > 0 && w < config_.min_p * best_weight) {
        complete = true;
        break;
      }
      kept_sum += w;
      ++kept;
      if (config_.top_p < 1 && kept_sum >= config_.top_p * total) {
        complete = true;
        break;
      }
    }
    const bool everything = head == last_head;
    const bool cut_possible = config_.top_p < 1 || config_.min_p > 0;
    if (complete || everything || !cut_possible) {
      // Without a cut the kept set is the whole one, and its sum is known
      // before the end of the sorted order is.
      const double sum = complete ? kept_sum : total;
      const double threshold = uniform * sum;
      double running = 0;
      for (std::size_t i = 0; i < kept; ++i) {
        running += weight(best_[i].logit);
        if (threshold <= running) return best_[i].id;
      }
      if (complete || everything) return best_[kept - 1].id;
    }
    head = std::min(head * 4, last_head);
    SelectBest(logits, head);
  }
}

absl::Status CheckLogits(std::span<const float> logits, int position) {
  // Exponent all ones is inf or NaN; -inf is the only one allowed. The loop
  // keeps no branch so that it vectorises.
  constexpr std::uint32_t kExponent = 0x7F800000U;
  constexpr std::uint32_t kMinusInf = 0xFF800000U;
  std::uint32_t bad = 0;
  for (const float logit : logits) {
    const auto bits = std::bit_cast<std::uint32_t>(logit);
    bad |= static_cast<std::uint32_t>((bits & kExponent) == kExponent) &
           static_cast<std::uint32_t>(bits != kMinusInf);
  }
  if (bad == 0) return absl::OkStatus();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) ||
        logits[i] == std::numeric_limits<float>::infinity()) {
      return absl::InternalError(absl::StrCat(
          "numeric error at position ", position, ": the logit of token ", i,
          " is ", std::isnan(logits[i]) ? "not a number" : "infinite",
          "; the model file may be damaged"));
    }
  }
  return absl::OkStatus();
}

TokenId ArgMax(std::span<const float> logits) {
  FUCINA_CHECK(!logits.empty());
  // Its own answer: whoever asks sees at once that it is not finite.
  if (std::isnan(logits[0])) return 0;
  // Only the block that holds the maximum is searched for its place.
  constexpr std::size_t kBlock = 1024;
  float max = -std::numeric_limits<float>::infinity();
  std::size_t place = 0;
  for (std::size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const float largest =
        Largest(logits.subspan(begin, std::min(kBlock, logits.size() - begin)));
    if (largest > max) {
      max = largest;
      place = begin;
    }
  }
  const auto from = logits.begin() + static_cast<std::ptrdiff_t>(place);
  return static_cast<TokenId>(std::find(from, logits.end(), max) -
                              logits.begin());
}

}  // namespace fucina
