#ifndef FUCINA_TEXT_UTF8_STREAM_H_
#define FUCINA_TEXT_UTF8_STREAM_H_

// Holds back half a character while text streams token by token. A token's
// bytes may end inside a UTF-8 sequence; the reader gets whole characters.
//
// At most three bytes are ever held: a stray continuation byte, an impossible
// lead byte or a sequence that its next byte breaks is not the beginning of
// anything and never blocks the stream. What comes out with kKeep is, joined,
// exactly what went in; with kReplace it is always valid UTF-8.
// One stream, one thread at a time.
// Source: the Unicode Standard, section 3.9, table 3-7 and "U+FFFD
// Substitution of Maximal Subparts".

#include <string>

#include "absl/strings/string_view.h"
#include "fucina/export.h"

namespace fucina {

class FUCINA_API Utf8Stream {
 public:
  // What happens to bytes that can never become a character.
  enum class Invalid {
    kKeep,     // passed on as they are: terminals and files
    kReplace,  // one U+FFFD for each maximal broken sequence: JSON
  };

  explicit Utf8Stream(Invalid invalid = Invalid::kKeep) : invalid_(invalid) {}

  // Appends `bytes` and returns what may be shown now.
  std::string Push(absl::string_view bytes);
  // Ends the text: returns what is still held, and starts anew. With kReplace
  // an unfinished character becomes U+FFFD.
  std::string Finish();
  // Bytes held back, 0 to 3.
  int num_held() const { return static_cast<int>(held_.size()); }

 private:
  Invalid invalid_;
  std::string held_;
};

// `bytes` with each maximal broken sequence replaced by U+FFFD.
FUCINA_API std::string ReplaceInvalidUtf8(absl::string_view bytes);
// Offset of the first byte that is not part of a valid sequence, or
// bytes.size() when there is none.
FUCINA_API std::size_t FirstInvalidUtf8(absl::string_view bytes);

}  // namespace fucina

#endif  // FUCINA_TEXT_UTF8_STREAM_H_
