// The methods of Python's str.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/jinja/evaluator.h"
#include "core/jinja/method_table.h"
#include "core/jinja/methods.h"
#include "core/jinja/python.h"
#include "core/jinja/string_ops.h"
#include "core/jinja/unicode.h"
#include "fucina/diag/status_macros.h"

namespace fucina::jinja {
namespace {

using absl::string_view;
using Args = std::vector<Var>;

absl::StatusOr<Var> NewTexts(Evaluator& evaluator, std::vector<Text> texts,
                             Sequence::Flavor flavor) {
  std::vector<Var> items;
  items.reserve(texts.size());
  for (Text& text : texts) {
    FUCINA_ASSIGN_OR_RETURN(Var item, evaluator.NewString(std::move(text)));
    items.push_back(std::move(item));
  }
  return evaluator.NewSequence(flavor, std::move(items));
}

// The bytes [begin, end) of characters start:stop, and how many characters
// stand before; `valid` is false for a start past the end.
struct Window {
  std::size_t begin = 0, end = 0;
  std::int64_t first = 0;
  bool valid = true;
};

absl::StatusOr<Window> WindowOf(string_view what, const std::string& bytes,
                                const Var& start, const Var& stop) {
  Window out;
  out.end = bytes.size();
  FUCINA_ASSIGN_OR_RETURN(std::int64_t from, IntOr(what, start, 0));
  FUCINA_ASSIGN_OR_RETURN(
      std::int64_t to,
      IntOr(what, stop, std::numeric_limits<std::int64_t>::max()));
  if (from == 0 && to == std::numeric_limits<std::int64_t>::max()) return out;
  const auto size = static_cast<std::int64_t>(CountChars(bytes));
  if (from < 0) from = std::max<std::int64_t>(from + size, 0);
  if (to < 0) to = std::max<std::int64_t>(to + size, 0);
  to = std::min(to, size);
  if (from > to) {
    out.valid = false;
    return out;
  }
  std::size_t at = 0;
  for (std::int64_t i = 0; i <= to; ++i) {
    if (i == from) out.begin = at;
    if (i == to) out.end = at;
    if (at < bytes.size()) at += DecodeChar(bytes, at).size;
  }
  out.first = from;
  return out;
}

template <bool kLeft, bool kRight>
absl::StatusOr<Var> StripMethod(Evaluator& evaluator, Args& args) {
  std::optional<string_view> chars;
  if (!args[1].is_absent() && !args[1].is_none()) {
    FUCINA_RETURN_IF_ERROR(NeedText("strip", args[1]));
    chars = args[1].bytes();
  }
  return evaluator.NewString(Strip(args[0].text(), chars, kLeft, kRight));
}

template <bool kFromRight>
absl::StatusOr<Var> SplitMethod(Evaluator& evaluator, Args& args) {
  std::optional<string_view> separator;
  if (!args[1].is_absent() && !args[1].is_none()) {
    FUCINA_RETURN_IF_ERROR(NeedText("split", args[1]));
    if (args[1].text().empty()) return TypeError("split: empty separator");
    separator = args[1].bytes();
  }
  FUCINA_ASSIGN_OR_RETURN(const std::int64_t most, IntOr("split", args[2], -1));
  return NewTexts(evaluator, Split(args[0].text(), separator, most, kFromRight),
                  Sequence::Flavor::kList);
}

absl::StatusOr<Var> SplitLinesMethod(Evaluator& evaluator, Args& args) {
  return NewTexts(
      evaluator,
      SplitLines(args[0].text(), !args[1].is_absent() && Truthy(args[1])),
      Sequence::Flavor::kList);
}

template <bool kAtStart>
absl::StatusOr<Var> AffixMethod(Evaluator&, Args& args) {
  const string_view name = kAtStart ? "startswith" : "endswith";
  std::vector<Var> affixes = {args[1]};
  if (args[1].is_sequence() &&
      args[1].sequence().flavor == Sequence::Flavor::kTuple) {
    affixes = args[1].sequence().items;
  }
  const std::string& bytes = args[0].bytes();
  FUCINA_ASSIGN_OR_RETURN(const Window window,
                          WindowOf(name, bytes, args[2], args[3]));
  const string_view part =
      string_view(bytes).substr(window.begin, window.end - window.begin);
  for (const Var& affix : affixes) {
    FUCINA_RETURN_IF_ERROR(NeedText(name, affix));
    if (window.valid && (kAtStart ? absl::StartsWith(part, affix.bytes())
                                  : absl::EndsWith(part, affix.bytes()))) {
      return Var::Bool(true);
    }
  }
  return Var::Bool(false);
}

template <bool kLast, bool kMustFind>
absl::StatusOr<Var> FindMethod(Evaluator&, Args& args) {
  const string_view name = kLast ? "rfind" : "find";
  FUCINA_RETURN_IF_ERROR(NeedText(name, args[1]));
  const std::string& bytes = args[0].bytes();
  FUCINA_ASSIGN_OR_RETURN(const Window window,
                          WindowOf(name, bytes, args[2], args[3]));
  const string_view part =
      string_view(bytes).substr(window.begin, window.end - window.begin);
  std::size_t at = kNotFound;
  if (window.valid) {
    at = kLast ? FindLastBytes(part, args[1].bytes(), part.size())
               : FindBytes(part, args[1].bytes(), 0);
  }
  if (at == kNotFound) {
    if (kMustFind) return TypeError("index: the text does not occur");
    return Var::Int(-1);
  }
  return Var::Int(window.first +
                  static_cast<std::int64_t>(CountChars(part.substr(0, at))));
}

absl::StatusOr<Var> CountMethod(Evaluator&, Args& args) {
  FUCINA_RETURN_IF_ERROR(NeedText("count", args[1]));
  const std::string& bytes = args[0].bytes();
  FUCINA_ASSIGN_OR_RETURN(const Window window,
                          WindowOf("count", bytes, args[2], args[3]));
  if (!window.valid) return Var::Int(0);
  return Var::Int(CountBytes(
      string_view(bytes).substr(window.begin, window.end - window.begin),
      args[1].bytes()));
}

absl::StatusOr<Var> ReplaceMethod(Evaluator& evaluator, Args& args) {
  FUCINA_RETURN_IF_ERROR(NeedText("replace", args[1]));
  FUCINA_RETURN_IF_ERROR(NeedText("replace", args[2]));
  FUCINA_ASSIGN_OR_RETURN(const std::int64_t most,
                          IntOr("replace", args[3], -1));
  return ReplaceText(evaluator, args[0].text(), args[1].bytes(), args[2].text(),
                     most);
}

template <Case kCase>
absl::StatusOr<Var> CaseMethod(Evaluator& evaluator, Args& args) {
  return evaluator.NewString(MapCase(args[0].text(), kCase));
}

absl::StatusOr<Var> JoinMethod(Evaluator& evaluator, Args& args) {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Var> items,
                          evaluator.Items(args[1]));
  Text out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    FUCINA_RETURN_IF_ERROR(NeedText("join", items[i]));
    if (i > 0) out.Append(args[0].text());
    FUCINA_RETURN_IF_ERROR(
        evaluator.ChargeBytes(args[0].text().size() + items[i].text().size()));
    out.Append(items[i].text());
  }
  return evaluator.NewString(std::move(out));
}

template <bool kPrefix>
absl::StatusOr<Var> RemoveAffixMethod(Evaluator& evaluator, Args& args) {
  FUCINA_RETURN_IF_ERROR(
      NeedText(kPrefix ? "removeprefix" : "removesuffix", args[1]));
  const Text& text = args[0].text();
  const std::string& affix = args[1].bytes();
  if (kPrefix && absl::StartsWith(text.bytes(), affix)) {
    return evaluator.NewString(text.Substr(affix.size(), text.size()));
  }
  if (!kPrefix && absl::EndsWith(text.bytes(), affix)) {
    return evaluator.NewString(text.Substr(0, text.size() - affix.size()));
  }
  return args[0];
}

template <bool kLast>
absl::StatusOr<Var> PartitionMethod(Evaluator& evaluator, Args& args) {
  FUCINA_RETURN_IF_ERROR(NeedText("partition", args[1]));
  const Text& text = args[0].text();
  const std::string& separator = args[1].bytes();
  if (separator.empty()) return TypeError("partition: empty separator");
  const std::size_t at =
      kLast ? FindLastBytes(text.bytes(), separator, text.size())
            : FindBytes(text.bytes(), separator, 0);
  if (at == kNotFound) {
    if (kLast) {
      return NewTexts(evaluator, {Text(), Text(), text},
                      Sequence::Flavor::kTuple);
    }
    return NewTexts(evaluator, {text, Text(), Text()},
                    Sequence::Flavor::kTuple);
  }
  const std::size_t end = at + separator.size();
  return NewTexts(
      evaluator,
      {text.Substr(0, at), text.Substr(at, end), text.Substr(end, text.size())},
      Sequence::Flavor::kTuple);
}

// Every character has the property, and there is one at least.
template <bool (*kHas)(std::uint32_t)>
absl::StatusOr<Var> AllMethod(Evaluator&, Args& args) {
  const std::string& bytes = args[0].bytes();
  for (std::size_t i = 0; i < bytes.size();) {
    const Char c = DecodeChar(bytes, i);
    if (!kHas(c.code)) return Var::Bool(false);
    i += c.size;
  }
  return Var::Bool(!bytes.empty());
}

bool IsAlnum(std::uint32_t c) {
  return IsAlpha(c) || IsDecimal(c) || IsDigit(c) || IsNumeric(c);
}

absl::StatusOr<Var> IsUpperMethod(Evaluator&, Args& args) {
  return Var::Bool(HasOneCase(args[0].bytes(), /*upper=*/true));
}

absl::StatusOr<Var> IsLowerMethod(Evaluator&, Args& args) {
  return Var::Bool(HasOneCase(args[0].bytes(), /*upper=*/false));
}

constexpr MethodEntry kStringMethods[] = {
    {"capitalize", "", 0, CaseMethod<Case::kCapitalize>},
    {"casefold", "", 0, nullptr},
    {"center", "", 0, nullptr},
    {"count", "-text,-start,-end", 1, CountMethod},
    {"encode", "", 0, nullptr},
    {"endswith", "-suffix,-start,-end", 1, AffixMethod<false>},
    {"expandtabs", "", 0, nullptr},
    {"find", "-text,-start,-end", 1, FindMethod<false, false>},
    {"format", "", 0, nullptr},
    {"format_map", "", 0, nullptr},
    {"index", "-text,-start,-end", 1, FindMethod<false, true>},
    {"isalnum", "", 0, AllMethod<IsAlnum>},
    {"isalpha", "", 0, AllMethod<IsAlpha>},
    {"isascii", "", 0, nullptr},
    {"isdecimal", "", 0, AllMethod<IsDecimal>},
    {"isdigit", "", 0, AllMethod<IsDigit>},
    {"isidentifier", "", 0, nullptr},
    {"islower", "", 0, IsLowerMethod},
    {"isnumeric", "", 0, AllMethod<IsNumeric>},
    {"isprintable", "", 0, nullptr},
    {"isspace", "", 0, AllMethod<IsSpace>},
    {"istitle", "", 0, nullptr},
    {"isupper", "", 0, IsUpperMethod},
    {"join", "-items", 1, JoinMethod},
    {"ljust", "", 0, nullptr},
    {"lower", "", 0, CaseMethod<Case::kLower>},
    {"lstrip", "-chars", 0, StripMethod<true, false>},
    {"maketrans", "", 0, nullptr},
    {"partition", "-separator", 1, PartitionMethod<false>},
    {"removeprefix", "-prefix", 1, RemoveAffixMethod<true>},
    {"removesuffix", "-suffix", 1, RemoveAffixMethod<false>},
    {"replace", "-old,-new,-count", 2, ReplaceMethod},
    {"rfind", "-text,-start,-end", 1, FindMethod<true, false>},
    {"rindex", "-text,-start,-end", 1, FindMethod<true, true>},
    {"rjust", "", 0, nullptr},
    {"rpartition", "-separator", 1, PartitionMethod<true>},
    {"rsplit", "sep,maxsplit", 0, SplitMethod<true>},
    {"rstrip", "-chars", 0, StripMethod<false, true>},
    {"split", "sep,maxsplit", 0, SplitMethod<false>},
    {"splitlines", "keepends", 0, SplitLinesMethod},
    {"startswith", "-prefix,-start,-end", 1, AffixMethod<true>},
    {"strip", "-chars", 0, StripMethod<true, true>},
    {"swapcase", "", 0, nullptr},
    {"title", "", 0, CaseMethod<Case::kTitle>},
    {"translate", "", 0, nullptr},
    {"upper", "", 0, CaseMethod<Case::kUpper>},
    {"zfill", "", 0, nullptr},
};

}  // namespace

std::span<const MethodEntry> StrMethods() { return kStringMethods; }

bool HasOneCase(string_view bytes, bool upper) {
  bool cased = false;
  for (std::size_t i = 0; i < bytes.size();) {
    const Char c = DecodeChar(bytes, i);
    if (IsTitle(c.code) || (upper ? IsLower(c.code) : IsUpper(c.code))) {
      return false;
    }
    cased = cased || (upper ? IsUpper(c.code) : IsLower(c.code));
    i += c.size;
  }
  return cased;
}

absl::StatusOr<Var> ReplaceText(Evaluator& evaluator, const Text& text,
                                string_view from, const Text& to,
                                std::int64_t most) {
  FUCINA_RETURN_IF_ERROR(evaluator.Charge(text.size() / 256));
  std::int64_t times = CountBytes(text.bytes(), from);
  if (most >= 0) times = std::min(times, most);
  // Before anything is made: every match may become much longer. Neither
  // factor passes 2^32, so the product does not overflow.
  FUCINA_RETURN_IF_ERROR(
      evaluator.ChargeBytes(static_cast<std::size_t>(times) * to.size()));
  return evaluator.NewString(Replace(text, from, to, most));
}

}  // namespace fucina::jinja
