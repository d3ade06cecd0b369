#include "core/jinja/text.h"

#include <algorithm>

namespace fucina::jinja {

void Text::Append(absl::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  const bool tail_is_data = flips_.size() % 2 == 1;
  if (tail_is_data != (origin == Origin::kData)) flips_.push_back(size());
  bytes_.append(bytes.data(), bytes.size());
}

void Text::AppendRange(const Text& other, std::size_t begin, std::size_t end) {
  if (&other == this) {
    const Text copy = *this;
    AppendRange(copy, begin, end);
    return;
  }
  std::size_t next = static_cast<std::size_t>(
      std::upper_bound(other.flips_.begin(), other.flips_.end(), begin) -
      other.flips_.begin());
  while (begin < end) {
    std::size_t stop = end;
    if (next < other.flips_.size()) stop = std::min(stop, other.flips_[next]);
    Append(absl::string_view(other.bytes_).substr(begin, stop - begin),
           next % 2 == 1 ? Origin::kData : Origin::kTemplate);
    begin = stop;
    ++next;
  }
}

Text Text::Substr(std::size_t begin, std::size_t end) const {
  Text out;
  out.AppendRange(*this, begin, end);
  return out;
}

Origin Text::OriginAt(std::size_t at) const {
  const auto flips =
      std::upper_bound(flips_.begin(), flips_.end(), at) - flips_.begin();
  return flips % 2 == 1 ? Origin::kData : Origin::kTemplate;
}

std::vector<Segment> Text::Segments() const {
  std::vector<Segment> out;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= flips_.size(); ++i) {
    const std::size_t end = i < flips_.size() ? flips_[i] : size();
    if (end > begin) {
      out.push_back({i % 2 == 1 ? Origin::kData : Origin::kTemplate,
                     bytes_.substr(begin, end - begin)});
    }
    begin = end;
  }
  return out;
}

std::string JoinSegments(std::span<const Segment> segments) {
  std::string out;
  for (const Segment& segment : segments) out += segment.text;
  return out;
}

}  // namespace fucina::jinja
