#ifndef FUCINA_REGISTRY_PIPELINE_H_
#define FUCINA_REGISTRY_PIPELINE_H_

// From a configuration to living objects: file, tokenizer, template, decoder,
// adapter, drafter, constraint. A struct of owned parts in construction order,
// destroyed in reverse, with no behaviour beyond making it.
//
// The const parts may be shared between threads; drafters and constraints are
// made per sequence.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fucina/contract/adapter.h"
#include "fucina/contract/constraint.h"
#include "fucina/contract/decoder.h"
#include "fucina/contract/drafter.h"
#include "fucina/decode/sampler.h"
#include "fucina/decode/speculation_gate.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/parallel/thread_pool.h"
#include "fucina/text/chat_template.h"
#include "fucina/text/tokenizer.h"
#include "registry/memory_plan.h"
#include "registry/pipeline_config.h"
#include "registry/registry.h"

namespace fucina {

// How far to go: what a mode needs is what it must wait for.
enum class PipelineDepth {
  kFile,     // the model file, no plugins, no weights: --info, --tokenize
  kGrammar,  // plugins and the constraint, no weights: --check-grammar
  kDecoder,  // everything
};

// The real plan, for the one line at start.
struct StartupReport {
  std::string model;         // printable
  std::string architecture;  // of the file
  std::string plugin;        // "libfucina_qwen3.so 1.0.0"
  // Bytes of weights by element type, most first.
  std::vector<std::pair<std::string, std::int64_t>> weight_types;
  std::int64_t weight_bytes = 0;           // resident
  std::int64_t state_bytes_per_token = 0;  // of one sequence
  int context = 0;                         // tokens, of one sequence
  int trained_context = 0;
  int num_threads = 0;
  std::string threads_reason;
  std::string kernel_level;   // empty when the decoder does not say
  std::string chat_template;  // its name, or why there is none
  SamplerConfig sampler;      // of a conversation
  std::string sampler_source;
  std::string constraint;         // its kind, empty without one
  double constraint_seconds = 0;  // to make it
};

// "qwen3 by libfucina_qwen3.so 1.0.0 | q4_k 310 MiB, … | …": one line.
std::string StartupLine(const StartupReport& report);

struct Pipeline {
  PipelineConfig config;
  StartupReport report;
  // Facts to tell once on stderr; not errors.
  std::vector<std::string> notes;

  std::unique_ptr<Registry> registry;
  std::unique_ptr<GgufFile> file;
  // Null when the file has none or one we cannot use; the status says why, and
  // modes that need text fail with it.
  std::unique_ptr<Tokenizer> tokenizer;
  absl::Status tokenizer_status;
  // The same for conversations.
  std::unique_ptr<ChatTemplate> chat_template;
  absl::Status chat_template_status;
  std::unique_ptr<ThreadPool> pool;
  const Registered<Family>* family = nullptr;  // of `registry`
  std::unique_ptr<Decoder> decoder;
  std::optional<AdapterSet> adapter;
  // Compiled once; each sequence takes a Clone. Null for none.
  std::unique_ptr<Constraint> constraint;
  const Registered<DrafterKind>* drafter_kind = nullptr;  // null: no drafting
  Options drafter_options;
  SpeculationGateOptions gate;  // of every sequence that drafts
  // Documents for the drafter, as tokens, and the files they come from. Each
  // drafter has its own index of them, for which memory is asked anew.
  std::vector<std::pair<std::string, std::vector<TokenId>>> drafter_references;
  MemorySources memory;

  int context() const { return report.context; }
  // The family's traits, or the defaults of the struct.
  const ChatTraits& chat_traits() const;
};

// The plugins of `config`: those it lists, or all that are found.
absl::StatusOr<std::unique_ptr<Registry>> LoadPlugins(
    const PipelineConfig& config);

// Builds a pipeline. Every name and option is checked before any weight is
// loaded, and memory before that; the caller's registry, when given, is used
// instead of LoadPlugins(config).
//
// NotFound and InvalidArgument begin with who set the value (file and line, or
// flag); ResourceExhausted names the bytes needed and available; Internal names
// a plugin that threw or broke the contract; errors of the parts are passed on.
absl::StatusOr<std::unique_ptr<Pipeline>> BuildPipeline(
    PipelineConfig config, PipelineDepth depth,
    std::unique_ptr<Registry> registry = nullptr,
    const MemorySources& memory = {});

// Whether an error of BuildPipeline is about the model file and not about the
// configuration: the program exits with 3 instead of 2.
bool BlamesModelFile(const absl::Status& status);

// Puts the plugin's file in front of an error that blames the pipeline's
// decoder while it runs; other statuses as they are.
absl::Status NamePlugin(const Pipeline& pipeline, const absl::Status& status);

// A new drafter for one sequence, with the documents of the configuration; null
// when the pipeline drafts with nobody. ResourceExhausted when the indexes of
// the documents do not fit. Errors begin with who named the drafter or the
// document.
absl::StatusOr<std::unique_ptr<Drafter>> MakeDrafter(const Pipeline& pipeline);

// Sampling of a conversation: what the user set, over the family's advice for
// the mode, over the model file's, over temperature 0.7 and top-p 0.95.
// InvalidArgument for advice in the file that is out of range.
absl::StatusOr<SamplerConfig> ChatSampler(const PipelineConfig& config,
                                          const ChatTraits* traits,
                                          const GgufFile& file, bool thinking,
                                          std::string* source);

// Sampling of a raw completion: what the user set, over greedy.
SamplerConfig CompletionSampler(const PipelineConfig& config);

// Whether a reply of this pipeline may begin with thinking.
bool MayThink(const Pipeline& pipeline);

}  // namespace fucina

#endif  // FUCINA_REGISTRY_PIPELINE_H_
