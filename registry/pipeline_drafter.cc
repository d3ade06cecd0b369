// The drafter of one sequence.

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "registry/drafter_references.h"
#include "registry/pipeline.h"
#include "registry/plugin_calls.h"

namespace fucina {

absl::StatusOr<std::unique_ptr<Drafter>> MakeDrafter(const Pipeline& pipeline) {
  const Registered<DrafterKind>* kind = pipeline.drafter_kind;
  if (kind == nullptr) return std::unique_ptr<Drafter>();
  const std::string& blame = pipeline.config.Blame("drafter.kind");
  if (!pipeline.decoder->info().can_truncate) {
    return absl::UnimplementedError(
        absl::StrCat(blame, "family '", pipeline.family->descriptor.name,
                     "' cannot take back tokens, which drafting needs"));
  }
  const std::string what =
      absl::StrCat("drafter '", kind->descriptor.name, "'");
  auto drafter = Guarded(*kind->plugin, what, [&] {
    return kind->descriptor.make(*pipeline.decoder, pipeline.drafter_options);
  });
  if (!drafter.ok()) return Prefixed(blame, drafter.status());
  if (*drafter == nullptr) {
    return BrokeContract(*kind->plugin, "it made no drafter");
  }
  FUCINA_RETURN_IF_ERROR(CheckReferenceMemory(pipeline));
  for (const auto& [file, tokens] : pipeline.drafter_references) {
    const auto added = Guarded(
        *kind->plugin, what, [&reference = tokens, &drafter]() -> absl::Status {
          return (*drafter)->AddReference(reference);
        });
    if (absl::IsUnimplemented(added)) {
      // A wrong choice of the user, like an unknown name.
      return absl::InvalidArgumentError(
          absl::StrCat(pipeline.config.Blame("drafter.references"), what, ": ",
                       added.message()));
    }
    if (!added.ok()) {
      return Prefixed(absl::StrCat(pipeline.config.Blame("drafter.references"),
                                   "'", Printable(file), "': "),
                      added);
    }
  }
  return drafter;
}

}  // namespace fucina
