#include "llama_family.h"

#include <memory>
#include <utility>

#include "fucina/diag/status_macros.h"
#include "fucina/runner/descriptor.h"
#include "fucina/runner/runner.h"

namespace llama_family {
namespace {

// What the family knows about its models beyond their metadata. Everything not
// said here is as in fucina/runner/descriptor.h.
constexpr fucina::FamilyRules kLlama = {
    .architecture = "llama",
    // Converters permute the rows of q and k so that neighbours rotate.
    .rope_pairing = fucina::ops::RopePairing::kInterleaved,
    .rope_theta_default_warns = false,  // Llama 1 and 2 files leave it out
    .rope_factors = fucina::Presence::kByTensor,  // Llama 3.1 and later
    .head_dim_default = fucina::HeadDimDefault::kHiddenOverHeads};

constexpr fucina::FamilyRules kQwen2 = {
    .architecture = "qwen2",
    .rope_pairing = fucina::ops::RopePairing::kHalf,
    .head_dim_default = fucina::HeadDimDefault::kHiddenOverHeads,
    .qkv_bias = fucina::Presence::kAlways};

// What a conversation should know.
constexpr absl::string_view kLlamaStops[] = {"<|eot_id|>", "<|eom_id|>",
                                             "<|end_of_text|>"};
constexpr fucina::ChatTraits kLlamaChat = {
    .thinking = {.temperature = 0.6F, .top_p = 0.9F},
    .non_thinking = {.temperature = 0.6F, .top_p = 0.9F},
    .stop_tokens = kLlamaStops};

constexpr absl::string_view kQwen2Stops[] = {"<|im_end|>", "<|endoftext|>"};
constexpr fucina::ChatTraits kQwen2Chat = {
    .thinking = {.temperature = 0.7F, .top_k = 20, .top_p = 0.8F},
    .non_thinking = {.temperature = 0.7F, .top_k = 20, .top_p = 0.8F},
    .stop_tokens = kQwen2Stops};

// One function per family: a model file in, a decoder out.
template <const fucina::FamilyRules& rules>
absl::StatusOr<std::unique_ptr<fucina::Decoder>> Load(
    const fucina::GgufFile& file, fucina::ThreadPool& pool,
    const fucina::Options& options) {
  FUCINA_ASSIGN_OR_RETURN(fucina::RunnerOptions runner,
                          fucina::ParseRunnerOptions(options));
  FUCINA_ASSIGN_OR_RETURN(fucina::Descriptor descriptor,
                          fucina::Descriptor::FromGguf(file, rules));
  return fucina::Runner::Load(file, std::move(descriptor), pool, runner);
}

}  // namespace

const fucina::Family& Llama() {
  static const fucina::Family family = {.name = "llama",
                                        .summary = "Llama 1 to 3",
                                        .options = fucina::RunnerOptionSpecs(),
                                        .chat = &kLlamaChat,
                                        .load = &Load<kLlama>};
  return family;
}

const fucina::Family& Qwen2() {
  static const fucina::Family family = {
      .name = "qwen2",
      .summary = "Qwen2 and Qwen2.5, dense models",
      .options = fucina::RunnerOptionSpecs(),
      .chat = &kQwen2Chat,
      .load = &Load<kQwen2>};
  return family;
}

}  // namespace llama_family
