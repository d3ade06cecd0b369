#include "fucina/text/utf8_stream.h"

#include <cstddef>
#include <utility>

#include "core/text/utf8.h"

namespace fucina {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

std::string Utf8Stream::Push(absl::string_view bytes) {
  std::string all = std::exchange(held_, {});
  all.append(bytes.data(), bytes.size());
  // Only the last sequence can be unfinished, and it has at most three bytes.
  // Every start among them is tried because a stray continuation byte is one
  // too.
  std::size_t end = all.size();
  for (std::size_t back = 3; back >= 1; --back) {
    if (back > all.size()) continue;
    const std::size_t start = all.size() - back;
    if (text::ReadUtf8(all, start).cut) {
      end = start;
      break;
    }
  }
  held_ = all.substr(end);
  all.resize(end);
  return invalid_ == Invalid::kReplace ? ReplaceInvalidUtf8(all) : all;
}

std::string Utf8Stream::Finish() {
  std::string rest = std::exchange(held_, {});
  return invalid_ == Invalid::kReplace ? ReplaceInvalidUtf8(rest) : rest;
}

std::string ReplaceInvalidUtf8(absl::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size();) {
    const text::Utf8Sequence sequence = text::ReadUtf8(bytes, i);
    const auto length = static_cast<std::size_t>(sequence.length);
    const absl::string_view part =
        sequence.valid ? bytes.substr(i, length) : kReplacement;
    out.append(part.data(), part.size());
    i += length;
  }
  return out;
}

std::size_t FirstInvalidUtf8(absl::string_view bytes) {
  std::size_t i = 0;
  while (i < bytes.size()) {
    const text::Utf8Sequence sequence = text::ReadUtf8(bytes, i);
    if (!sequence.valid) break;
    i += static_cast<std::size_t>(sequence.length);
  }
  return i;
}

}  // namespace fucina
