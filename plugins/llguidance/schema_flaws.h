#ifndef FUCINA_PLUGINS_LLGUIDANCE_SCHEMA_FLAWS_H_
#define FUCINA_PLUGINS_LLGUIDANCE_SCHEMA_FLAWS_H_

// What the pinned engine gets wrong in JSON schemas, found by holding its
// replies against an independent validator: recognised here, so that it is
// refused or avoided.

#include <cstdint>
#include <set>

#include "absl/strings/string_view.h"

namespace fucina::llguidance {

// Whether a character class of `pattern` may hold the control characters and
// not both " and \. The engine then writes \" and \\ all the same: "^[^\"]*$"
// took a text with a quote. True where it cannot be told.
bool LosesEscapes(absl::string_view pattern);

// Finds an exclusive bound that is an integer next to another bound less than
// one from it. The engine takes the integer: {"exclusiveMinimum":9,
// "maximum":9.3} took 9. Bounds of different schemas may meet through
// references, so that all of a document are held against each other.
class ExclusiveBounds {
 public:
  // The number of keyword `key`. Whether there is no such pair so far.
  bool Add(absl::string_view key, double value);
  // An exclusiveMinimum or exclusiveMaximum that is true, as in draft 4: every
  // bound may be exclusive.
  bool AddExclusive();

 private:
  // Bounds by their distance from zero, on one side of it.
  struct Side {
    std::set<double> exclusive;  // integers
    std::set<double> inclusive;  // integers
    std::set<double> beyond;     // the integers below bounds that are none
  };
  bool Holds(const Side& side) const;

  Side sides_[2];  // above zero and below
  bool all_exclusive_ = false;
};

// Finds values of multipleOf with which the engine's 32 bits overflow, which it
// does not look for: of 65537 and 65539 in one allOf it made 262147, and it
// wrote numbers that are no multiple of 4000000000.
class Multiples {
 public:
  static constexpr int kMaxDecimals = 8;
  // The largest without its decimal point: the remainder of a number so far is
  // taken times ten, plus a digit times ten to the power of the decimals.
  static constexpr std::uint64_t kMax = (4294967295 - 900000000) / 10;
  // The largest least common multiple of values that may meet: two of them are
  // multiplied.
  static constexpr std::uint64_t kMaxCommon = 65535;

  // Whether the engine can count in steps of `value`.
  bool Add(double value);
  // Whether it can where several of them govern one number.
  bool CanMeet() const { return fits_; }

 private:
  std::uint64_t common_ = 1;  // the least common multiple without its point
  int decimals_ = 0;          // of it
  bool fits_ = true;          // within kMaxCommon so far
};

}  // namespace fucina::llguidance

#endif  // FUCINA_PLUGINS_LLGUIDANCE_SCHEMA_FLAWS_H_
