// A well-behaved plugin with one descriptor of each kind that needs nothing but
// the contract. The registry tests load it; its factories only say who they
// are.

#include <memory>

#include "absl/status/status.h"
#include "fucina/diag/status_macros.h"
#include "fucina/plugin/manifest.h"

namespace {

constexpr fucina::OptionSpec kOptions[] = {
    {.name = "cache_type",
     .type = fucina::OptionType::kString,
     .default_value = "f16",
     .doc = "element type of the cache: f16 or q8_0"},
    {.name = "max_draft",
     .type = fucina::OptionType::kInt,
     .default_value = "8",
     .doc = "longest draft, tokens"},
};

absl::Status Register(fucina::Registrar& registrar) {
  FUCINA_RETURN_IF_ERROR(registrar.Add(fucina::Family{
      .name = "sample",
      .summary = "loads nothing",
      .options = kOptions,
      .load = [](const fucina::GgufFile&, fucina::ThreadPool&,
                 const fucina::Options&)
          -> absl::StatusOr<std::unique_ptr<fucina::Decoder>> {
        return absl::InvalidArgumentError("sample loads nothing");
      }}));
  FUCINA_RETURN_IF_ERROR(registrar.Add(fucina::AdapterSource{
      .name = "sample",
      .summary = "adapts nothing",
      .make = [](const fucina::Decoder&, const fucina::Tokenizer&,
                 fucina::ThreadPool&,
                 const fucina::Options&) -> absl::StatusOr<fucina::AdapterSet> {
        return fucina::AdapterSet{};
      }}));
  FUCINA_RETURN_IF_ERROR(registrar.Add(fucina::DrafterKind{
      .name = "sample",
      .summary = "drafts nothing",
      .options = kOptions,
      .make = [](const fucina::Decoder&, const fucina::Options&)
          -> absl::StatusOr<std::unique_ptr<fucina::Drafter>> {
        return absl::UnimplementedError("sample drafts nothing");
      }}));
  return registrar.Add(fucina::ConstraintKind{
      .name = "sample",
      .summary = "forbids nothing",
      .make = [](const fucina::Tokenizer&, const fucina::Options&)
          -> absl::StatusOr<std::unique_ptr<fucina::Constraint>> {
        return absl::UnimplementedError("sample forbids nothing");
      }});
}

}  // namespace

FUCINA_PLUGIN(sample, "1.2.0", "Apache-2.0", &Register)
