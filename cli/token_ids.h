#ifndef FUCINA_CLI_TOKEN_IDS_H_
#define FUCINA_CLI_TOKEN_IDS_H_

// Token ids as a user gives them.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/contract/decoder.h"

namespace fucina::cli {

// "1,2,3". InvalidArgument for anything else.
absl::StatusOr<std::vector<TokenId>> ParseTokenIds(absl::string_view text);

// The ids of a file, separated by commas, blanks or line ends, as --tokenize
// prints them. Errors begin with `flag`: NotFound for a file that cannot be
// read, InvalidArgument, with the line, for a word that is no id, for no id at
// all and for more than 64 MiB.
absl::StatusOr<std::vector<TokenId>> ReadTokenIds(const std::string& path,
                                                  absl::string_view flag);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_TOKEN_IDS_H_
