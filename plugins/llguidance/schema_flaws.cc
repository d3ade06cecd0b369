#include "schema_flaws.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "absl/strings/strip.h"

namespace fucina::llguidance {
namespace {

bool Spans(char first, char last) {
  const auto has = [&](char c) { return first <= c && c <= last; };
  return has('"') || has('\\');
}

// Whether \p or \P before `rest` is of letters or numbers: no control
// characters, and no signs. Classes by other names may be anything.
bool NamesLettersOrNumbers(absl::string_view rest) {
  absl::ConsumePrefix(&rest, "{");
  return !rest.empty() && (rest[0] == 'L' || rest[0] == 'N');
}

// `at` is behind the opening bracket; moves behind the closing one.
bool ClassLosesEscapes(absl::string_view pattern, std::size_t& at) {
  const bool negated = at < pattern.size() && pattern[at] == '^';
  if (negated) ++at;
  bool loses = false;
  for (const std::size_t start = at; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c == ']' && at > start) break;
    const char next = at + 1 < pattern.size() ? pattern[at + 1] : '\0';
    if (c == '\\') {
      ++at;
      if (next == 'p' || next == 'P') {
        loses |= !NamesLettersOrNumbers(pattern.substr(at + 1));
      } else {
        // Characters by number may be any.
        constexpr absl::string_view kKept = "dDsSwWnrt-]^[./";
        constexpr absl::string_view kNumbered = "xuUc01234567";
        loses |= negated ? kKept.find(next) == absl::string_view::npos
                         : kNumbered.find(next) != absl::string_view::npos;
      }
      continue;
    }
    // A class within, or an operation on classes.
    loses |= c == '[' || (next == c && (c == '&' || c == '-' || c == '~'));
    loses |= static_cast<unsigned char>(c) < 0x20;
    if (!negated) continue;
    loses |= c == '"';
    if (next == '-' && at + 2 < pattern.size() && pattern[at + 2] != ']') {
      loses |= Spans(c, pattern[at + 2]);
    }
  }
  if (at < pattern.size()) ++at;
  return loses;
}

}  // namespace

bool LosesEscapes(absl::string_view pattern) {
  for (std::size_t at = 0; at < pattern.size();) {
    const char c = pattern[at++];
    if (c == '[') {
      if (ClassLosesEscapes(pattern, at)) return true;
    } else if (c == '\\' && at < pattern.size()) {
      const char kind = pattern[at++];
      if ((kind == 'p' || kind == 'P') &&
          !NamesLettersOrNumbers(pattern.substr(at))) {
        return true;
      }
    }
  }
  return false;
}

bool ExclusiveBounds::Holds(const Side& side) const {
  const auto meets = [&side](const std::set<double>& edges) {
    return std::any_of(edges.begin(), edges.end(), [&side](double edge) {
      return side.beyond.count(edge) > 0;
    });
  };
  return meets(side.exclusive) || (all_exclusive_ && meets(side.inclusive));
}

bool ExclusiveBounds::Add(absl::string_view key, double value) {
  const bool is_minimum = key == "minimum" || key == "exclusiveMinimum";
  if (!is_minimum && key != "maximum" && key != "exclusiveMaximum") return true;
  const bool is_exclusive =
      key == "exclusiveMinimum" || key == "exclusiveMaximum";
  // Below zero a maximum is the bound that is nearer to it.
  for (const bool below : {false, true}) {
    Side& side = sides_[below ? 1 : 0];
    const double distance = below ? -value : value;
    if (distance < 0) continue;
    const bool is_near = is_minimum != below;
    const double whole = std::floor(distance);
    if (is_near && whole == distance) {
      (is_exclusive ? side.exclusive : side.inclusive).insert(whole);
      if (side.beyond.count(whole) > 0 && (is_exclusive || all_exclusive_)) {
        return false;
      }
    } else if (!is_near && whole != distance) {
      side.beyond.insert(whole);
      if (side.exclusive.count(whole) > 0 ||
          (all_exclusive_ && side.inclusive.count(whole) > 0)) {
        return false;
      }
    }
  }
  return true;
}

bool Multiples::Add(double value) {
  // The engine's own way from a double to a decimal, so that it is the same.
  value = std::abs(value);
  int decimals = 0;
  for (; value != std::floor(value) && decimals <= kMaxDecimals; ++decimals) {
    value *= 10;
  }
  if (decimals > kMaxDecimals || value > static_cast<double>(kMax)) {
    return false;
  }
  auto steps = static_cast<std::uint64_t>(value);
  // Only zero is a multiple of zero.
  if (steps == 0 || !fits_) return true;
  for (; decimals < decimals_; ++decimals) steps *= 10;
  for (; decimals_ < decimals; ++decimals_) common_ *= 10;
  fits_ = steps <= kMaxCommon && common_ <= kMaxCommon;
  if (!fits_) return true;
  common_ = std::lcm(common_, steps);
  fits_ = common_ <= kMaxCommon;
  return true;
}

bool ExclusiveBounds::AddExclusive() {
  all_exclusive_ = true;
  return !Holds(sides_[0]) && !Holds(sides_[1]);
}

}  // namespace fucina::llguidance
