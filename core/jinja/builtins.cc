#include "core/jinja/builtins.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/jinja/python.h"
#include "fucina/diag/status_macros.h"

namespace fucina::jinja {

absl::StatusOr<std::vector<Var>> BindArguments(absl::string_view what,
                                               absl::string_view parameters,
                                               int required,
                                               Arguments arguments,
                                               std::size_t skip) {
  const std::vector<absl::string_view> names =
      absl::StrSplit(parameters, ',', absl::SkipEmpty());
  std::vector<Var> out(skip + names.size(), Var::Absent());
  if (arguments.positional.size() > out.size()) {
    return TypeError(absl::StrCat(what, " takes at most ", names.size(),
                                  " arguments, found ",
                                  arguments.positional.size() - skip));
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    out[i] = std::move(arguments.positional[i]);
  }
  for (auto& [name, value] : arguments.keywords) {
    std::size_t at = 0;
    while (at < names.size() && names[at] != name) ++at;
    if (at == names.size()) {
      return TypeError(absl::StrCat(what, " takes no argument '", name, "'"));
    }
    if (!out[skip + at].is_absent()) {
      return TypeError(absl::StrCat(what, " got argument '", name, "' twice"));
    }
    out[skip + at] = std::move(value);
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(required); ++i) {
    if (!out[skip + i].is_absent()) continue;
    absl::string_view name = names[i];
    if (name[0] == '-') name.remove_prefix(1);
    return TypeError(absl::StrCat(what, " needs an argument '", name, "'"));
  }
  return out;
}

absl::StatusOr<Var> CallBuiltin(Evaluator& evaluator, absl::string_view what,
                                const Builtin& builtin, Arguments arguments) {
  if (builtin.parameters != "...") {
    FUCINA_ASSIGN_OR_RETURN(
        arguments.positional,
        BindArguments(absl::StrCat(what, " '", builtin.name, "'"),
                      builtin.parameters, builtin.required,
                      std::move(arguments), 1));
  }
  return builtin.call(evaluator, arguments);
}

}  // namespace fucina::jinja
