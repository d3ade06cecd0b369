#include "cli/grammar_flags.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/text_input.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "registry/config_keys.h"

namespace fucina::cli {
namespace {

// The one place that knows a constraint by name: flags of its own are what
// users expect.
constexpr char kKind[] = "llguidance";
constexpr std::int64_t kMaxFileBytes = std::int64_t{16} << 20;

absl::StatusOr<std::string> ReadGrammar(absl::string_view flag,
                                        const std::string& value) {
  if (!absl::StartsWith(value, "@")) return value;
  const std::string path = value.substr(1);
  const auto fail = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": '", Printable(path), "' ", why));
  };
  if (path.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": expected a path after '@'"));
  }
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return fail(absl::StrCat("cannot be read: ", std::strerror(errno)));
  }
  if (!S_ISREG(info.st_mode)) return fail("is not a regular file");
  if (info.st_size > kMaxFileBytes) {
    return fail(absl::StrCat("has ", info.st_size, " bytes, at most ",
                             kMaxFileBytes, " are read"));
  }
  return ReadTextFile(path, flag, kMaxFileBytes);
}

}  // namespace

absl::Status FillConstraint(const GrammarFlags& flags, PipelineConfig& config) {
  struct Source {
    const char* flag;
    const char* option;
    const std::optional<std::string>& value;
    bool may_be_file;
  };
  const Source sources[] = {
      {"--json-schema", "json_schema", flags.json_schema, true},
      {"--lark", "lark", flags.lark, true},
      {"--regex", "regex", flags.regex, false},
  };
  const auto set = [&config](absl::string_view key, absl::string_view text,
                             absl::string_view flag) {
    Origin origin;
    origin.kind = Origin::Kind::kFlag;
    origin.place = std::string(flag);
    return Set(config, key, text, origin);
  };
  int given = 0;
  for (const Source& source : sources) {
    if (!source.value.has_value()) continue;
    if (++given > 1) {
      return absl::InvalidArgumentError(
          "--json-schema, --lark and --regex are mutually exclusive");
    }
    std::string text = *source.value;
    if (source.may_be_file) {
      FUCINA_ASSIGN_OR_RETURN(text, ReadGrammar(source.flag, text));
    }
    if (text.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(source.flag, ": expected a grammar, found nothing"));
    }
    config.constraint = {};
    FUCINA_RETURN_IF_ERROR(set("constraint.kind", kKind, source.flag));
    FUCINA_RETURN_IF_ERROR(set(
        absl::StrCat("constraint.options.", source.option), text, source.flag));
  }
  if (!flags.json_compact) return absl::OkStatus();
  if (config.constraint.options.count("json_schema") == 0) {
    return absl::InvalidArgumentError(
        "--json-compact goes with --json-schema only");
  }
  return set("constraint.options.json_compact", "true", "--json-compact");
}

}  // namespace fucina::cli
