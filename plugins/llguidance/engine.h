#ifndef FUCINA_PLUGINS_LLGUIDANCE_ENGINE_H_
#define FUCINA_PLUGINS_LLGUIDANCE_ENGINE_H_

// The engine's handles, owned: a tokenizer, and matchers made from it. The
// engine is the Rust crate llguidance behind its C functions.
//
// A tokenizer is immutable and shared by reference count; a matcher is used by
// one thread at a time.

#include <memory>
#include <shared_mutex>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/text/tokenizer.h"

// The crate's own names.
struct LlgMatcher;
struct LlgTokenizer;

namespace fucina::llguidance {

// Encodes forced text for the engine while the tokenizer lives. A compilation
// that was given up may still run when the tokenizer is gone, so that it asks
// here.
class TokenizeBridge {
 public:
  explicit TokenizeBridge(const Tokenizer& tokenizer)
      : tokenizer_(&tokenizer) {}

  // From now on every text encodes to nothing. Waits for calls that run.
  void Disconnect();
  // The ids of `bytes`: no special tokens, no added space, any bytes. Nothing
  // when they cannot be encoded. Safe from several threads.
  std::vector<TokenId> Encode(absl::string_view bytes) const;

 private:
  mutable std::shared_mutex mutex_;
  const Tokenizer* tokenizer_;  // null: disconnected
};

struct FreeTokenizer {
  void operator()(LlgTokenizer* tokenizer) const;
};
struct FreeMatcher {
  void operator()(LlgMatcher* matcher) const;
};
using MatcherHandle = std::unique_ptr<LlgMatcher, FreeMatcher>;

// The vocabulary as the engine holds it, with the tokens that end a reply.
class EngineTokenizer {
 public:
  // Builds the engine's trie over the vocabulary: some 0.3 s for 150,000
  // tokens, so once per model. The tokenizer outlives the bridge's connection.
  //
  // stop_tokens  any of them may end a complete reply, none is ever text
  //
  // InvalidArgument without stop tokens or with one outside the vocabulary.
  static absl::StatusOr<std::shared_ptr<const EngineTokenizer>> Make(
      const Tokenizer& tokenizer, std::span<const TokenId> stop_tokens);

  ~EngineTokenizer();

  const LlgTokenizer* handle() const { return handle_.get(); }
  int vocab_size() const { return vocab_size_; }
  std::span<const TokenId> stop_tokens() const { return stop_tokens_; }
  bool IsStop(TokenId token) const;
  TokenizeBridge& bridge() const { return *bridge_; }

 private:
  EngineTokenizer() = default;

  std::unique_ptr<TokenizeBridge> bridge_;  // outlives the handle
  std::unique_ptr<LlgTokenizer, FreeTokenizer> handle_;
  std::vector<TokenId> stop_tokens_;  // ascending
  int vocab_size_ = 0;
};

// The error of a matcher that cannot go on.
inline constexpr char kNothingFollows[] = "no token can follow";

// The matcher's error, or empty when it is in order. The engine's panics are
// errors like others here.
std::string ErrorOf(LlgMatcher* matcher);

// "llguidance@1.8.0 derivre@0.3.12".
absl::string_view EngineVersion();

}  // namespace fucina::llguidance

#endif  // FUCINA_PLUGINS_LLGUIDANCE_ENGINE_H_
