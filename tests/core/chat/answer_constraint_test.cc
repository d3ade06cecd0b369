#include "fucina/chat/answer_constraint.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/text/vocab_file.h"

namespace fucina {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

// Wants one text, in any cut.
class Wants : public Constraint {
 public:
  Wants(const Tokenizer& tokenizer, std::string text)
      : tokenizer_(tokenizer), text_(std::move(text)) {}

  absl::Status Mask(std::span<float> logits) override {
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (!Continues(written, static_cast<TokenId>(i))) {
        logits[i] = -std::numeric_limits<float>::infinity();
      }
    }
    return absl::OkStatus();
  }
  absl::Status Accept(TokenId token) override {
    accepted.push_back(token);
    absl::StrAppend(&written, tokenizer_.DecodeToken(token));
    return absl::OkStatus();
  }
  absl::Status Reset() override {
    accepted.clear();
    written.clear();
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<Constraint>> Clone() const override {
    return absl::UnimplementedError("");
  }
  int ForcedTokens(std::span<TokenId> tokens) override {
    tokens[0] = tokenizer_.Encode(text_.substr(written.size())).value()[0];
    return 1;
  }
  int ValidPrefix(std::span<const TokenId> tokens) override {
    std::string text = written;
    int count = 0;
    for (const TokenId token : tokens) {
      if (!Continues(text, token)) break;
      absl::StrAppend(&text, tokenizer_.DecodeToken(token));
      ++count;
    }
    return count;
  }
  bool IsComplete() override { return written == text_; }

  std::string written;
  std::vector<TokenId> accepted;

 private:
  bool Continues(const std::string& before, TokenId token) const {
    const absl::string_view bytes = tokenizer_.DecodeToken(token);
    return !bytes.empty() &&
           absl::StartsWith(text_, absl::StrCat(before, bytes));
  }

  const Tokenizer& tokenizer_;
  const std::string text_;
};

class AnswerConstraintTest : public ::testing::Test {
 protected:
  AnswerConstraintTest() {
    VocabFile file = VocabFile::WithBytes();
    line_ends_ = file.AddMerge("\n", "\n");
    over_ = file.AddMerge(">", "{");
    file.AddMerge(">", "\n");
    control_ = file.Add("<|im_end|>", 3);
    unused_ = file.Add("[PAD0]", 5);
    open_ = file.Add("<think>", 4);
    close_ = file.Add("</think>", 4);
    tokenizer_ = MustLoad(file);
  }

  std::unique_ptr<AnswerConstraint> Make(Wants& answer,
                                         PromptThinking thinking) {
    auto made = std::make_unique<AnswerConstraint>(answer, *tokenizer_,
                                                   "<think>", "</think>");
    made->Expect(thinking);
    EXPECT_TRUE(made->Reset().ok());
    return made;
  }
  std::set<TokenId> Allowed(AnswerConstraint& constraint) {
    std::vector<float> logits(
        static_cast<std::size_t>(tokenizer_->vocab_size()), 0.25F);
    EXPECT_TRUE(constraint.Mask(logits).ok());
    std::set<TokenId> ids;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] == 0.25F) ids.insert(static_cast<TokenId>(i));
    }
    return ids;
  }
  void Feed(AnswerConstraint& constraint, absl::string_view bytes) {
    for (const char c : bytes) {
      EXPECT_TRUE(constraint.Accept(static_cast<unsigned char>(c)).ok());
    }
  }

  TokenId line_ends_, over_, control_, unused_, open_, close_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(AnswerConstraintTest, AClosedBlockLeavesNothingFree) {
  Wants answer(*tokenizer_, "{}");
  const auto constraint = Make(answer, PromptThinking::kClosed);
  EXPECT_THAT(Allowed(*constraint), ElementsAre('{'));
  Feed(*constraint, "{}");
  EXPECT_TRUE(constraint->IsComplete());
  std::vector<TokenId> forced(4);
  ASSERT_TRUE(constraint->Reset().ok());
  EXPECT_EQ(constraint->ForcedTokens(forced), 1);
}

TEST_F(AnswerConstraintTest, ThinkingIsFreeUntilItsMark) {
  Wants answer(*tokenizer_, "{}");
  const auto constraint = Make(answer, PromptThinking::kOpen);
  std::vector<TokenId> forced(4);
  EXPECT_EQ(constraint->ForcedTokens(forced), 0);
  EXPECT_THAT(Allowed(*constraint), Contains('q'));
  Feed(*constraint, "no { matters");
  // Padding and whatever else may come: none of it reaches the grammar.
  EXPECT_TRUE(constraint->Accept(unused_).ok());
  EXPECT_TRUE(constraint->Accept(tokenizer_->vocab_size() + 100).ok());
  EXPECT_THAT(answer.accepted, IsEmpty());
  EXPECT_FALSE(constraint->IsComplete());
  EXPECT_TRUE(constraint->Accept(close_).ok());
  // Up to two line ends are no part of the answer.
  EXPECT_EQ(constraint->ForcedTokens(forced), 0);
  EXPECT_THAT(Allowed(*constraint), ElementsAre('\n', '{', line_ends_));
  EXPECT_TRUE(constraint->Accept(line_ends_).ok());
  EXPECT_THAT(Allowed(*constraint), ElementsAre('\n', '{', line_ends_));
  Feed(*constraint, "\n");
  EXPECT_THAT(Allowed(*constraint), ElementsAre('{'));
  Feed(*constraint, "{}");
  EXPECT_EQ(answer.written, "{}");
  EXPECT_TRUE(constraint->IsComplete());
}

TEST_F(AnswerConstraintTest, ALineEndThatTheGrammarWantsIsTheAnswers) {
  Wants answer(*tokenizer_, "\nx");
  const auto constraint = Make(answer, PromptThinking::kOpen);
  EXPECT_TRUE(constraint->Accept(close_).ok());
  Feed(*constraint, "\nx");
  EXPECT_EQ(answer.written, "\nx");
}

TEST_F(AnswerConstraintTest, AMarkSpelledInPiecesCounts) {
  Wants answer(*tokenizer_, "{}");
  const auto constraint = Make(answer, PromptThinking::kOpen);
  Feed(*constraint, "</</think");
  EXPECT_THAT(Allowed(*constraint), Contains('>'));
  // The token ">{" would begin the answer behind the grammar's back.
  EXPECT_THAT(Allowed(*constraint), Not(Contains(over_)));
  Feed(*constraint, ">");
  EXPECT_THAT(Allowed(*constraint), ElementsAre('\n', '{', line_ends_));
}

TEST_F(AnswerConstraintTest, OvershootingIsFineWhereNothingCloses) {
  Wants answer(*tokenizer_, "{}");
  const auto constraint = Make(answer, PromptThinking::kOpen);
  Feed(*constraint, "a thin");
  EXPECT_THAT(Allowed(*constraint), Contains(over_));
}

TEST_F(AnswerConstraintTest, UndecidedIsTheMarkOrTheAnswer) {
  Wants answer(*tokenizer_, "{}");
  const auto constraint = Make(answer, PromptThinking::kUndecided);
  EXPECT_THAT(Allowed(*constraint), ElementsAre('{', open_));
  EXPECT_TRUE(constraint->Accept(open_).ok());
  EXPECT_THAT(Allowed(*constraint), Contains('q'));
  EXPECT_TRUE(constraint->Accept(close_).ok());
  Feed(*constraint, "{}");
  EXPECT_TRUE(constraint->IsComplete());
  // The next reply does not think.
  ASSERT_TRUE(constraint->Reset().ok());
  Feed(*constraint, "{");
  EXPECT_THAT(Allowed(*constraint), ElementsAre('}'));
}

TEST_F(AnswerConstraintTest, AnAnswerMayBeginLikeTheMark) {
  Wants answer(*tokenizer_, "<th>");
  const auto constraint = Make(answer, PromptThinking::kUndecided);
  EXPECT_THAT(Allowed(*constraint), ElementsAre('<', open_));
  Feed(*constraint, "<th");
  EXPECT_THAT(Allowed(*constraint), ElementsAre('>'));
  Feed(*constraint, ">");
  EXPECT_TRUE(constraint->IsComplete());
}

TEST_F(AnswerConstraintTest, AMarkOfSeveralTokensGoesToItsEnd) {
  VocabFile file = VocabFile::WithBytes();
  file.AddMerge("h", "e");
  const auto tokenizer = MustLoad(file);
  Wants answer(*tokenizer, "<ok");
  AnswerConstraint constraint(answer, *tokenizer, "<think>", "</think>");
  constraint.Expect(PromptThinking::kUndecided);
  ASSERT_TRUE(constraint.Reset().ok());
  const auto allowed = [&] {
    std::vector<float> logits(static_cast<std::size_t>(tokenizer->vocab_size()),
                              0.25F);
    EXPECT_TRUE(constraint.Mask(logits).ok());
    std::set<TokenId> ids;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] == 0.25F) ids.insert(static_cast<TokenId>(i));
    }
    return ids;
  };
  // '<' begins both.
  EXPECT_THAT(allowed(), ElementsAre('<'));
  ASSERT_TRUE(constraint.Accept('<').ok());
  EXPECT_THAT(allowed(), ElementsAre('o', 't'));
  ASSERT_TRUE(constraint.Accept('t').ok());
  EXPECT_THAT(allowed(), ElementsAre('h'));
  EXPECT_FALSE(constraint.IsComplete());
  for (const char c : std::string("hink>"))
    ASSERT_TRUE(constraint.Accept(c).ok());
  EXPECT_EQ(allowed().size(),
            static_cast<std::size_t>(tokenizer->vocab_size()));
  for (const char c : std::string("hm</think><ok")) {
    ASSERT_TRUE(constraint.Accept(c).ok());
  }
  EXPECT_EQ(answer.written, "<ok");
  EXPECT_TRUE(constraint.IsComplete());
}

TEST_F(AnswerConstraintTest, ValidPrefixCrossesTheMark) {
  Wants answer(*tokenizer_, "{}");
  const auto constraint = Make(answer, PromptThinking::kOpen);
  const std::vector<TokenId> good = {'a', close_, line_ends_, '{', '}'};
  EXPECT_EQ(constraint->ValidPrefix(good), 5);
  const std::vector<TokenId> wrong = {'a', close_, line_ends_, '{', 'q'};
  EXPECT_EQ(constraint->ValidPrefix(wrong), 4);
  const std::vector<TokenId> free = {'a', unused_, control_};
  EXPECT_EQ(constraint->ValidPrefix(free), 3);
  const auto undecided = Make(answer, PromptThinking::kUndecided);
  const std::vector<TokenId> opens = {open_, 'a'};
  EXPECT_EQ(undecided->ValidPrefix(opens), 1);
  const std::vector<TokenId> answers = {'{', 'a'};
  EXPECT_EQ(undecided->ValidPrefix(answers), 1);
}

TEST_F(AnswerConstraintTest, WithoutMarksEverythingIsTheAnswer) {
  Wants answer(*tokenizer_, "{}");
  AnswerConstraint constraint(answer, *tokenizer_, "", "");
  constraint.Expect(PromptThinking::kUndecided);
  ASSERT_TRUE(constraint.Reset().ok());
  EXPECT_THAT(Allowed(constraint), ElementsAre('{'));
}

}  // namespace
}  // namespace fucina
