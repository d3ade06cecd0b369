#ifndef FUCINA_REGISTRY_PIPELINE_TEMPLATE_H_
#define FUCINA_REGISTRY_PIPELINE_TEMPLATE_H_

#include "absl/status/status.h"
#include "registry/pipeline.h"

namespace fucina {

// Fills the chat template of a pipeline whose file is open: the one that its
// configuration names, a built-in one or a text file of at most 1 MiB, else the
// model file's, where having none is no error. Errors begin with who asked for
// what cannot be had, be it the template or its arguments.
absl::Status ReadChatTemplate(Pipeline& pipeline);

}  // namespace fucina

#endif  // FUCINA_REGISTRY_PIPELINE_TEMPLATE_H_
