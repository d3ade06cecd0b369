#include "qwen3_family.h"

#include <memory>
#include <utility>

#include "fucina/diag/status_macros.h"
#include "fucina/runner/descriptor.h"
#include "fucina/runner/runner.h"

namespace fucina::qwen3 {
namespace {

// Heads are normed before they rotate, there are no biases, and a head's size
// has nothing to do with the hidden size. Files state the rope base; 10 000 is
// what a file without it would get from other engines.
constexpr FamilyRules kDense = {.architecture = "qwen3",
                                .rope_pairing = ops::RopePairing::kHalf,
                                .qk_norm = Presence::kAlways};

// The chosen experts' weights are divided by their sum whatever the file says.
constexpr FamilyRules kExperts = {.architecture = "qwen3moe",
                                  .rope_pairing = ops::RopePairing::kHalf,
                                  .qk_norm = Presence::kAlways,
                                  .feed_forward = FeedForward::kExperts,
                                  .gating = ExpertGating::kSoftmax,
                                  .expert_norm_always = true};

// <|im_end|> ends a turn, <|endoftext|> a document; the others separate files
// in code completion and have no place in a reply.
constexpr absl::string_view kStopTokens[] = {"<|im_end|>", "<|endoftext|>",
                                             "<|fim_pad|>", "<|repo_name|>",
                                             "<|file_sep|>"};

// "<|im_start|>user\nHello": a short, reproducible input for measurements.
constexpr TokenId kDefaultPrompt[] = {151644, 872, 198, 9707};

// The authors' advice for both modes (model cards of the Qwen3 series).
constexpr ChatTraits kChat = {
    .thinking = {.temperature = 0.6F, .top_k = 20, .top_p = 0.95F},
    .non_thinking = {.temperature = 0.7F, .top_k = 20, .top_p = 0.8F},
    .stop_tokens = kStopTokens,
    .think_open = "<think>",
    .think_close = "</think>",
    .default_prompt = kDefaultPrompt};

absl::StatusOr<std::unique_ptr<Decoder>> Load(const FamilyRules& rules,
                                              const GgufFile& file,
                                              ThreadPool& pool,
                                              const Options& options) {
  FUCINA_ASSIGN_OR_RETURN(RunnerOptions runner, ParseRunnerOptions(options));
  FUCINA_ASSIGN_OR_RETURN(Descriptor descriptor,
                          Descriptor::FromGguf(file, rules));
  return Runner::Load(file, std::move(descriptor), pool, runner);
}

absl::StatusOr<std::unique_ptr<Decoder>> LoadDense(const GgufFile& file,
                                                   ThreadPool& pool,
                                                   const Options& options) {
  return Load(kDense, file, pool, options);
}

absl::StatusOr<std::unique_ptr<Decoder>> LoadExperts(const GgufFile& file,
                                                     ThreadPool& pool,
                                                     const Options& options) {
  return Load(kExperts, file, pool, options);
}

}  // namespace

const Family& DenseFamily() {
  static const Family family = {.name = "qwen3",
                                .summary = "Qwen3, dense models",
                                .options = RunnerOptionSpecs(),
                                .chat = &kChat,
                                .load = &LoadDense};
  return family;
}

const Family& ExpertsFamily() {
  static const Family family = {.name = "qwen3moe",
                                .summary = "Qwen3, mixture-of-experts models",
                                .options = RunnerOptionSpecs(),
                                .chat = &kChat,
                                .load = &LoadExperts};
  return family;
}

}  // namespace fucina::qwen3
