#ifndef FUCINA_DIAG_PRINTABLE_H_
#define FUCINA_DIAG_PRINTABLE_H_

// Text from outside (paths, keys, tensor names) made safe for a terminal and
// for one line of a log.

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "fucina/export.h"

namespace fucina {

// `text` with control characters, bytes that are no UTF-8 and the characters
// that reorder or break lines written as escapes (\n, \t, \r, \x1b, \u{202e});
// everything else, emoji and accents included, as it is. Longer than
// `max_bytes` is cut between characters and ends with "...".
FUCINA_API std::string Printable(absl::string_view text,
                                 std::size_t max_bytes = 1024);

}  // namespace fucina

#endif  // FUCINA_DIAG_PRINTABLE_H_
