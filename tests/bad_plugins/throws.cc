// Adds a family, then throws: nothing of it may stay registered.

#include <stdexcept>

#include "fucina/plugin/manifest.h"

namespace {

absl::Status Register(fucina::Registrar& registrar) {
  const absl::Status status = registrar.Add(
      fucina::Family{.name = "thrown",
                     .summary = "never registered",
                     .load = [](const fucina::GgufFile&, fucina::ThreadPool&,
                                const fucina::Options&)
                         -> absl::StatusOr<std::unique_ptr<fucina::Decoder>> {
                       return absl::InternalError("must not be called");
                     }});
  if (status.ok()) throw std::runtime_error("out of cheese");
  return status;
}

}  // namespace

FUCINA_PLUGIN(throws, "1.0.0", "Apache-2.0", &Register)
