#include "core/jinja/string_ops.h"

#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "core/jinja/unicode.h"

namespace fucina::jinja {
namespace {

using absl::string_view;

// The characters that str.splitlines cuts at.
bool IsLineEnd(std::uint32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
         c == 0x2028 || c == 0x2029;
}

// Lower case of the sigma at `at`: final after a cased character and before
// none, characters without weight (case-ignorable) not counted.
bool IsFinalSigma(string_view text, std::size_t at, std::size_t size) {
  bool before = false;
  for (std::size_t end = at; end > 0;) {
    const Char c = DecodeCharBefore(text, end);
    end -= c.size;
    if (IsCaseIgnorable(c.code)) continue;
    before = IsCased(c.code);
    break;
  }
  if (!before) return false;
  for (std::size_t i = at + size; i < text.size();) {
    const Char c = DecodeChar(text, i);
    i += c.size;
    if (IsCaseIgnorable(c.code)) continue;
    return !IsCased(c.code);
  }
  return true;
}

std::string LowerAt(string_view text, std::size_t at, Char c) {
  if (c.code == 0x3A3) {
    return IsFinalSigma(text, at, c.size) ? "\xCF\x82" : "\xCF\x83";
  }
  return ToLower(c.code);
}

std::vector<Text> SplitSpace(const Text& text, std::int64_t most) {
  const std::string& bytes = text.bytes();
  std::vector<Text> out;
  std::size_t at = 0;
  for (;;) {
    while (at < bytes.size()) {
      const Char c = DecodeChar(bytes, at);
      if (!IsSpace(c.code)) break;
      at += c.size;
    }
    if (at >= bytes.size()) return out;
    if (most >= 0 && static_cast<std::int64_t>(out.size()) >= most) break;
    const std::size_t begin = at;
    while (at < bytes.size()) {
      const Char c = DecodeChar(bytes, at);
      if (IsSpace(c.code)) break;
      at += c.size;
    }
    out.push_back(text.Substr(begin, at));
  }
  // The rest is one part; its trailing white space goes only when it is cut
  // from the right, that is, here it stays.
  out.push_back(text.Substr(at, bytes.size()));
  return out;
}

std::vector<Text> SplitSpaceRight(const Text& text, std::int64_t most) {
  const std::string& bytes = text.bytes();
  std::vector<Text> out;
  std::size_t end = bytes.size();
  for (;;) {
    while (end > 0) {
      const Char c = DecodeCharBefore(bytes, end);
      if (!IsSpace(c.code)) break;
      end -= c.size;
    }
    if (end == 0) break;
    if (most >= 0 && static_cast<std::int64_t>(out.size()) >= most) {
      out.push_back(text.Substr(0, end));
      break;
    }
    std::size_t begin = end;
    while (begin > 0) {
      const Char c = DecodeCharBefore(bytes, begin);
      if (IsSpace(c.code)) break;
      begin -= c.size;
    }
    out.push_back(text.Substr(begin, end));
    end = begin;
  }
  return {out.rbegin(), out.rend()};
}

}  // namespace

std::size_t FindBytes(string_view text, string_view needle, std::size_t from) {
  if (from > text.size()) return kNotFound;
  if (needle.empty()) return from;
  if (text.empty()) return kNotFound;
  const void* found = memmem(text.data() + from, text.size() - from,
                             needle.data(), needle.size());
  if (found == nullptr) return kNotFound;
  return static_cast<std::size_t>(static_cast<const char*>(found) -
                                  text.data());
}

std::size_t FindLastBytes(string_view text, string_view needle,
                          std::size_t end) {
  // The last of many is found by walking over all: overlapping ones count.
  std::size_t last = kNotFound;
  const string_view head = text.substr(0, end);
  if (needle.size() > head.size()) return kNotFound;
  if (needle.empty()) return head.size();
  // Reversed copies keep this linear.
  const std::string back(head.rbegin(), head.rend());
  const std::string back_needle(needle.rbegin(), needle.rend());
  const std::size_t found = FindBytes(back, back_needle, 0);
  if (found != kNotFound) last = head.size() - found - needle.size();
  return last;
}

string_view StripSpace(string_view text) {
  while (!text.empty()) {
    const Char c = DecodeChar(text, 0);
    if (!IsSpace(c.code)) break;
    text.remove_prefix(c.size);
  }
  while (!text.empty()) {
    const Char c = DecodeCharBefore(text, text.size());
    if (!IsSpace(c.code)) break;
    text.remove_suffix(c.size);
  }
  return text;
}

Text Strip(const Text& text, std::optional<string_view> chars, bool left,
           bool right) {
  std::set<std::uint32_t> wanted;
  if (chars.has_value()) {
    for (std::size_t i = 0; i < chars->size();) {
      const Char c = DecodeChar(*chars, i);
      wanted.insert(c.code);
      i += c.size;
    }
  }
  auto goes = [&](std::uint32_t code) {
    return chars.has_value() ? wanted.count(code) != 0 : IsSpace(code);
  };
  const std::string& bytes = text.bytes();
  std::size_t begin = 0, end = bytes.size();
  while (left && begin < end) {
    const Char c = DecodeChar(bytes, begin);
    if (!goes(c.code)) break;
    begin += c.size;
  }
  while (right && begin < end) {
    const Char c = DecodeCharBefore(bytes, end);
    if (!goes(c.code)) break;
    end -= c.size;
  }
  return text.Substr(begin, end);
}

std::vector<Text> Split(const Text& text, std::optional<string_view> separator,
                        std::int64_t most, bool from_right) {
  if (!separator.has_value()) {
    return from_right ? SplitSpaceRight(text, most) : SplitSpace(text, most);
  }
  const std::string& bytes = text.bytes();
  std::vector<Text> out;
  if (!from_right) {
    std::size_t begin = 0;
    while (most < 0 || static_cast<std::int64_t>(out.size()) < most) {
      const std::size_t at = FindBytes(bytes, *separator, begin);
      if (at == kNotFound) break;
      out.push_back(text.Substr(begin, at));
      begin = at + separator->size();
    }
    out.push_back(text.Substr(begin, bytes.size()));
    return out;
  }
  // From the right: on reversed bytes, so that overlaps resolve as in Python.
  const std::string back(bytes.rbegin(), bytes.rend());
  const std::string back_separator(separator->rbegin(), separator->rend());
  std::size_t begin = 0;
  while (most < 0 || static_cast<std::int64_t>(out.size()) < most) {
    const std::size_t at = FindBytes(back, back_separator, begin);
    if (at == kNotFound) break;
    out.push_back(text.Substr(bytes.size() - at, bytes.size() - begin));
    begin = at + separator->size();
  }
  out.push_back(text.Substr(0, bytes.size() - begin));
  return {out.rbegin(), out.rend()};
}

std::vector<Text> SplitLines(const Text& text, bool keep_ends) {
  const std::string& bytes = text.bytes();
  std::vector<Text> out;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const Char c = DecodeChar(bytes, at);
    if (!IsLineEnd(c.code)) {
      at += c.size;
      continue;
    }
    std::size_t next = at + c.size;
    if (c.code == '\r' && next < bytes.size() && bytes[next] == '\n') ++next;
    out.push_back(text.Substr(begin, keep_ends ? next : at));
    begin = at = next;
  }
  if (begin < bytes.size()) out.push_back(text.Substr(begin, bytes.size()));
  return out;
}

Text Replace(const Text& text, string_view from, const Text& to,
             std::int64_t most) {
  const std::string& bytes = text.bytes();
  Text out;
  std::int64_t done = 0;
  if (from.empty()) {
    for (std::size_t at = 0;;) {
      if (most >= 0 && done >= most) {
        out.AppendRange(text, at, bytes.size());
        return out;
      }
      out.Append(to);
      ++done;
      if (at >= bytes.size()) return out;
      const std::size_t size = DecodeChar(bytes, at).size;
      out.AppendRange(text, at, at + size);
      at += size;
    }
  }
  std::size_t begin = 0;
  while (most < 0 || done < most) {
    const std::size_t at = FindBytes(bytes, from, begin);
    if (at == kNotFound) break;
    out.AppendRange(text, begin, at);
    out.Append(to);
    begin = at + from.size();
    ++done;
  }
  out.AppendRange(text, begin, bytes.size());
  return out;
}

std::int64_t CountBytes(string_view text, string_view needle) {
  if (needle.empty()) return static_cast<std::int64_t>(CountChars(text)) + 1;
  std::int64_t count = 0;
  for (std::size_t at = FindBytes(text, needle, 0); at != kNotFound;
       at = FindBytes(text, needle, at + needle.size())) {
    ++count;
  }
  return count;
}

Text MapCase(const Text& text, Case to) {
  const std::string& bytes = text.bytes();
  Text out;
  bool word_start = true;
  for (std::size_t at = 0; at < bytes.size();) {
    const Char c = DecodeChar(bytes, at);
    std::string mapped;
    switch (to) {
      case Case::kUpper:
        mapped = ToUpper(c.code);
        break;
      case Case::kLower:
        mapped = LowerAt(bytes, at, c);
        break;
      case Case::kTitle:
        mapped = word_start ? ToTitle(c.code) : LowerAt(bytes, at, c);
        word_start = !IsCased(c.code);
        break;
      case Case::kCapitalize:
        mapped = at == 0 ? ToTitle(c.code) : LowerAt(bytes, at, c);
        break;
      case Case::kTitleWords: {
        const bool border = IsSpace(c.code) || c.code == '-' || c.code == '(' ||
                            c.code == '{' || c.code == '[' || c.code == '<';
        // Each word is lowered alone, so a sigma looks at its word only; a
        // border has no case and gives the same answer.
        mapped = border       ? std::string(bytes, at, c.size)
                 : word_start ? ToUpper(c.code)
                              : LowerAt(bytes, at, c);
        word_start = border;
        break;
      }
    }
    out.Append(mapped, text.OriginAt(at));
    at += c.size;
  }
  return out;
}

Text ReverseChars(const Text& text) {
  const std::string& bytes = text.bytes();
  Text out;
  for (std::size_t end = bytes.size(); end > 0;) {
    // Characters are found as a forward walk finds them; see DecodeCharBefore.
    const std::size_t size = DecodeCharBefore(bytes, end).size;
    out.AppendRange(text, end - size, end);
    end -= size;
  }
  return out;
}

}  // namespace fucina::jinja
