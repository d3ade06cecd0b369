#ifndef FUCINA_TEXT_BUILTIN_TEMPLATES_H_
#define FUCINA_TEXT_BUILTIN_TEMPLATES_H_

// Chat templates of our own for models whose file has none that works. They
// are used only when a user names one, and offer no tools.

#include <span>

#include "absl/strings/string_view.h"

namespace fucina {

struct BuiltInTemplate {
  absl::string_view name;
  absl::string_view source;
};

// Sorted by name.
std::span<const BuiltInTemplate> BuiltInTemplates();

// The built-in that fits a text by its markers: a template's text or the
// spellings of a vocabulary; empty when none does.
absl::string_view GuessBuiltIn(absl::string_view text);

}  // namespace fucina

#endif  // FUCINA_TEXT_BUILTIN_TEMPLATES_H_
