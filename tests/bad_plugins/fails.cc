// Its register function adds badly declared descriptors, swallows the refusals
// and reports success.

#include "fucina/plugin/manifest.h"

namespace {

constexpr fucina::OptionSpec kBadDefault[] = {
    {.name = "depth",
     .type = fucina::OptionType::kInt,
     .default_value = "deep",
     .doc = "a number"},
};

absl::Status Register(fucina::Registrar& registrar) {
  const absl::Status ignored = registrar.Add(fucina::DrafterKind{
      .name = "fails",
      .summary = "badly declared",
      .options = kBadDefault,
      .make = [](const fucina::Decoder&, const fucina::Options&)
          -> absl::StatusOr<std::unique_ptr<fucina::Drafter>> {
        return absl::InternalError("must not be called");
      }});
  return ignored.ok() ? absl::InternalError("was accepted") : absl::OkStatus();
}

}  // namespace

FUCINA_PLUGIN(fails, "1.0.0", "Apache-2.0", &Register)
