#ifndef FUCINA_PLUGIN_ABI_H_
#define FUCINA_PLUGIN_ABI_H_

// What must be equal on both sides of the plugin boundary, measured by the
// compiler on each side: a tag made of predefined macros, and the size and
// alignment of every type that crosses by value, by reference or by
// inheritance. Compared when a plugin is loaded; see docs/plugins.md.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/base/config.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/contract/adapter.h"
#include "fucina/contract/constraint.h"
#include "fucina/contract/decoder.h"
#include "fucina/contract/drafter.h"
#include "fucina/contract/options.h"
#include "fucina/contract/phase_times.h"
#include "fucina/gguf/gguf_error.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/gguf/gguf_writer.h"
#include "fucina/model/kv_cache.h"
#include "fucina/model/weights.h"
#include "fucina/ops/attention.h"
#include "fucina/ops/context.h"
#include "fucina/ops/experts.h"
#include "fucina/ops/kv_rows.h"
#include "fucina/ops/linear.h"
#include "fucina/ops/pack_plan.h"
#include "fucina/ops/rope.h"
#include "fucina/ops/routing.h"
#include "fucina/parallel/flush_denormals.h"
#include "fucina/parallel/thread_plan.h"
#include "fucina/parallel/thread_pool.h"
#include "fucina/plugin/registrar.h"
#include "fucina/runner/descriptor.h"
#include "fucina/runner/runner.h"
#include "fucina/tensor/buffer.h"
#include "fucina/tensor/dtype.h"
#include "fucina/tensor/low_rank.h"
#include "fucina/tensor/tensor.h"
#include "fucina/text/tokenizer.h"
#include "fucina/version.h"

#define FUCINA_ABI_STRING_INNER_(x) #x
#define FUCINA_ABI_STRING_(x) FUCINA_ABI_STRING_INNER_(x)

// stdlib: the debug mode of libstdc++ changes container layouts, the string
// ABI switch changes std::string.
#if defined(_LIBCPP_VERSION)
#define FUCINA_ABI_STDLIB_ "libc++,abi" FUCINA_ABI_STRING_(_LIBCPP_ABI_VERSION)
#elif defined(_GLIBCXX_DEBUG)
#define FUCINA_ABI_STDLIB_ \
  "libstdc++-debug,cxx11abi" FUCINA_ABI_STRING_(_GLIBCXX_USE_CXX11_ABI)
#else
#define FUCINA_ABI_STDLIB_ \
  "libstdc++,cxx11abi" FUCINA_ABI_STRING_(_GLIBCXX_USE_CXX11_ABI)
#endif

// abseil: release and inline namespace; distributions patch the options that
// decide what absl::string_view is and mark that in the namespace.
#ifdef ABSL_LTS_RELEASE_VERSION
#define FUCINA_ABI_ABSEIL_RELEASE_ FUCINA_ABI_STRING_(ABSL_LTS_RELEASE_VERSION)
#else
#define FUCINA_ABI_ABSEIL_RELEASE_ "head"
#endif

// "key=value;key=value". core is major.minor, the breaking number below 1.0;
// revision, empty in a release, makes development snapshots match exactly and
// only exactly. The compiler is shown elsewhere, not compared: GCC and Clang
// share the C++ ABI, and what differs in practice is the library.
#define FUCINA_ABI_TAG                                            \
  "core=" FUCINA_VERSION_MAJOR_MINOR ";revision=" FUCINA_REVISION \
  ";stdlib=" FUCINA_ABI_STDLIB_ ";cxx=" FUCINA_ABI_STRING_(       \
      __cplusplus) ";abseil=" FUCINA_ABI_ABSEIL_RELEASE_          \
                   "," FUCINA_ABI_STRING_(ABSL_OPTION_INLINE_NAMESPACE_NAME)

namespace fucina {

// Size and alignment of one type as the including file's compiler sees them.
struct LayoutEntry {
  const char* type;
  std::uint32_t size;
  std::uint32_t alignment;
};

#define FUCINA_LAYOUT_AS_(name, ...)                       \
  LayoutEntry {                                            \
    name, static_cast<std::uint32_t>(sizeof(__VA_ARGS__)), \
        static_cast<std::uint32_t>(alignof(__VA_ARGS__))   \
  }
#define FUCINA_LAYOUT_(type) FUCINA_LAYOUT_AS_(#type, type)

// Every type of the boundary: whatever the headers that a plugin may include
// define. A test fails when one is missing here. Internal linkage on purpose:
// each side measures for itself, and no linker may merge the two.
constexpr LayoutEntry kLayoutTable[] = {
    // language libraries
    FUCINA_LAYOUT_(std::string),
    FUCINA_LAYOUT_AS_("std::vector", std::vector<int>),
    FUCINA_LAYOUT_AS_("std::span", std::span<const int>),
    FUCINA_LAYOUT_AS_("std::map", std::map<std::string, int>),
    FUCINA_LAYOUT_AS_("std::optional", std::optional<std::string>),
    FUCINA_LAYOUT_AS_("std::unique_ptr", std::unique_ptr<int>),
    FUCINA_LAYOUT_(absl::Status),
    FUCINA_LAYOUT_(absl::string_view),
    FUCINA_LAYOUT_AS_("absl::StatusOr", absl::StatusOr<std::string>),
    FUCINA_LAYOUT_AS_("absl::FunctionRef", absl::FunctionRef<void()>),
    // tensor
    FUCINA_LAYOUT_(DType),
    FUCINA_LAYOUT_(DTypeUse),
    FUCINA_LAYOUT_(DTypeTraits),
    FUCINA_LAYOUT_(UnsupportedDType),
    FUCINA_LAYOUT_(Tensor),
    FUCINA_LAYOUT_(Buffer),
    FUCINA_LAYOUT_(LowRank),
    // parallel
    FUCINA_LAYOUT_(ThreadPool),
    FUCINA_LAYOUT_(ThreadPlan),
    FUCINA_LAYOUT_(ThreadPlanSources),
    FUCINA_LAYOUT_(ScopedFlushDenormals),
    // gguf
    FUCINA_LAYOUT_(GgufError),
    FUCINA_LAYOUT_(GgufType),
    FUCINA_LAYOUT_(GgufValue),
    FUCINA_LAYOUT_(GgufTensorInfo),
    FUCINA_LAYOUT_(GgufFile),
    FUCINA_LAYOUT_(GgufWriter),
    // contract
    FUCINA_LAYOUT_(LinearSite),
    FUCINA_LAYOUT_(SiteShape),
    FUCINA_LAYOUT_(AdapterSet),
    FUCINA_LAYOUT_(DecoderInfo),
    FUCINA_LAYOUT_(DecodeState),
    FUCINA_LAYOUT_(TapRows),
    FUCINA_LAYOUT_(LayerTap),
    FUCINA_LAYOUT_(LogitRows),
    FUCINA_LAYOUT_(SequenceStep),
    FUCINA_LAYOUT_(Decoder),
    FUCINA_LAYOUT_(Drafter),
    FUCINA_LAYOUT_(Constraint),
    FUCINA_LAYOUT_(OptionType),
    FUCINA_LAYOUT_(OptionSpec),
    FUCINA_LAYOUT_(OptionValue),
    FUCINA_LAYOUT_(Options),
    FUCINA_LAYOUT_(Phase),
    FUCINA_LAYOUT_(PhaseTimes),
    FUCINA_LAYOUT_(PhaseReporter),
    // ops
    FUCINA_LAYOUT_(ops::Context),
    FUCINA_LAYOUT_(ops::AttentionItem),
    FUCINA_LAYOUT_(ops::AttentionScratch),
    FUCINA_LAYOUT_(ops::ExpertWeights),
    FUCINA_LAYOUT_(ops::PackedExperts),
    FUCINA_LAYOUT_(ops::ExpertChoice),
    FUCINA_LAYOUT_(ops::ExpertScratch),
    FUCINA_LAYOUT_(ops::KvShape),
    FUCINA_LAYOUT_(ops::KvRows),
    FUCINA_LAYOUT_(ops::LinearPart),
    FUCINA_LAYOUT_(ops::PackPlan),
    FUCINA_LAYOUT_(ops::PackedLinear),
    FUCINA_LAYOUT_(ops::ActivationRows),
    FUCINA_LAYOUT_(ops::LinearJob),
    FUCINA_LAYOUT_(ops::RopePairing),
    FUCINA_LAYOUT_(ops::RopeScalingKind),
    FUCINA_LAYOUT_(ops::RopeScaling),
    FUCINA_LAYOUT_(ops::RopeSpec),
    FUCINA_LAYOUT_(ops::NormedHeads),
    FUCINA_LAYOUT_(ops::RopeTable),
    FUCINA_LAYOUT_(ops::RoutingGate),
    FUCINA_LAYOUT_(ops::RoutingRule),
    // model
    FUCINA_LAYOUT_(KvGeometry),
    FUCINA_LAYOUT_(KvCache),
    FUCINA_LAYOUT_(Weights),
    // runner
    FUCINA_LAYOUT_(BlockStyle),
    FUCINA_LAYOUT_(ExpertGating),
    FUCINA_LAYOUT_(Presence),
    FUCINA_LAYOUT_(FeedForward),
    FUCINA_LAYOUT_(HeadDimDefault),
    FUCINA_LAYOUT_(FamilyRules),
    FUCINA_LAYOUT_(Descriptor),
    FUCINA_LAYOUT_(RunnerOptions),
    FUCINA_LAYOUT_(Runner),
    // text
    FUCINA_LAYOUT_(TokenClass),
    FUCINA_LAYOUT_(ParseSpecial),
    FUCINA_LAYOUT_(EncodeOptions),
    FUCINA_LAYOUT_(TextSegment),
    FUCINA_LAYOUT_(DecodeOptions),
    FUCINA_LAYOUT_(TokenizerOptions),
    FUCINA_LAYOUT_(SpecialTokens),
    FUCINA_LAYOUT_(Tokenizer),
    // plugin
    FUCINA_LAYOUT_(SamplingDefaults),
    FUCINA_LAYOUT_(ChatTraits),
    FUCINA_LAYOUT_(Family),
    FUCINA_LAYOUT_(AdapterSource),
    FUCINA_LAYOUT_(DrafterKind),
    FUCINA_LAYOUT_(ConstraintKind),
    FUCINA_LAYOUT_(Registrar),
};

}  // namespace fucina

#endif  // FUCINA_PLUGIN_ABI_H_
