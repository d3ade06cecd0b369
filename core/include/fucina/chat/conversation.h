#ifndef FUCINA_CHAT_CONVERSATION_H_
#define FUCINA_CHAT_CONVERSATION_H_

// Turns of a conversation: where text meets decoding. Every turn renders the
// whole history through the model's template, encodes it and keeps what the
// state already holds of it, so past thinking stays or goes exactly as the
// template says. One conversation, one thread at a time.

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/chat/answer_constraint.h"
#include "fucina/contract/constraint.h"
#include "fucina/contract/decoder.h"
#include "fucina/contract/drafter.h"
#include "fucina/decode/generator.h"
#include "fucina/decode/sampler.h"
#include "fucina/decode/speculation_gate.h"
#include "fucina/export.h"
#include "fucina/text/chat_template.h"
#include "fucina/text/reply_splitter.h"
#include "fucina/text/tokenizer.h"

namespace fucina {

// Borrowed; all outlive the conversation.
struct ConversationParts {
  const Decoder* decoder = nullptr;             // never null
  const Tokenizer* tokenizer = nullptr;         // never null
  const ChatTemplate* chat_template = nullptr;  // never null
  Drafter* drafter = nullptr;
  Constraint* constraint = nullptr;  // of answers; thinking is free
  const AdapterSet* adapter = nullptr;
};

struct ConversationOptions {
  int capacity = 4096;      // tokens of prompt and reply together
  int max_tokens = 1024;    // of one reply, its stop token included
  std::string system = {};  // empty: no system message
  // nullopt leaves the template's own default.
  std::optional<bool> enable_thinking = std::nullopt;
  std::string tools_json = {};               // a JSON array; empty for none
  std::string template_arguments_json = {};  // a JSON object; empty for none
  SamplerConfig sampling = {};
  std::vector<std::string> stop = {};     // stop strings
  std::vector<TokenId> stop_tokens = {};  // besides the tokenizer's own
  // Tokens per prefill forward: bounds the time until a cancel is seen.
  int prefill_chunk = 512;
  SpeculationGateOptions gate = {};  // of no use without a drafter
};

// What a caller may want to hear while a reply grows; all optional.
struct ReplyListener {
  // The reply's text as the model writes it, thinking and its marks included;
  // whole characters, nothing of a stop string. A prompt that opened the
  // thinking block is heard as its open mark first.
  std::function<void(absl::string_view)> on_text = nullptr;
  // The same taken apart: thinking, answer, tool calls.
  std::function<void(const ReplyPiece&)> on_piece = nullptr;
  // Prompt tokens done and in all, between chunks.
  std::function<void(int, int)> on_progress = nullptr;
  // Raised from another thread or a signal handler to end the reply.
  const std::atomic<bool>* cancel = nullptr;
};

struct Reply {
  std::string thinking;
  std::string content;
  std::vector<ToolCall> tool_calls;
  FinishReason finish_reason = FinishReason::kLength;
  bool complete = true;  // satisfies the constraint, when there is one
  int stop_index = -1;   // which stop string ended it; -1 for none
  int thinking_tokens = 0;
  GenerationStats stats;
  std::vector<std::string> notes;  // facts about the template to tell once
};

// What a turn sends to the model.
struct TurnPrompt {
  RenderedPrompt rendered;
  std::vector<TokenId> tokens;
};

class FUCINA_API Conversation {
 public:
  // InvalidArgument for a bad option (named), ResourceExhausted when the state
  // does not fit in memory.
  static absl::StatusOr<std::unique_ptr<Conversation>> Create(
      const ConversationParts& parts, ConversationOptions options);
  ~Conversation();

  // One turn: the user's message in, the reply out. OutOfRange with both counts
  // when prompt and at least one token do not fit; what the template, decoder,
  // sampler and constraint refuse is passed on. On error the conversation is as
  // before the call; a cancelled reply stays in it as far as it got.
  absl::StatusOr<Reply> Send(absl::string_view message,
                             const ReplyListener& listener = {});

  // The prompt that Send(message) would evaluate; changes nothing.
  absl::StatusOr<TurnPrompt> Preview(absl::string_view message) const;

  std::span<const ChatMessage> messages() const { return messages_; }
  // Tokens held by the state, and the most it can hold.
  int length() const;
  int capacity() const;

 private:
  Conversation(const ConversationParts& parts, ConversationOptions options);

  ConversationParts parts_;
  ConversationOptions options_;
  std::vector<TokenId> stop_tokens_;
  std::vector<TokenId> never_sampled_;
  std::vector<ChatMessage> messages_;
  std::unique_ptr<DecodeState> state_;
  Sampler sampler_;
  std::unique_ptr<AnswerConstraint> constraint_;  // null for none
  std::unique_ptr<Sequence> sequence_;
};

// Ids that must never be sampled: unused tokens, and rows of the logits that
// have no token at all.
FUCINA_API std::vector<TokenId> NeverSampled(const Tokenizer& tokenizer,
                                             int vocab_size);

}  // namespace fucina

#endif  // FUCINA_CHAT_CONVERSATION_H_
