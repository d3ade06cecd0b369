#ifndef FUCINA_REGISTRY_DRAFTER_REFERENCES_H_
#define FUCINA_REGISTRY_DRAFTER_REFERENCES_H_

// The documents that a drafter drafts from: text files of the user.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "registry/pipeline.h"

namespace fucina {

// Whether a document can be read, as far as that shows before weights are
// loaded. NotFound or InvalidArgument, naming the file.
absl::Status CheckReference(const std::string& path);

// The whole text. Errors of CheckReference, or that it cannot be read.
absl::StatusOr<std::string> ReadReference(const std::string& path);

// Whether one drafter's indexes of the documents that were read fit into memory
// now. ResourceExhausted with both figures when they do not.
absl::Status CheckReferenceMemory(const Pipeline& pipeline);

}  // namespace fucina

#endif  // FUCINA_REGISTRY_DRAFTER_REFERENCES_H_
