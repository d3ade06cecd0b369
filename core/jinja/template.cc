#include "fucina/jinja/template.h"

#include <algorithm>
#include <utility>

#include "core/jinja/ast.h"
#include "core/jinja/evaluator.h"
#include "core/jinja/parser.h"
#include "fucina/diag/check.h"
#include "fucina/diag/status_macros.h"

namespace fucina::jinja {

struct Template::Impl {
  ParsedTemplate parsed;
};

Template::Template(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Template::~Template() = default;

absl::StatusOr<std::unique_ptr<Template>> Template::Parse(
    absl::string_view name, absl::string_view source,
    const ParseOptions& options) {
  FUCINA_ASSIGN_OR_RETURN(ParsedTemplate parsed,
                          ParseTemplate(name, source, options));
  auto impl = std::make_unique<Impl>();
  impl->parsed = std::move(parsed);
  return std::unique_ptr<Template>(new Template(std::move(impl)));
}

absl::StatusOr<std::vector<Segment>> Template::Render(
    const Value& context, const RenderOptions& options) const {
  FUCINA_CHECK(context.kind() == Value::Kind::kMap);
  return Evaluator(impl_->parsed, options).Run(context);
}

std::span<const std::string> Template::variables() const {
  return impl_->parsed.variables;
}

bool Template::Reads(absl::string_view variable) const {
  return std::binary_search(
      impl_->parsed.variables.begin(), impl_->parsed.variables.end(), variable,
      [](const auto& a, const auto& b) {
        return absl::string_view(a) < absl::string_view(b);
      });
}

}  // namespace fucina::jinja
