#ifndef FUCINA_CHAT_ANSWER_CONSTRAINT_H_
#define FUCINA_CHAT_ANSWER_CONSTRAINT_H_

// A constraint of the answer alone: thinking in front of it is free.
//
// A reply whose prompt opened the thinking block is free until the block's
// closing mark, and governed behind it. Where the prompt leaves open whether
// the model thinks, the first tokens are those of the answer or the opening
// mark, so that no reply escapes by not thinking. Marks are recognised by their
// text, in any cut into tokens, because that is how a reader tells thinking
// from answer. Between the mark and the answer up to two line-end tokens may
// stand that are no part of it.
//
// One thread at a time, like every constraint.

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "fucina/contract/constraint.h"
#include "fucina/export.h"
#include "fucina/text/chat_template.h"
#include "fucina/text/tokenizer.h"

namespace fucina {

class FUCINA_API AnswerConstraint : public Constraint {
 public:
  // The marks are the template's, both empty for one that knows no thinking;
  // answer and tokenizer outlive this.
  AnswerConstraint(Constraint& answer, const Tokenizer& tokenizer,
                   absl::string_view think_open, absl::string_view think_close);
  ~AnswerConstraint() override;

  // Where the next reply's prompt leaves the model; counts from Reset on.
  void Expect(PromptThinking thinking) { expected_ = thinking; }

  absl::Status Mask(std::span<float> logits) override;
  absl::Status Accept(TokenId token) override;
  absl::Status Reset() override;
  // Unimplemented: a conversation is one sequence.
  absl::StatusOr<std::unique_ptr<Constraint>> Clone() const override;
  int ForcedTokens(std::span<TokenId> tokens) override;
  int ValidPrefix(std::span<const TokenId> tokens) override;
  bool IsComplete() override;

 private:
  enum class State {
    kUndecided,  // the opening mark or the answer
    kThinking,   // free
    kBetween,    // behind the closing mark: line ends or the answer
    kAnswer,     // governed
  };

  // Text of a token as a reader sees it.
  absl::string_view Text(TokenId token) const;
  // Tokens that are allowed besides the answer's.
  std::span<const TokenId> Extras() const;
  bool IsExtra(TokenId token) const;
  // Whether the closing mark ends inside or at the end of `token` when `tail`
  // stands before it. Adds the token's text to `tail`.
  bool Closes(std::string& tail, TokenId token) const;
  absl::Status AcceptUndecided(TokenId token);
  void ForbidOvershoot(std::span<float> logits) const;

  Constraint& answer_;
  const Tokenizer& tokenizer_;
  const std::string open_;
  const std::string close_;
  std::vector<TokenId> open_tokens_;  // the canonical spelling
  std::vector<TokenId> line_ends_;
  // Tokens that hold the closing mark's last byte, or all of it, and something
  // behind it.
  std::vector<TokenId> may_overshoot_;
  std::vector<TokenId> overshooting_;

  PromptThinking expected_ = PromptThinking::kClosed;
  State state_ = State::kAnswer;
  std::string text_;        // undecided: of the reply; thinking: its end
  std::size_t opened_ = 0;  // undecided: opening tokens so far
  bool answering_ = true;   // undecided: the text may still be an answer
  int line_ends_left_ = 0;
};

}  // namespace fucina

#endif  // FUCINA_CHAT_ANSWER_CONSTRAINT_H_
