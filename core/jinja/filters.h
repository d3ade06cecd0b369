#ifndef FUCINA_JINJA_FILTERS_H_
#define FUCINA_JINJA_FILTERS_H_

// What the files of filters share.

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/jinja/builtins.h"

namespace fucina::jinja {

// Filters of one value; filters of sequences. FindFilter looks in both.
std::span<const Builtin> ValueFilters();
std::span<const Builtin> SequenceFilters();

// Argument `at` of a filter: whether it was given and is not none.
bool Given(const Arguments& arguments, std::size_t at);
absl::StatusOr<std::int64_t> IntArgument(absl::string_view what,
                                         const Arguments& arguments,
                                         std::size_t at, std::int64_t fallback);
bool BoolArgument(const Arguments& arguments, std::size_t at, bool fallback);

}  // namespace fucina::jinja

#endif  // FUCINA_JINJA_FILTERS_H_
