// A plugin whose tag names another core and another standard library.

#include "fucina/plugin/manifest.h"

#undef FUCINA_ABI_TAG
#define FUCINA_ABI_TAG                                   \
  "core=0.99;revision=" FUCINA_REVISION                  \
  ";stdlib=libstdc++-debug,cxx11abi1"                    \
  ";cxx=" FUCINA_ABI_STRING_(                            \
      __cplusplus) ";abseil=" FUCINA_ABI_ABSEIL_RELEASE_ \
                   "," FUCINA_ABI_STRING_(ABSL_OPTION_INLINE_NAMESPACE_NAME)

namespace {

absl::Status Register(fucina::Registrar&) {
  return absl::InternalError("must not be called");
}

}  // namespace

FUCINA_PLUGIN(wrong_core, "1.2.0", "Apache-2.0", &Register)
