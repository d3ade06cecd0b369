#include "core/text/pretokenize.h"

#include <array>
#include <cstddef>

#include "core/text/unicode_tables.h"
#include "core/text/utf8.h"

namespace fucina::text {
namespace {

// --- names ------------------------------------------------------------------

constexpr PreTokenizer Plain(absl::string_view name, SplitRules rules) {
  return {name, rules, false, false};
}
constexpr PreTokenizer Llama(absl::string_view name) {
  return {name, SplitRules::kLlama3, true, true};
}

// As llama.cpp groups them; a name that ends in '*' matches any continuation.
constexpr PreTokenizer kPreTokenizers[] = {
    Plain("qwen2", SplitRules::kQwen2),
    Plain("deepseek-r1-qwen", SplitRules::kQwen2),
    Plain("megrez", SplitRules::kQwen2),
    Plain("kormo", SplitRules::kQwen2),
    Plain("openpangu", SplitRules::kQwen2),
    Plain("f2llmv2", SplitRules::kQwen2),
    Plain("stablelm2", SplitRules::kQwen2),
    Plain("hunyuan", SplitRules::kQwen2),
    Plain("solar-open", SplitRules::kQwen2),
    Plain("grok-2", SplitRules::kQwen2),
    Plain("qwen35", SplitRules::kQwen35),
    Plain("glm4", SplitRules::kLlama3),
    Plain("chatglm-bpe", SplitRules::kLlama3),
    Plain("dbrx", SplitRules::kLlama3),
    Plain("smaug-bpe", SplitRules::kLlama3),
    Llama("llama-bpe"),
    Llama("llama3"),
    Llama("llama-v3"),
    Llama("laguna"),
    Llama("falcon3"),
    Llama("falcon-h1"),
    Llama("pixtral"),
    Llama("midm-2.0"),
    Llama("lfm2"),
    Llama("jina-v5-nano"),
    Plain("gpt-2", SplitRules::kGpt2),
    Plain("phi-2", SplitRules::kGpt2),
    Plain("mpt", SplitRules::kGpt2),
    Plain("olmo", SplitRules::kGpt2),
    Plain("jais", SplitRules::kGpt2),
    Plain("modern-bert", SplitRules::kGpt2),
    Plain("exaone4", SplitRules::kGpt2),
    Plain("trillion", SplitRules::kGpt2),
    Plain("granite-docling", SplitRules::kGpt2),
    Plain("gigachat", SplitRules::kGpt2),
    Plain("mellum", SplitRules::kGpt2),
    Plain("a.x-4.0", SplitRules::kGpt2),
    Plain("roberta-bpe", SplitRules::kGpt2),
    Plain("jina-es", SplitRules::kGpt2),
    Plain("jina-de", SplitRules::kGpt2),
    Plain("jina-v1-en", SplitRules::kGpt2),
    Plain("jina-v2-*", SplitRules::kGpt2),
    Plain("smollm", SplitRules::kSmollm),
    Plain("starcoder", SplitRules::kSmollm),
    Plain("refact", SplitRules::kSmollm),
    Plain("command-r", SplitRules::kSmollm),
    Plain("cohere2_moe", SplitRules::kSmollm),
    Plain("codeshell", SplitRules::kSmollm),
    Plain("exaone", SplitRules::kSmollm),
    Plain("minerva-7b", SplitRules::kSmollm),
    Plain("mellum2", SplitRules::kSmollm),
    Plain("default", SplitRules::kDefault),
};

bool Matches(absl::string_view pattern, absl::string_view name) {
  if (pattern.back() != '*') return pattern == name;
  pattern.remove_suffix(1);
  return name.substr(0, pattern.size()) == pattern;
}

// --- characters -------------------------------------------------------------

constexpr std::array<CharClass, 128> AsciiClasses() {
  std::array<CharClass, 128> classes = {};
  for (int c = 0; c < 128; ++c) {
    const auto in = [c](int low, int high) { return c >= low && c <= high; };
    CharClass type = CharClass::kOther;
    if (in('a', 'z') || in('A', 'Z')) {
      type = CharClass::kLetter;
    } else if (in('0', '9')) {
      type = CharClass::kNumber;
    } else if (in(9, 13) || c == ' ') {
      type = CharClass::kSpace;
    } else if (in(0x21, 0x7E) && c != '$' && c != '+' && !in('<', '>') &&
               c != '^' && c != '`' && c != '|' && c != '~') {
      type = CharClass::kPunctuation;
    }
    classes[static_cast<std::size_t>(c)] = type;
  }
  return classes;
}
constexpr std::array<CharClass, 128> kAsciiClasses = AsciiClasses();

// Reads classes at byte offsets of one fragment.
class Scanner {
 public:
  explicit Scanner(absl::string_view text) : text_(text) {}

  std::size_t size() const { return text_.size(); }
  char byte(std::size_t at) const { return text_[at]; }
  bool IsByte(std::size_t at, char c) const {
    return at < text_.size() && text_[at] == c;
  }
  bool IsLineBreak(std::size_t at) const {
    return at < text_.size() && (text_[at] == '\r' || text_[at] == '\n');
  }

  // The class of the character at `at`; `next` becomes the offset behind it.
  // REQUIRES: at < size().
  CharClass Read(std::size_t at, std::size_t& next) const {
    const auto lead = static_cast<unsigned char>(text_[at]);
    if (lead < 0x80) {
      next = at + 1;
      return kAsciiClasses[lead];
    }
    const Utf8Sequence sequence = ReadUtf8(text_, at);
    if (!sequence.valid) {
      next = at + 1;
      return CharClass::kOther;
    }
    next = at + static_cast<std::size_t>(sequence.length);
    return ClassOf(sequence.code_point);
  }

  // The end of the run of characters from `at` for which `belongs` holds.
  template <typename Predicate>
  std::size_t RunEnd(std::size_t at, Predicate belongs) const {
    std::size_t next = at;
    while (at < text_.size() && belongs(Read(at, next))) at = next;
    return at;
  }

  std::size_t LineBreaksEnd(std::size_t at) const {
    while (IsLineBreak(at)) ++at;
    return at;
  }

 private:
  absl::string_view text_;
};

char AsciiLower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// 's 't 'm 'd 're 've 'll: bytes of the contraction at `at`, 0 for none. Cases
// are ASCII only: a caseless match would take U+017F for an s.
std::size_t ContractionBytes(const Scanner& text, std::size_t at,
                             bool any_case) {
  if (!text.IsByte(at, '\'') || at + 1 >= text.size()) return 0;
  const auto letter = [&](std::size_t i) {
    return any_case ? AsciiLower(text.byte(i)) : text.byte(i);
  };
  const char first = letter(at + 1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (at + 2 >= text.size()) return 0;
  const char second = letter(at + 2);
  const bool pair = ((first == 'r' || first == 'v') && second == 'e') ||
                    (first == 'l' && second == 'l');
  return pair ? 3 : 0;
}

// --- one regular expression each --------------------------------------------

// E     = (?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])
// qwen2 = E|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*
//         |\s*[\r\n]+|\s+(?!\S)|\s+
// llama3 has \p{N}{1,3} for \p{N}; qwen35 has [\p{L}\p{M}]+ for \p{L}+ and
// [^\s\p{L}\p{M}\p{N}]+ for [^\s\p{L}\p{N}]+.
class CaselessWords {
 public:
  CaselessWords(bool marks_in_words, int max_digits)
      : marks_in_words_(marks_in_words), max_digits_(max_digits) {}

  // The end of the piece that begins at `at`. REQUIRES: at < text.size().
  std::size_t PieceEnd(const Scanner& text, std::size_t at) const {
    if (const std::size_t n = ContractionBytes(text, at, true); n > 0) {
      return at + n;
    }
    const auto in_word = [this](CharClass type) {
      return type == CharClass::kLetter ||
             (marks_in_words_ && type == CharClass::kMark);
    };
    const auto in_symbols = [&](CharClass type) {
      return type != CharClass::kSpace && type != CharClass::kNumber &&
             !in_word(type);
    };
    std::size_t next = at;
    const CharClass type = text.Read(at, next);
    if (in_word(type)) return text.RunEnd(next, in_word);
    if (type == CharClass::kNumber) return NumberEnd(text, next);
    std::size_t after = next;
    const bool more = next < text.size();
    const CharClass second = more ? text.Read(next, after) : CharClass::kOther;
    if (more && !text.IsLineBreak(at) && in_word(second)) {
      return text.RunEnd(after, in_word);
    }
    if (in_symbols(type)) {
      return text.LineBreaksEnd(text.RunEnd(next, in_symbols));
    }
    if (text.byte(at) == ' ' && more && in_symbols(second)) {
      return text.LineBreaksEnd(text.RunEnd(after, in_symbols));
    }
    return SpacesEnd(text, at);
  }

 private:
  // `at` is behind the first number.
  std::size_t NumberEnd(const Scanner& text, std::size_t at) const {
    for (int i = 1; i < max_digits_ && at < text.size(); ++i) {
      std::size_t next = at;
      if (text.Read(at, next) != CharClass::kNumber) break;
      at = next;
    }
    return at;
  }

  // \s*[\r\n]+|\s+(?!\S)|\s+ from a space at `at`.
  static std::size_t SpacesEnd(const Scanner& text, std::size_t at) {
    std::size_t last = at;        // where the last character of the run is
    std::size_t line_break = at;  // behind the last CR or LF
    std::size_t end = at;
    std::size_t next = at;
    while (end < text.size() && text.Read(end, next) == CharClass::kSpace) {
      if (text.IsLineBreak(end)) line_break = next;
      last = end;
      end = next;
    }
    if (line_break > at) return line_break;
    // The last space goes to what follows.
    return last > at && end < text.size() ? last : end;
  }

  bool marks_in_words_;
  int max_digits_;
};

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t Gpt2PieceEnd(const Scanner& text, std::size_t at) {
  if (const std::size_t n = ContractionBytes(text, at, false); n > 0) {
    return at + n;
  }
  enum Kind { kWord, kNumber, kSymbols, kSpaces };
  const auto kind_of = [](CharClass type) {
    switch (type) {
      case CharClass::kLetter:
        return kWord;
      case CharClass::kNumber:
        return kNumber;
      case CharClass::kSpace:
        return kSpaces;
      default:
        return kSymbols;
    }
  };
  const auto run = [&](std::size_t from, Kind kind) {
    return text.RunEnd(from,
                       [&](CharClass type) { return kind_of(type) == kind; });
  };
  std::size_t next = at;
  Kind kind = kind_of(text.Read(at, next));
  if (kind != kSpaces) return run(next, kind);
  if (text.byte(at) == ' ' && next < text.size()) {
    std::size_t after = next;
    kind = kind_of(text.Read(next, after));
    if (kind != kSpaces) return run(after, kind);
  }
  std::size_t last = at;
  std::size_t end = at;
  while (end < text.size() && kind_of(text.Read(end, next)) == kSpaces) {
    last = end;
    end = next;
  }
  return last > at && end < text.size() ? last : end;
}

void SplitGpt2(absl::string_view fragment,
               absl::FunctionRef<void(absl::string_view)> piece) {
  const Scanner text(fragment);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = Gpt2PieceEnd(text, at);
    piece(fragment.substr(at, end - at));
    at = end;
  }
}

// Matches of a run expression and the gaps between them: the stage
// `[class]+` of the multi-stage splits. With `one_by_one` the expression is a
// single character of the class.
template <typename Predicate, typename Piece>
void SplitRuns(absl::string_view fragment, bool one_by_one, Predicate matches,
               Piece piece) {
  const Scanner text(fragment);
  std::size_t start = 0;
  bool in_match = false;
  std::size_t next = 0;
  for (std::size_t at = 0; at < text.size(); at = next) {
    const CharClass type = text.Read(at, next);
    const bool match = matches(type, text.byte(at));
    if (at > start && (match != in_match || (match && one_by_one))) {
      piece(fragment.substr(start, at - start));
      start = at;
    }
    in_match = match;
  }
  if (start < text.size()) piece(fragment.substr(start));
}

bool IsNumber(CharClass type, char /*byte*/) {
  return type == CharClass::kNumber;
}

// [\p{P}\$\+<=>\^~\|]+
bool IsPunctuation(CharClass type, char byte) {
  constexpr absl::string_view kSymbols = "$+<=>^~|";
  return type == CharClass::kPunctuation ||
         kSymbols.find(byte) != absl::string_view::npos;
}

// [0-9][0-9][0-9] and the gaps between its matches.
void SplitDigitTriples(absl::string_view fragment,
                       absl::FunctionRef<void(absl::string_view)> piece) {
  const auto is_digit = [&](std::size_t at) {
    return fragment[at] >= '0' && fragment[at] <= '9';
  };
  std::size_t start = 0;
  std::size_t at = 0;
  while (at + 3 <= fragment.size()) {
    if (!is_digit(at) || !is_digit(at + 1) || !is_digit(at + 2)) {
      ++at;
      continue;
    }
    if (at > start) piece(fragment.substr(start, at - start));
    piece(fragment.substr(at, 3));
    at += 3;
    start = at;
  }
  if (start < fragment.size()) piece(fragment.substr(start));
}

void SplitDefault(absl::string_view fragment,
                  absl::FunctionRef<void(absl::string_view)> piece) {
  const auto numbers = [&](absl::string_view part) {
    SplitRuns(part, false, IsNumber,
              [&](absl::string_view run) { SplitDigitTriples(run, piece); });
  };
  SplitRuns(fragment, false, IsPunctuation,
            [&](absl::string_view part) { SplitGpt2(part, numbers); });
}

}  // namespace

const PreTokenizer* FindPreTokenizer(absl::string_view name) {
  for (const PreTokenizer& known : kPreTokenizers) {
    if (Matches(known.name, name)) return &known;
  }
  return nullptr;
}

void SplitPieces(SplitRules rules, absl::string_view fragment,
                 absl::FunctionRef<void(absl::string_view)> piece) {
  const auto scan = [&](CaselessWords words) {
    const Scanner text(fragment);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = words.PieceEnd(text, at);
      piece(fragment.substr(at, end - at));
      at = end;
    }
  };
  switch (rules) {
    case SplitRules::kQwen2:
      return scan(CaselessWords(false, 1));
    case SplitRules::kQwen35:
      return scan(CaselessWords(true, 1));
    case SplitRules::kLlama3:
      return scan(CaselessWords(false, 3));
    case SplitRules::kGpt2:
      return SplitGpt2(fragment, piece);
    case SplitRules::kSmollm:
      return SplitRuns(fragment, true, IsNumber,
                       [&](absl::string_view part) { SplitGpt2(part, piece); });
    case SplitRules::kDefault:
      return SplitDefault(fragment, piece);
  }
}

}  // namespace fucina::text
