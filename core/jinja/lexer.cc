#include "core/jinja/lexer.h"

#include <charconv>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/jinja/unicode.h"
#include "fucina/diag/status_macros.h"

namespace fucina::jinja {
namespace {

using absl::string_view;

bool IsNameStart(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool IsNameChar(char c) { return absl::ascii_isalnum(c) || c == '_'; }

string_view StripRight(string_view text) {
  while (!text.empty()) {
    const Char c = DecodeCharBefore(text, text.size());
    if (!IsSpace(c.code)) break;
    text.remove_suffix(c.size);
  }
  return text;
}

bool IsBlank(string_view text) { return StripRight(text).empty(); }

// Windows and old Mac line ends become "\n", a byte order mark goes, and so
// does one final newline, as in Jinja's default environment.
std::string Normalize(string_view source) {
  if (absl::StartsWith(source, "\xEF\xBB\xBF")) source.remove_prefix(3);
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out.push_back(source[i]);
      continue;
    }
    out.push_back('\n');
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  Lexer(string_view name, string_view source, const ParseOptions& options)
      : name_(name), source_(source), options_(options) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (at_ < source_.size()) FUCINA_RETURN_IF_ERROR(Outside());
    Add(TokenKind::kEnd, source_.size());
    return std::move(tokens_);
  }

 private:
  // Lines and columns are asked for in rising order, so one walk is enough.
  Place PlaceOf(std::size_t offset) {
    while (counted_ < offset) {
      const Char c = DecodeChar(source_, counted_);
      counted_ += c.size;
      if (c.code == '\n') {
        ++place_.line;
        place_.column = 1;
      } else {
        ++place_.column;
      }
    }
    return place_;
  }

  Token& Add(TokenKind kind, std::size_t offset) {
    tokens_.emplace_back();
    tokens_.back().kind = kind;
    tokens_.back().place = PlaceOf(offset);
    return tokens_.back();
  }

  absl::Status Fail(std::size_t offset, string_view message) {
    // Errors may point back, so the walk starts again.
    counted_ = 0;
    place_ = Place();
    return ErrorAt(name_, PlaceOf(offset), message);
  }

  string_view Rest() const { return source_.substr(at_); }

  void SkipSpace() {
    while (at_ < source_.size()) {
      const Char c = DecodeChar(source_, at_);
      if (!IsSpace(c.code)) return;
      at_ += c.size;
    }
  }

  // Takes one of: -END and all white space after it, END (with the newline
  // that trim_blocks drops), or +END, which keeps that newline.
  bool TakeEnd(string_view end, bool trims) {
    const string_view rest = Rest();
    if (absl::StartsWith(rest, absl::StrCat("-", end))) {
      at_ += 1 + end.size();
      SkipSpace();
      return true;
    }
    if (trims && absl::StartsWith(rest, absl::StrCat("+", end))) {
      at_ += 1 + end.size();
      return true;
    }
    if (absl::StartsWith(rest, end)) {
      at_ += end.size();
      if (trims && options_.trim_blocks && absl::StartsWith(Rest(), "\n")) {
        ++at_;
      }
      return true;
    }
    return false;
  }

  // Emits the text [begin, end) that stands before a tag with this sign.
  void AddText(std::size_t begin, std::size_t end, char sign, bool is_print) {
    string_view text = source_.substr(begin, end - begin);
    if (sign == '-') {
      text = StripRight(text);
    } else if (sign != '+' && options_.lstrip_blocks && !is_print) {
      const std::size_t newline = text.rfind('\n');
      const std::size_t line = newline == string_view::npos ? 0 : newline + 1;
      if ((line > 0 || line_starting_) && IsBlank(text.substr(line))) {
        text = text.substr(0, line);
      }
    }
    if (!text.empty()) Add(TokenKind::kText, begin).text = std::string(text);
  }

  void NoteLineStart() { line_starting_ = at_ > 0 && source_[at_ - 1] == '\n'; }

  // "{%- raw -%}" at `at`: its length, or 0 when this is another tag.
  std::size_t RawTag(std::size_t at, string_view word, bool is_end) {
    const std::size_t saved = at_;
    at_ = at + 2;
    if (at_ < source_.size() && (source_[at_] == '-' || source_[at_] == '+')) {
      ++at_;
    }
    SkipSpace();
    std::size_t size = 0;
    if (absl::StartsWith(Rest(), word)) {
      at_ += word.size();
      SkipSpace();
      // The opening tag never trims and knows no '+', the closing one does.
      if (TakeEnd("%}", /*trims=*/is_end)) size = at_ - at;
    }
    at_ = saved;
    return size;
  }

  char SignAt(std::size_t at) const {
    return at < source_.size() && (source_[at] == '-' || source_[at] == '+')
               ? source_[at]
               : '\0';
  }

  absl::Status Raw(std::size_t tag, std::size_t size) {
    at_ = tag + size;
    NoteLineStart();
    const std::size_t begin = at_;
    for (std::size_t end = source_.find("{%", begin); end != string_view::npos;
         end = source_.find("{%", end + 1)) {
      const std::size_t end_size = RawTag(end, "endraw", /*is_end=*/true);
      if (end_size == 0) continue;
      AddText(begin, end, SignAt(end + 2), /*is_print=*/false);
      at_ = end + end_size;
      NoteLineStart();
      return absl::OkStatus();
    }
    return Fail(tag, "raw block is never closed with endraw");
  }

  absl::Status Comment(std::size_t tag) {
    at_ = tag + 2 + (SignAt(tag + 2) != '\0' ? 1 : 0);
    for (; at_ < source_.size(); ++at_) {
      const char c = source_[at_];
      if (c != '#' && c != '-' && c != '+') continue;
      if (TakeEnd("#}", /*trims=*/true)) {
        NoteLineStart();
        return absl::OkStatus();
      }
    }
    return Fail(tag, "comment is never closed with '#}'");
  }

  // Template text up to the next tag, and that tag.
  absl::Status Outside() {
    const std::size_t begin = at_;
    std::size_t tag = begin;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == string_view::npos || tag + 1 >= source_.size()) {
        Add(TokenKind::kText, begin).text = std::string(source_.substr(begin));
        at_ = source_.size();
        return absl::OkStatus();
      }
      const char next = source_[tag + 1];
      if (next == '{' || next == '%' || next == '#') break;
    }
    const char kind = source_[tag + 1];
    const char sign = SignAt(tag + 2);
    AddText(begin, tag, sign, /*is_print=*/kind == '{');
    if (kind == '#') return Comment(tag);
    if (kind == '%') {
      if (const std::size_t size = RawTag(tag, "raw", /*is_end=*/false)) {
        return Raw(tag, size);
      }
    }
    at_ = tag + 2 + (sign != '\0' ? 1 : 0);
    const bool is_print = kind == '{';
    Add(is_print ? TokenKind::kPrintBegin : TokenKind::kBlockBegin, tag);
    FUCINA_RETURN_IF_ERROR(Inside(is_print));
    NoteLineStart();
    return absl::OkStatus();
  }

  absl::Status Inside(bool is_print) {
    std::vector<char> open;  // brackets that wait for their partner
    for (;;) {
      SkipSpace();
      if (at_ >= source_.size()) return absl::OkStatus();
      const std::size_t start = at_;
      if (open.empty()) {
        if (TakeEnd(is_print ? "}}" : "%}", /*trims=*/!is_print)) {
          Add(is_print ? TokenKind::kPrintEnd : TokenKind::kBlockEnd, start);
          return absl::OkStatus();
        }
      }
      const char c = source_[at_];
      if (absl::ascii_isdigit(c)) {
        FUCINA_RETURN_IF_ERROR(NumberToken());
      } else if (IsNameStart(c)) {
        while (at_ < source_.size() && IsNameChar(source_[at_])) ++at_;
        Add(TokenKind::kName, start).text =
            std::string(source_.substr(start, at_ - start));
      } else if (c == '\'' || c == '"') {
        FUCINA_RETURN_IF_ERROR(StringToken());
      } else {
        FUCINA_RETURN_IF_ERROR(OperatorToken(&open));
      }
    }
  }

  // Digits with single underscores between them, starting at `at`; returns
  // where they end.
  std::size_t DigitsEnd(std::size_t at) const {
    std::size_t end = at;
    while (end < source_.size()) {
      if (absl::ascii_isdigit(source_[end])) {
        ++end;
      } else if (source_[end] == '_' && end > at && end + 1 < source_.size() &&
                 absl::ascii_isdigit(source_[end + 1])) {
        end += 2;
      } else {
        break;
      }
    }
    return end;
  }

  bool DigitAt(std::size_t at) const {
    return at < source_.size() && absl::ascii_isdigit(source_[at]);
  }

  absl::Status NumberToken() {
    const std::size_t start = at_;
    // "a.1.5" is two accesses, not the float 1.5.
    const bool after_dot = start > 0 && source_[start - 1] == '.';
    std::size_t end = DigitsEnd(start);
    bool is_float = false;
    if (!after_dot) {
      std::size_t fraction = end;
      if (end < source_.size() && source_[end] == '.' && DigitAt(end + 1)) {
        fraction = DigitsEnd(end + 1);
        is_float = true;
      }
      std::size_t exponent = fraction;
      if (exponent < source_.size() &&
          absl::ascii_tolower(source_[exponent]) == 'e') {
        ++exponent;
        if (exponent < source_.size() &&
            (source_[exponent] == '+' || source_[exponent] == '-')) {
          ++exponent;
        }
        if (DigitAt(exponent)) {
          fraction = DigitsEnd(exponent);
          is_float = true;
        }
      }
      if (is_float) end = fraction;
    }
    int base = 10;
    std::size_t digits_start = start;
    if (!is_float && source_[start] == '0' && start + 1 < source_.size()) {
      const char mark = absl::ascii_tolower(source_[start + 1]);
      const int wanted = mark == 'x'   ? 16
                         : mark == 'o' ? 8
                         : mark == 'b' ? 2
                                       : 0;
      if (wanted != 0) {
        std::size_t stop = start + 2;
        while (stop < source_.size() && IsNameChar(source_[stop])) ++stop;
        if (stop > start + 2) {
          base = wanted;
          digits_start = start + 2;
          end = stop;
        }
      } else if (end > start + 1) {
        // Python has no octal by a leading zero: only zeros may follow.
        for (std::size_t i = start; i < end; ++i) {
          if (source_[i] != '0' && source_[i] != '_') {
            return Fail(start, "integer with a leading zero");
          }
        }
      }
    }
    std::string digits;
    for (std::size_t i = digits_start; i < end; ++i) {
      if (source_[i] != '_') digits.push_back(source_[i]);
    }
    at_ = end;
    if (is_float) {
      Token& token = Add(TokenKind::kFloat, start);
      // Past the range Python gives infinity or zero, and so does this.
      if (!absl::SimpleAtod(digits, &token.real)) {
        return Fail(start, absl::StrCat("bad number '", digits, "'"));
      }
      return absl::OkStatus();
    }
    Token& token = Add(TokenKind::kInt, start);
    const auto [stop, error] = std::from_chars(
        digits.data(), digits.data() + digits.size(), token.integer, base);
    if (error == std::errc::result_out_of_range) {
      return Fail(start,
                  absl::StrCat("integer '", digits, "' does not fit 64 bits"));
    }
    if (error != std::errc() || stop != digits.data() + digits.size()) {
      return Fail(start, absl::StrCat("bad number '",
                                      source_.substr(start, end - start), "'"));
    }
    return absl::OkStatus();
  }

  absl::Status HexEscape(std::size_t escape, int digits, std::string* out) {
    std::uint32_t code = 0;
    if (source_.size() - at_ < static_cast<std::size_t>(digits)) {
      return Fail(escape, "escape sequence is cut");
    }
    for (int i = 0; i < digits; ++i, ++at_) {
      if (!absl::ascii_isxdigit(source_[at_])) {
        return Fail(escape, absl::StrCat("escape sequence needs ", digits,
                                         " hexadecimal digits"));
      }
      const char c = absl::ascii_tolower(source_[at_]);
      code = code * 16 + static_cast<std::uint32_t>(
                             absl::ascii_isdigit(c) ? c - '0' : c - 'a' + 10);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
      return Fail(
          escape,
          absl::StrFormat("escape sequence names no character: U+%04X", code));
    }
    AppendChar(code, out);
    return absl::OkStatus();
  }

  absl::Status StringToken() {
    const std::size_t start = at_;
    const char quote = source_[at_++];
    std::string value;
    for (;;) {
      if (at_ >= source_.size()) return Fail(start, "string is never closed");
      const char c = source_[at_++];
      if (c == quote) break;
      if (c != '\\') {
        value.push_back(c);
        continue;
      }
      const std::size_t escape = at_ - 1;
      if (at_ >= source_.size()) return Fail(start, "string is never closed");
      const char kind = source_[at_++];
      switch (kind) {
        case '\n':
          break;  // a line that goes on
        case '\\':
        case '\'':
        case '"':
          value.push_back(kind);
          break;
        case 'a':
          value.push_back('\a');
          break;
        case 'b':
          value.push_back('\b');
          break;
        case 'f':
          value.push_back('\f');
          break;
        case 'n':
          value.push_back('\n');
          break;
        case 'r':
          value.push_back('\r');
          break;
        case 't':
          value.push_back('\t');
          break;
        case 'v':
          value.push_back('\v');
          break;
        case 'x':
          FUCINA_RETURN_IF_ERROR(HexEscape(escape, 2, &value));
          break;
        case 'u':
          FUCINA_RETURN_IF_ERROR(HexEscape(escape, 4, &value));
          break;
        case 'U':
          FUCINA_RETURN_IF_ERROR(HexEscape(escape, 8, &value));
          break;
        case 'N':
          return Fail(escape, "unsupported escape sequence '\\N'");
        default:
          if (kind >= '0' && kind <= '7') {
            std::uint32_t code = static_cast<std::uint32_t>(kind - '0');
            for (int i = 1; i < 3 && at_ < source_.size() &&
                            source_[at_] >= '0' && source_[at_] <= '7';
                 ++i, ++at_) {
              code = code * 8 + static_cast<std::uint32_t>(source_[at_] - '0');
            }
            AppendChar(code, &value);
          } else {
            // As in Python, an unknown escape stands for itself.
            value.push_back('\\');
            value.push_back(kind);
          }
      }
    }
    Add(TokenKind::kString, start).text = std::move(value);
    return absl::OkStatus();
  }

  absl::Status OperatorToken(std::vector<char>* open) {
    static constexpr string_view kDouble[] = {
        "**", "//", "==", "!=", "<=", ">="};
    static constexpr string_view kSingle = "+-*/%~[](){}<>=.:|,;";
    const std::size_t start = at_;
    const string_view rest = Rest();
    string_view spelling;
    for (const string_view op : kDouble) {
      if (absl::StartsWith(rest, op)) spelling = op;
    }
    if (spelling.empty() && kSingle.find(rest[0]) != string_view::npos) {
      spelling = rest.substr(0, 1);
    }
    if (spelling.empty()) {
      const Char c = DecodeChar(source_, at_);
      return Fail(start, absl::StrCat("unexpected character '",
                                      source_.substr(at_, c.size), "'"));
    }
    const char c = spelling[0];
    if (c == '(' || c == '[' || c == '{') {
      if (open->size() >= 1000) return Fail(start, "brackets nest too deep");
      open->push_back(c);
    } else if (c == ')' || c == ']' || c == '}') {
      const char partner = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open->empty() || open->back() != partner) {
        return Fail(start, absl::StrCat("unexpected '", spelling, "'"));
      }
      open->pop_back();
    }
    at_ += spelling.size();
    Add(TokenKind::kOperator, start).text = std::string(spelling);
    return absl::OkStatus();
  }

  const string_view name_;
  const string_view source_;
  const ParseOptions options_;
  std::size_t at_ = 0;
  bool line_starting_ = true;  // nothing but trimmed text since a line began
  std::size_t counted_ = 0;
  Place place_;
  std::vector<Token> tokens_;
};

}  // namespace

absl::Status ErrorAt(string_view name, Place place, string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(
      name, ", line ", place.line, ", column ", place.column, ": ", message));
}

absl::StatusOr<std::vector<Token>> Tokenize(string_view name,
                                            string_view source,
                                            const ParseOptions& options) {
  const std::string normal = Normalize(source);
  return Lexer(name, normal, options).Run();
}

}  // namespace fucina::jinja
