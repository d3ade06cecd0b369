// The reader of Lark text: only as much as it takes to tell code from strings,
// expressions, comments and embedded JSON.

#include <algorithm>
#include <cctype>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "fucina/diag/status_macros.h"
#include "grammar_text.h"

namespace fucina::llguidance {
namespace {

bool IsWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

class LarkReader {
 public:
  explicit LarkReader(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::string> Read() {
    while (at_ < text_.size()) FUCINA_RETURN_IF_ERROR(Next());
    return absl::StrCat(out_, text_.substr(copied_));
  }

 private:
  absl::Status Fail(std::size_t offset, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(Place(text_, offset), ": ", what));
  }

  // One piece of the text.
  absl::Status Next() {
    const char c = text_[at_];
    const bool slashes = absl::StartsWith(text_.substr(at_), "//");
    if (c == '#' || slashes) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '"' || c == '/') {
      return Quoted(c);
    } else if (c == '(' || c == '[' || c == '{') {
      if (++depth_ > kMaxBracketDepth) {
        return Fail(at_,
                    absl::StrCat("brackets are nested deeper than ",
                                 kMaxBracketDepth, ", which is not supported"));
      }
      ++at_;
    } else if (c == ')' || c == ']' || c == '}') {
      depth_ = std::max(0, depth_ - 1);
      ++at_;
    } else if (c == '%' || IsWord(c)) {
      return Word();
    } else {
      ++at_;
    }
    return absl::OkStatus();
  }

  // A string or an expression, up to its closing mark on the same line.
  absl::Status Quoted(char mark) {
    const std::size_t start = ++at_;
    while (at_ < text_.size() && text_[at_] != mark && text_[at_] != '\n') {
      at_ += text_[at_] == '\\' ? 2 : 1;
    }
    at_ = std::min(at_, text_.size());
    if (mark == '/') {
      const absl::Status depth =
          CheckRegexDepth(text_.substr(start, at_ - start));
      if (!depth.ok()) return Fail(start - 1, depth.message());
    }
    if (at_ < text_.size()) ++at_;
    return absl::OkStatus();
  }

  absl::Status Word() {
    const std::size_t start = at_++;
    while (at_ < text_.size() && IsWord(text_[at_])) ++at_;
    const absl::string_view word = text_.substr(start, at_ - start);
    std::size_t next = at_;
    while (next < text_.size() &&
           std::isspace(static_cast<unsigned char>(text_[next])) != 0) {
      ++next;
    }
    const char after = next < text_.size() ? text_[next] : '\0';
    if (word[0] == '%' && after == '{') return Json(word, next);
    if (after != '=') return absl::OkStatus();
    if (word == "temperature") {
      return Fail(start,
                  "temperature= has no effect here; set the temperature of the "
                  "whole reply with --temp");
    }
    if (word == "max_tokens" || word == "stop") {
      return Fail(start, absl::StrCat(word,
                                      "= is not supported; bound the rule "
                                      "itself, for example with {m,n}"));
    }
    return absl::OkStatus();
  }

  // The JSON object that follows %json, %regex or %llguidance at `start`.
  absl::Status Json(absl::string_view word, std::size_t start) {
    int depth = 0;
    bool inside = false;
    std::size_t end = start;
    for (; end < text_.size(); ++end) {
      const char c = text_[end];
      if (inside) {
        if (c == '\\') ++end;
        if (c == '"') inside = false;
      } else if (c == '"') {
        inside = true;
      } else if (c == '{' || c == '[') {
        if (++depth > kMaxJsonDepth) {
          return Fail(end,
                      absl::StrCat("objects and arrays are nested deeper "
                                   "than ",
                                   kMaxJsonDepth, ", which is not supported"));
        }
      } else if (c == '}' || c == ']') {
        if (--depth == 0) break;
      }
    }
    at_ = std::min(end + 1, text_.size());
    if (word != "%json" || end >= text_.size()) return absl::OkStatus();
    auto schema = CompleteSchema(text_.substr(start, at_ - start), false);
    if (!schema.ok()) {
      return Fail(start,
                  absl::StrCat("in this schema: ", schema.status().message()));
    }
    absl::StrAppend(&out_, text_.substr(copied_, start - copied_), *schema);
    copied_ = at_;
    return absl::OkStatus();
  }

  absl::string_view text_;
  std::size_t at_ = 0;
  std::size_t copied_ = 0;  // what of text_ is in out_
  std::string out_;
  int depth_ = 0;
};

}  // namespace

absl::StatusOr<Grammar> LarkGrammar(absl::string_view text) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");
  FUCINA_RETURN_IF_ERROR(CheckText(text));
  FUCINA_ASSIGN_OR_RETURN(std::string grammar, LarkReader(text).Read());
  return Grammar{GrammarKind::kLark, std::move(grammar)};
}

}  // namespace fucina::llguidance
