#include "core/text/special_spellings.h"

#include <algorithm>
#include <functional>

namespace fucina::text {
namespace {

std::size_t Beginning(char first, char second) {
  return static_cast<std::size_t>(static_cast<unsigned char>(first)) << 8 |
         static_cast<unsigned char>(second);
}

}  // namespace

bool SpecialSpellings::Add(std::int32_t id, absl::string_view spelling) {
  if (!ids_.emplace(spelling, id).second) return false;
  const auto place = std::lower_bound(lengths_.begin(), lengths_.end(),
                                      spelling.size(), std::greater<>());
  if (place == lengths_.end() || *place != spelling.size()) {
    lengths_.insert(place, spelling.size());
  }
  if (spelling.size() > 1) {
    beginnings_.set(Beginning(spelling[0], spelling[1]));
  } else {
    for (int second = 0; second < 256; ++second) {
      beginnings_.set(Beginning(spelling[0], static_cast<char>(second)));
    }
  }
  return true;
}

std::int32_t SpecialSpellings::Find(absl::string_view spelling) const {
  const auto found = ids_.find(spelling);
  return found == ids_.end() ? -1 : found->second;
}

std::vector<SpecialSpellings::Match> SpecialSpellings::Search(
    absl::string_view text, Allowed allowed) const {
  std::vector<Match> matches;
  if (ids_.empty()) return matches;
  std::vector<std::uint32_t> candidates;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char second = i + 1 < text.size() ? text[i + 1] : '\0';
    if (beginnings_[Beginning(text[i], second)]) {
      candidates.push_back(static_cast<std::uint32_t>(i));
    }
  }
  if (candidates.empty()) return matches;

  std::vector<bool> taken(text.size());
  std::vector<Match> found;
  for (const std::size_t length : lengths_) {
    found.clear();
    for (const std::uint32_t begin : candidates) {
      const std::size_t end = begin + length;
      if (end > text.size()) break;
      // What is taken is at least as long as this one, so it cannot hide
      // between the ends.
      if (taken[begin] || taken[end - 1]) continue;
      const std::int32_t id = Find(text.substr(begin, length));
      if (id >= 0 && allowed(id, begin, end)) found.push_back({begin, end, id});
    }
    std::stable_sort(
        found.begin(), found.end(),
        [](const Match& a, const Match& b) { return a.id < b.id; });
    for (const Match& match : found) {
      if (taken[match.begin] || taken[match.end - 1]) continue;
      for (std::size_t i = match.begin; i < match.end; ++i) taken[i] = true;
      matches.push_back(match);
    }
  }
  std::sort(matches.begin(), matches.end(),
            [](const Match& a, const Match& b) { return a.begin < b.begin; });
  return matches;
}

}  // namespace fucina::text
