#ifndef FUCINA_CORE_TEXT_SPECIAL_SPELLINGS_H_
#define FUCINA_CORE_TEXT_SPECIAL_SPELLINGS_H_

// Finds the spellings of special tokens in a text.
//
// The rule: specials are taken longest spelling first, equal lengths by
// ascending id; each is searched from left to right in what earlier ones left
// over. A longer marker is thus never broken by a shorter one inside it. This
// is not the leftmost-longest rule.
//
// Immutable once filled, then safe to share between threads.

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace fucina::text {

class SpecialSpellings {
 public:
  struct Match {
    std::size_t begin = 0;  // bytes
    std::size_t end = 0;
    std::int32_t id = 0;
  };
  // Whether the special `id` may be recognised at [begin, end).
  using Allowed = absl::FunctionRef<bool(std::int32_t id, std::size_t begin,
                                         std::size_t end)>;

  // The first id of a spelling keeps it; returns whether this one got it.
  // `spelling` must stay valid and in place. REQUIRES: not empty.
  bool Add(std::int32_t id, absl::string_view spelling);
  // -1 for none.
  std::int32_t Find(absl::string_view spelling) const;

  // Matches by position; they do not overlap. Memory is at most a few bytes
  // for each byte of the text; time grows with the text and the number of
  // distinct spelling lengths, not with the number of specials.
  std::vector<Match> Search(absl::string_view text, Allowed allowed) const;

 private:
  absl::flat_hash_map<absl::string_view, std::int32_t> ids_;
  std::vector<std::size_t> lengths_;  // distinct, descending
  // Two first bytes (a one-byte spelling: its byte with any other).
  std::bitset<65536> beginnings_;
};

}  // namespace fucina::text

#endif  // FUCINA_CORE_TEXT_SPECIAL_SPELLINGS_H_
