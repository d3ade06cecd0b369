#include "cli/token_ids.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/text_input.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"

namespace fucina::cli {
namespace {

bool IsSeparator(char c) { return c == ',' || absl::ascii_isspace(c); }

}  // namespace

absl::StatusOr<std::vector<TokenId>> ParseTokenIds(absl::string_view text) {
  std::vector<TokenId> ids;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    TokenId id = 0;
    if (part.empty() || !absl::SimpleAtoi(part, &id) || id < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("invalid token list: expected ids separated by "
                       "commas, found '",
                       Printable(part.substr(0, 32)), "'"));
    }
    ids.push_back(id);
  }
  return ids;
}

absl::StatusOr<std::vector<TokenId>> ReadTokenIds(const std::string& path,
                                                  absl::string_view flag) {
  const std::string where = absl::StrCat(flag, ": '", Printable(path), "'");
  FUCINA_ASSIGN_OR_RETURN(const std::string text,
                          ReadTextFile(path, flag, kMaxIdsBytes));
  std::vector<TokenId> ids;
  int line = 1;
  for (std::size_t at = 0; at < text.size();) {
    if (IsSeparator(text[at])) {
      if (text[at++] == '\n') ++line;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && !IsSeparator(text[end])) ++end;
    const absl::string_view word(text.data() + at, end - at);
    TokenId id = 0;
    if (!absl::SimpleAtoi(word, &id) || id < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, " line ", line, ": expected a token id, found '",
                       Printable(word.substr(0, 32)), "'"));
    }
    ids.push_back(id);
    at = end;
  }
  if (ids.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, " holds no token ids"));
  }
  return ids;
}

}  // namespace fucina::cli
