#ifndef FUCINA_JINJA_STRING_OPS_H_
#define FUCINA_JINJA_STRING_OPS_H_

// Python's str methods on texts with origins. What is cut out of a text keeps
// the origins of its bytes; what is put in brings its own.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/jinja/text.h"

namespace fucina::jinja {

inline constexpr std::size_t kNotFound = static_cast<std::size_t>(-1);

// Offset of the first `needle` at or after `from`; linear in the worst case,
// which std::string::find is not.
std::size_t FindBytes(absl::string_view text, absl::string_view needle,
                      std::size_t from);
// Offset of the last one that ends at or before `end`.
std::size_t FindLastBytes(absl::string_view text, absl::string_view needle,
                          std::size_t end);

absl::string_view StripSpace(absl::string_view text);

// Without `chars`, white space goes.
Text Strip(const Text& text, std::optional<absl::string_view> chars, bool left,
           bool right);
// Around white space (`separator` absent; no empty parts) or around each
// separator. At most `most` cuts, all when negative; `from_right` cuts from
// the end. REQUIRES: the separator is not empty.
std::vector<Text> Split(const Text& text,
                        std::optional<absl::string_view> separator,
                        std::int64_t most, bool from_right);
std::vector<Text> SplitLines(const Text& text, bool keep_ends);
// At most `most` replacements, all when negative. An empty `from` stands
// between all characters.
Text Replace(const Text& text, absl::string_view from, const Text& to,
             std::int64_t most);
// How often Replace would replace.
std::int64_t CountBytes(absl::string_view text, absl::string_view needle);

enum class Case : std::uint8_t {
  kUpper,
  kLower,
  kTitle,       // str.title: words start after anything that has no case
  kCapitalize,  // first character title case, the rest lower case
  kTitleWords,  // the title filter: words start after white space and -({[<
};
Text MapCase(const Text& text, Case to);

Text ReverseChars(const Text& text);

}  // namespace fucina::jinja

#endif  // FUCINA_JINJA_STRING_OPS_H_
