#ifndef FUCINA_JINJA_TEXT_H_
#define FUCINA_JINJA_TEXT_H_

// A byte string that remembers who wrote each byte. Every string operation of
// the evaluator goes through this type, so that an origin is never lost on the
// way from a message to the output.
//
// Invariants: `flips_` is strictly increasing and below the size; the origin
// is kTemplate before the first flip and changes at each.

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "fucina/jinja/template.h"
#include "fucina/jinja/value.h"

namespace fucina::jinja {

class Text {
 public:
  Text() = default;
  Text(absl::string_view bytes, Origin origin) { Append(bytes, origin); }

  const std::string& bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  void Append(absl::string_view bytes, Origin origin);
  void Append(const Text& other) { AppendRange(other, 0, other.size()); }
  // Appends other[begin, end).
  void AppendRange(const Text& other, std::size_t begin, std::size_t end);
  Text Substr(std::size_t begin, std::size_t end) const;
  Origin OriginAt(std::size_t at) const;

  std::vector<Segment> Segments() const;

 private:
  std::string bytes_;
  std::vector<std::size_t> flips_;
};

}  // namespace fucina::jinja

#endif  // FUCINA_JINJA_TEXT_H_
