#include "glm4moe_family.h"

#include <memory>
#include <utility>

#include "fucina/diag/status_macros.h"
#include "fucina/runner/descriptor.h"
#include "fucina/runner/runner.h"
#include "glm4moe_decoder.h"

namespace fucina::glm4moe {
namespace {

// Half of each head rotates (the file says how much). GLM-4.5 norms its heads
// and Air does not; the norm before the feed-forward bears the name of the one
// behind attention. A bias decides which experts are chosen, never how much
// they count, and some writers drop the end of its name.
constexpr FamilyRules kRules = {.architecture = "glm4moe",
                                .rope_pairing = ops::RopePairing::kHalf,
                                .qk_norm = Presence::kByTensor,
                                .qkv_bias = Presence::kAlways,
                                .ffn_norm = "post_attention_norm",
                                .feed_forward = FeedForward::kExperts,
                                .gating = ExpertGating::kSigmoid,
                                .router_bias = Presence::kByTensor,
                                .nextn_key = "nextn_predict_layers"};

// There is no end mark: a reply ends where the next role begins.
constexpr absl::string_view kStopTokens[] = {"<|endoftext|>", "<|user|>",
                                             "<|observation|>"};

// Every text that the model was trained on began so.
constexpr absl::string_view kCompletionPrefix[] = {"[gMASK]", "<sop>"};

// The authors' advice, for both modes (model card of GLM-4.5).
constexpr ChatTraits kChat = {
    .thinking = {.temperature = 0.6F, .top_k = 0, .top_p = 0.95F},
    .non_thinking = {.temperature = 0.6F, .top_k = 0, .top_p = 0.95F},
    .stop_tokens = kStopTokens,
    .think_open = "<think>",
    .think_close = "</think>",
    .completion_prefix = kCompletionPrefix};

absl::StatusOr<std::unique_ptr<Decoder>> Load(const GgufFile& file,
                                              ThreadPool& pool,
                                              const Options& options) {
  FUCINA_ASSIGN_OR_RETURN(RunnerOptions runner, ParseRunnerOptions(options));
  FUCINA_ASSIGN_OR_RETURN(Descriptor descriptor,
                          Descriptor::FromGguf(file, kRules));
  return Glm4MoeDecoder::Load(file, std::move(descriptor), pool, runner);
}

}  // namespace

const Family& Glm4MoeFamily() {
  static const Family family = {.name = "glm4moe",
                                .summary = "GLM-4.5, GLM-4.5-Air, GLM-4.6",
                                .options = RunnerOptionSpecs(),
                                .chat = &kChat,
                                .load = &Load};
  return family;
}

}  // namespace fucina::glm4moe
