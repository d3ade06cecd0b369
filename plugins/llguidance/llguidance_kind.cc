#include "llguidance_kind.h"

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compile.h"
#include "fucina/diag/log.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "grammar_text.h"
#include "llguidance_constraint.h"

namespace fucina::llguidance {
namespace {

constexpr OptionSpec kOptions[] = {
    {.name = "json_schema",
     .type = OptionType::kString,
     .doc = "JSON schema that the reply satisfies"},
    {.name = "lark",
     .type = OptionType::kString,
     .doc = "Lark grammar that the reply follows"},
    {.name = "regex",
     .type = OptionType::kString,
     .doc = "regular expression that matches the whole reply"},
    {.name = "json_compact",
     .type = OptionType::kBool,
     .default_value = "false",
     .doc = "with json_schema: no white space between the parts"},
    {.name = kStopTokensOption,
     .type = OptionType::kStringList,
     .doc = "token ids that end a reply besides the model's own"},
};

absl::StatusOr<Grammar> GrammarOf(const Options& options) {
  const std::string& schema = options.GetString("json_schema");
  const std::string& lark = options.GetString("lark");
  const std::string& regex = options.GetString("regex");
  const int given = (schema.empty() ? 0 : 1) + (lark.empty() ? 0 : 1) +
                    (regex.empty() ? 0 : 1);
  if (given != 1) {
    return absl::InvalidArgumentError(
        given == 0 ? "no grammar: give json_schema, lark or regex"
                   : "json_schema, lark and regex are mutually exclusive");
  }
  const bool compact = options.GetBool("json_compact");
  if (compact && schema.empty()) {
    return absl::InvalidArgumentError(
        "json_compact goes with json_schema only");
  }
  const auto named =
      [](GrammarKind kind,
         absl::StatusOr<Grammar> grammar) -> absl::StatusOr<Grammar> {
    if (grammar.ok()) return grammar;
    return absl::InvalidArgumentError(
        absl::StrCat("invalid ", Name(kind), ": ", grammar.status().message()));
  };
  if (!schema.empty()) {
    return named(GrammarKind::kJsonSchema, JsonSchemaGrammar(schema, compact));
  }
  return lark.empty() ? named(GrammarKind::kRegex, RegexGrammar(regex))
                      : named(GrammarKind::kLark, LarkGrammar(lark));
}

absl::StatusOr<std::vector<TokenId>> StopTokens(const Tokenizer& tokenizer,
                                                const Options& options) {
  const auto own = tokenizer.stop_tokens();
  std::vector<TokenId> tokens(own.begin(), own.end());
  for (const std::string& text : options.GetStringList(kStopTokensOption)) {
    TokenId token = 0;
    if (!absl::SimpleAtoi(text, &token)) {
      return absl::InvalidArgumentError(
          absl::StrCat(kStopTokensOption, ": expected token ids, found '",
                       Printable(text), "'"));
    }
    if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) {
      tokens.push_back(token);
    }
  }
  return tokens;
}

void Warn(GrammarKind kind, absl::string_view what) {
  FUCINA_LOG(WARNING) << Name(kind) << ": " << Printable(what);
}

absl::StatusOr<std::unique_ptr<Constraint>> Make(const Tokenizer& tokenizer,
                                                 const Options& options) {
  FUCINA_ASSIGN_OR_RETURN(const Grammar grammar, GrammarOf(options));
  FUCINA_ASSIGN_OR_RETURN(const std::vector<TokenId> stop_tokens,
                          StopTokens(tokenizer, options));
  FUCINA_ASSIGN_OR_RETURN(auto engine,
                          EngineTokenizer::Make(tokenizer, stop_tokens));
  FUCINA_ASSIGN_OR_RETURN(Compiled compiled, Compile(engine, grammar));
  if (!grammar.warning.empty()) Warn(grammar.kind, grammar.warning);
  // The engine's own, one a line.
  for (absl::string_view line : absl::StrSplit(compiled.warning, '\n')) {
    absl::ConsumePrefix(&line, "WARNING: ");
    if (!line.empty()) Warn(grammar.kind, line);
  }
  return std::make_unique<LlguidanceConstraint>(std::move(engine),
                                                std::move(compiled.matcher));
}

}  // namespace

const ConstraintKind& LlguidanceKind() {
  static const std::string summary = absl::StrCat(
      "replies that satisfy a JSON schema, grammar or expression, "
      "by ",
      EngineVersion());
  static const ConstraintKind kind = {.name = "llguidance",
                                      .summary = summary,
                                      .options = kOptions,
                                      .make = &Make};
  return kind;
}

}  // namespace fucina::llguidance
