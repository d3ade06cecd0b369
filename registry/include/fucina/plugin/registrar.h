#ifndef FUCINA_PLUGIN_REGISTRAR_H_
#define FUCINA_PLUGIN_REGISTRAR_H_

// What a plugin offers, as data: four kinds of descriptors and the face of the
// registry that takes them. A factory is a name, a sentence, its options and
// one function pointer; there is no factory class.
//
// Every view, span and pointer in a descriptor refers to static storage in the
// plugin. That is safe because plugins are never unloaded.
// See docs/plugins.md.

#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/contract/adapter.h"
#include "fucina/contract/constraint.h"
#include "fucina/contract/decoder.h"
#include "fucina/contract/drafter.h"
#include "fucina/contract/options.h"

namespace fucina {

class GgufFile;
class ThreadPool;
class Tokenizer;

// Options with a meaning that all families share. A family that can honour one
// declares an OptionSpec of this name; asking a family that does not declare it
// for anything but the default is refused, never ignored.
//
// Element type of the key/value cache, a text: "f16" (default) or "q8_0".
inline constexpr absl::string_view kCacheTypeOption = "cache_type";
//
// The same for constraints. Token ids that end a reply besides the tokenizer's
// own, a list of texts: a constraint that declares it gets the conversation's.
inline constexpr absl::string_view kStopTokensOption = "stop_tokens";

// Sampling values that a family's authors advise. Ranges as in the pipeline
// file: temperature >= 0 (0 is greedy), top_k >= 0 (0 is off), top_p and min_p
// in [0, 1] (1 and 0 are off).
struct SamplingDefaults {
  float temperature = 0.7F;
  int top_k = 0;
  float top_p = 0.95F;
  float min_p = 0.0F;
};

// What a conversation must know about a family and no GGUF file says reliably.
// Plain data with static storage; tokens are given by their spelling because
// ids differ between files.
struct ChatTraits {
  SamplingDefaults thinking = {};      // used while the model may think
  SamplingDefaults non_thinking = {};  // used with thinking switched off

  // Ends a reply, in addition to the file's own end tokens; spellings that a
  // file lacks are skipped.
  std::span<const absl::string_view> stop_tokens = {};

  // Marks around reasoning; both empty for a family that does not think.
  absl::string_view think_open = {};
  absl::string_view think_close = {};

  // Input of a plain forward pass when the user gives none; empty means that
  // a prompt must be given.
  std::span<const TokenId> default_prompt = {};

  // Control tokens that a raw completion must begin with when the prompt does
  // not already (spellings, in order); empty for most families.
  std::span<const absl::string_view> completion_prefix = {};
};

// A decoder family. Key: the GGUF general.architecture string it loads.
struct Family {
  absl::string_view name = {};     // [a-z0-9][a-z0-9_.-]*
  absl::string_view summary = {};  // one line for `fucina plugins`
  std::span<const OptionSpec> options = {};
  const ChatTraits* chat = nullptr;  // null: no advice, values of ChatTraits{}

  // Makes the decoder. The file and the pool outlive it. InvalidArgument,
  // naming key or tensor, for a file it cannot run: another architecture, a
  // missing tensor, an impossible shape. ResourceExhausted when memory lacks.
  // May run work on the pool; is not called concurrently with itself.
  absl::StatusOr<std::unique_ptr<Decoder>> (*load)(
      const GgufFile& file, ThreadPool& pool, const Options& options) = nullptr;
};

// Makes low-rank weights for a base model, for example from a text.
struct AdapterSource {
  absl::string_view name = {};
  absl::string_view summary = {};
  std::span<const OptionSpec> options = {};
  // The result's tensors live as long as the process or as `base`, whichever
  // the source documents; the caller keeps `base` and `tokenizer` alive.
  absl::StatusOr<AdapterSet> (*make)(const Decoder& base,
                                     const Tokenizer& tokenizer,
                                     ThreadPool& pool,
                                     const Options& options) = nullptr;
};

// Proposes tokens for verification. A drafter bound to one family returns
// Unimplemented for the decoder of another, and FailedPrecondition for a model
// that gives it nothing to draft with: the program says so and decodes without.
struct DrafterKind {
  absl::string_view name = {};
  absl::string_view summary = {};
  std::span<const OptionSpec> options = {};
  absl::StatusOr<std::unique_ptr<Drafter>> (*make)(
      const Decoder& target, const Options& options) = nullptr;
};

// Forbids tokens, for example by a grammar. InvalidArgument with the engine's
// own diagnostic when the grammar does not compile.
struct ConstraintKind {
  absl::string_view name = {};
  absl::string_view summary = {};
  std::span<const OptionSpec> options = {};
  absl::StatusOr<std::unique_ptr<Constraint>> (*make)(
      const Tokenizer& tokenizer, const Options& options) = nullptr;
};

// What a plugin's register function sees: a write-only staging area. Nothing
// takes effect unless the function returns OK and no name clashes with a
// descriptor that is already registered.
//
// Add fails with InvalidArgument when a name is malformed, the function pointer
// is null or an option is declared badly, and with AlreadyExists when the same
// plugin adds the same kind and name twice.
class Registrar {
 public:
  virtual absl::Status Add(const Family& family) = 0;
  virtual absl::Status Add(const AdapterSource& source) = 0;
  virtual absl::Status Add(const DrafterKind& kind) = 0;
  virtual absl::Status Add(const ConstraintKind& kind) = 0;

 protected:
  ~Registrar() = default;
};

}  // namespace fucina

#endif  // FUCINA_PLUGIN_REGISTRAR_H_
