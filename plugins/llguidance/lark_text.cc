// The reader of Lark text: only as much as it takes to tell code from strings,
// expressions, comments and embedded JSON.

#include <algorithm>
#include <cctype>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

  absl::StatusOr<Grammar> Read() {
    while (at_ < text_.size()) FUCINA_RETURN_IF_ERROR(Next());
    return Grammar{GrammarKind::kLark,
                   absl::StrCat(out_, text_.substr(copied_)),
                   std::move(warning_)};
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
      return absl::OkStatus();
    }
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at_;
      return absl::OkStatus();
    }
    if (++parts_ > kMaxLarkParts) {
      return Fail(at_, absl::StrCat("more than ", kMaxLarkParts,
                                    " names, texts and signs are not "
                                    "supported"));
    }
    const bool opens = c == '(' || c == '[' || c == '{';
    if ((opens || c == ':') && ++rules_ > kMaxLarkRules) {
      return Fail(at_, absl::StrCat("more than ", kMaxLarkRules,
                                    " rules and brackets are not supported"));
    }
    if (c == '"' || c == '/') {
      return Quoted(c);
    }
    if (c == '<') {
      SpecialToken();
    } else if (opens) {
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

  // A token by name or ids, such as <|end|> and <[5-7]>, which may hold the
  // marks of strings and comments. Other uses of the sign are none of Lark's.
  void SpecialToken() {
    const std::size_t end = text_.find_first_of("<> \t\r\n", at_ + 1);
    const bool closed =
        end != absl::string_view::npos && text_[end] == '>' && end > at_ + 1;
    at_ = closed ? end + 1 : at_ + 1;
  }

  // A string or an expression up to its closing mark. An expression may go over
  // several lines, a string ends with its line at the latest.
  absl::Status Quoted(char mark) {
    const std::size_t start = ++at_;
    while (at_ < text_.size() && text_[at_] != mark &&
           (mark == '/' || text_[at_] != '\n')) {
      at_ += text_[at_] == '\\' ? 2 : 1;
    }
    at_ = std::min(at_, text_.size());
    const absl::string_view quoted = text_.substr(start, at_ - start);
    // Brackets of a string are text.
    const absl::Status checked =
        mark == '/' || quoted.size() > kMaxExpressionBytes
            ? CheckExpression(quoted)
            : absl::OkStatus();
    if (!checked.ok()) return Fail(start - 1, checked.message());
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
    // A nested grammar goes on as this one.
    if (word[0] == '%' && after == '{' && word != "%lark") {
      return Json(word, next);
    }
    constexpr absl::string_view kAnyDocument = "true";
    if (word == "%json" && absl::StartsWith(text_.substr(next), kAnyDocument)) {
      at_ = next + kAnyDocument.size();
      return EmbeddedSchema(next);
    }
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
    if (end >= text_.size()) return absl::OkStatus();
    if (word == "%json") return EmbeddedSchema(start);
    return word == "%llguidance" ? CheckOptions(start) : absl::OkStatus();
  }

  // The schema between `start` and here.
  absl::Status EmbeddedSchema(std::size_t start) {
    auto schema = CompleteSchema(text_.substr(start, at_ - start), false);
    if (!schema.ok()) {
      return Fail(start,
                  absl::StrCat("in this schema: ", schema.status().message()));
    }
    absl::StrAppend(&out_, text_.substr(copied_, start - copied_),
                    schema->text);
    copied_ = at_;
    if (warning_.empty() && !schema->warning.empty()) {
      warning_ = absl::StrCat(Place(text_, start),
                              ": in this schema: ", schema->warning);
    }
    return absl::OkStatus();
  }

  // The engine takes options that it does not know and does nothing about them.
  absl::Status CheckOptions(std::size_t start) {
    static constexpr absl::string_view kOptions[] = {
        "allow_initial_skip", "allow_invalid_utf8", "ignore_once",
        "no_forcing"};
    const absl::string_view text = text_.substr(start, at_ - start);
    const auto options = nlohmann::json::parse(
        text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
    // The engine says what is wrong with other JSON.
    if (!options.is_object()) return absl::OkStatus();
    for (const auto& [name, value] : options.items()) {
      if (std::find(std::begin(kOptions), std::end(kOptions), name) ==
          std::end(kOptions)) {
        return Fail(
            start, absl::StrCat("%llguidance has no option '", name, "', only ",
                                absl::StrJoin(kOptions, ", ")));
      }
    }
    return absl::OkStatus();
  }

  absl::string_view text_;
  std::size_t at_ = 0;
  std::size_t copied_ = 0;  // what of text_ is in out_
  std::string out_;
  std::string warning_;
  int depth_ = 0;
  int parts_ = 0;
  int rules_ = 0;
};

}  // namespace

absl::StatusOr<Grammar> LarkGrammar(absl::string_view text) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");
  FUCINA_RETURN_IF_ERROR(CheckText(text));
  return LarkReader(text).Read();
}

}  // namespace fucina::llguidance
