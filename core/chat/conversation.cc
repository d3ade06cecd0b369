#include "fucina/chat/conversation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fucina/diag/check.h"
#include "fucina/diag/status_macros.h"
#include "fucina/text/utf8_stream.h"

namespace fucina {
namespace {

// One reply while it grows: bytes of tokens in, text and pieces out.
class ReplyBuilder {
 public:
  ReplyBuilder(const ReplyListener& listener,
               std::unique_ptr<ReplySplitter> stop,
               std::unique_ptr<ReplySplitter> parts)
      : listener_(listener), stop_(std::move(stop)), parts_(std::move(parts)) {}

  // Text that stands in front of the reply for the reader, not for the parser.
  void ShowPrefix(absl::string_view text) { Show(text); }

  // Returns false when a stop string ended the reply.
  bool Push(absl::string_view bytes) {
    if (parts_->in_thinking()) ++reply_.thinking_tokens;
    Take(stop_->Push(bytes));
    return !stop_->stopped();
  }

  Reply Finish() {
    Take(stop_->Finish());
    Collect(parts_->Finish());
    if (listener_.on_text) {
      const std::string rest = characters_.Finish();
      if (!rest.empty()) listener_.on_text(rest);
    }
    reply_.stop_index = stop_->stop_index();
    return std::move(reply_);
  }

 private:
  void Show(absl::string_view text) {
    if (!listener_.on_text) return;
    // Line ends in front belong to how a family writes turns, not to the reply.
    if (!shown_) {
      text.remove_prefix(std::min(text.find_first_not_of("\r\n"), text.size()));
      shown_ = !text.empty();
    }
    const std::string whole = characters_.Push(text);
    if (!whole.empty()) listener_.on_text(whole);
  }

  void Take(const std::vector<ReplyPiece>& raw) {
    for (const ReplyPiece& piece : raw) {
      Show(piece.text);
      Collect(parts_->Push(piece.text));
    }
  }

  void Collect(const std::vector<ReplyPiece>& pieces) {
    for (const ReplyPiece& piece : pieces) {
      switch (piece.kind) {
        case ReplyPiece::Kind::kThinking:
          reply_.thinking += piece.text;
          break;
        case ReplyPiece::Kind::kContent:
          reply_.content += piece.text;
          break;
        case ReplyPiece::Kind::kToolCall:
          reply_.tool_calls.push_back(piece.tool_call);
          break;
      }
      if (listener_.on_piece) listener_.on_piece(piece);
    }
  }

  const ReplyListener& listener_;
  std::unique_ptr<ReplySplitter> stop_;   // only ends at stop strings
  std::unique_ptr<ReplySplitter> parts_;  // thinking, answer, tool calls
  Utf8Stream characters_;
  bool shown_ = false;  // something, already
  Reply reply_;
};

bool Contains(std::span<const TokenId> ids, TokenId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

std::vector<TokenId> NeverSampled(const Tokenizer& tokenizer, int vocab_size) {
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < vocab_size; ++id) {
    if (tokenizer.ClassOf(id) == TokenClass::kUnused) ids.push_back(id);
  }
  return ids;
}

Conversation::Conversation(const ConversationParts& parts,
                           ConversationOptions options)
    : parts_(parts),
      options_(std::move(options)),
      sampler_(options_.sampling, parts.decoder->info().vocab_size) {}

Conversation::~Conversation() = default;

absl::StatusOr<std::unique_ptr<Conversation>> Conversation::Create(
    const ConversationParts& parts, ConversationOptions options) {
  FUCINA_CHECK(parts.decoder != nullptr && parts.tokenizer != nullptr &&
               parts.chat_template != nullptr);
  FUCINA_RETURN_IF_ERROR(Validate(options.sampling));
  FUCINA_RETURN_IF_ERROR(parts.tokenizer->text_status());
  // The splitter judges stop strings and tools; a bad one must not wait for
  // the first reply.
  FUCINA_RETURN_IF_ERROR(
      ReplySplitter::Create(
          {.tools_json = options.tools_json, .stop = options.stop})
          .status());
  const int vocab_size = parts.decoder->info().vocab_size;
  for (const TokenId id : options.stop_tokens) {
    if (id >= 0 && id < vocab_size) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("stop token id ", id,
                     " out of range: the model has ids 0 to ", vocab_size - 1));
  }
  std::unique_ptr<Conversation> conversation(
      new Conversation(parts, std::move(options)));
  Conversation& self = *conversation;
  const std::span<const TokenId> own = parts.tokenizer->stop_tokens();
  self.stop_tokens_.assign(own.begin(), own.end());
  self.stop_tokens_.insert(self.stop_tokens_.end(),
                           self.options_.stop_tokens.begin(),
                           self.options_.stop_tokens.end());
  self.never_sampled_ = NeverSampled(*parts.tokenizer, vocab_size);
  if (!self.options_.system.empty()) {
    self.messages_.push_back(
        {.role = "system", .content = self.options_.system});
  }
  FUCINA_ASSIGN_OR_RETURN(self.state_,
                          parts.decoder->NewState(self.options_.capacity));
  if (parts.constraint != nullptr) {
    self.constraint_ = std::make_unique<AnswerConstraint>(
        *parts.constraint, *parts.tokenizer, parts.chat_template->think_open(),
        parts.chat_template->think_close());
  }
  self.sequence_ = std::make_unique<Sequence>(
      *parts.decoder, SequenceParts{.state = self.state_.get(),
                                    .sampler = &self.sampler_,
                                    .drafter = parts.drafter,
                                    .constraint = self.constraint_.get(),
                                    .adapter = parts.adapter,
                                    .never_sampled = self.never_sampled_,
                                    .gate = self.options_.gate});
  return conversation;
}

int Conversation::length() const { return state_->length(); }
int Conversation::capacity() const { return state_->capacity(); }

absl::StatusOr<TurnPrompt> Conversation::Preview(
    absl::string_view message) const {
  std::vector<ChatMessage> messages = messages_;
  messages.push_back({.role = "user", .content = std::string(message)});
  TurnPrompt prompt;
  FUCINA_ASSIGN_OR_RETURN(
      prompt.rendered,
      parts_.chat_template->Render(
          messages, {.enable_thinking = options_.enable_thinking,
                     .tools_json = options_.tools_json,
                     .arguments_json = options_.template_arguments_json}));
  std::vector<TextSegment> segments;
  for (const jinja::Segment& segment : prompt.rendered.segments) {
    segments.push_back(
        {.text = segment.text,
         .is_template = segment.origin == jinja::Origin::kTemplate});
  }
  FUCINA_ASSIGN_OR_RETURN(prompt.tokens,
                          parts_.tokenizer->EncodeSegments(segments));
  return prompt;
}

absl::StatusOr<Reply> Conversation::Send(absl::string_view message,
                                         const ReplyListener& listener) {
  FUCINA_ASSIGN_OR_RETURN(const TurnPrompt prompt, Preview(message));
  if (prompt.tokens.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the chat template '", parts_.chat_template->name(),
                     "' made an empty prompt of the conversation"));
  }
  const int tokens = static_cast<int>(prompt.tokens.size());
  if (tokens >= capacity()) {
    return absl::OutOfRangeError(absl::StrCat(
        "context full: the conversation needs ", tokens,
        " tokens and at least one for the reply, the context holds ",
        capacity(), "; start anew or ask for a larger context"));
  }
  ReplySplitterOptions split =
      ReplySplitter::OptionsFor(*parts_.chat_template, prompt.rendered);
  split.tools_json = options_.tools_json;
  FUCINA_ASSIGN_OR_RETURN(auto parts, ReplySplitter::Create(split));
  FUCINA_ASSIGN_OR_RETURN(
      auto stop, ReplySplitter::Create({.raw = true, .stop = options_.stop}));
  ReplyBuilder builder(listener, std::move(stop), std::move(parts));
  if (prompt.rendered.thinking == PromptThinking::kOpen) {
    builder.ShowPrefix(absl::StrCat(parts_.chat_template->think_open(), "\n"));
  }

  if (constraint_ != nullptr) constraint_->Expect(prompt.rendered.thinking);
  const GenerationLimits limits = {.max_tokens = options_.max_tokens,
                                   .stop_tokens = stop_tokens_,
                                   .prefill_chunk = options_.prefill_chunk,
                                   .cancel = listener.cancel};
  const absl::Status status =
      Generator(*parts_.decoder)
          .Generate(
              *sequence_, prompt.tokens, limits,
              [&](TokenId token) {
                return Contains(stop_tokens_, token) ||
                       builder.Push(parts_.tokenizer->DecodeToken(token));
              },
              [&](int done, int total) {
                if (listener.on_progress) {
                  listener.on_progress(done, total);
                }
              });
  Reply reply = builder.Finish();
  FUCINA_RETURN_IF_ERROR(status);
  reply.finish_reason = sequence_->finish_reason();
  reply.complete = constraint_ == nullptr || constraint_->IsComplete();
  reply.stats = sequence_->stats();
  reply.notes = prompt.rendered.notes;

  messages_.push_back({.role = "user", .content = std::string(message)});
  ChatMessage answer = {.role = "assistant",
                        .content = reply.content,
                        .tool_calls = reply.tool_calls};
  if (!reply.thinking.empty()) answer.reasoning_content = reply.thinking;
  messages_.push_back(std::move(answer));
  return reply;
}

}  // namespace fucina
