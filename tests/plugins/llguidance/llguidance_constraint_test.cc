// What the engine does behind the contract, over a vocabulary that can be
// checked by hand.

#include <algorithm>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/llguidance/toy_constraint.h"

namespace fucina {
namespace {

using testing::Allowed;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::Feed;
using ::testing::HasSubstr;
using testing::MakeConstraint;
using ::testing::Not;
using testing::ToyVocabulary;

class Llguidance : public ::testing::Test {
 protected:
  std::unique_ptr<Constraint> Make(
      const std::map<std::string, std::string>& options) {
    auto made = MakeConstraint(*toy_.tokenizer, options);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *std::move(made) : nullptr;
  }
  std::unique_ptr<Constraint> Regex(const std::string& regex) {
    return Make({{"regex", regex}});
  }
  std::unique_ptr<Constraint> Schema(const std::string& schema) {
    return Make({{"json_schema", schema}});
  }
  std::set<TokenId> AllowedBy(Constraint& constraint) {
    return Allowed(constraint, toy_.rows);
  }
  bool Feeds(Constraint& constraint, absl::string_view bytes) {
    return Feed(constraint, toy_.rows, bytes);
  }
  // Whether the bytes, one by one, are a whole reply.
  bool Matches(Constraint& constraint, absl::string_view bytes) {
    EXPECT_TRUE(constraint.Reset().ok());
    return Feeds(constraint, bytes) && constraint.IsComplete();
  }

  ToyVocabulary toy_;
};

TEST_F(Llguidance, RegexIsWalkedByteByByte) {
  const auto constraint = Regex("ab+c");
  EXPECT_THAT(AllowedBy(*constraint), ElementsAre('a'));
  EXPECT_FALSE(constraint->IsComplete());
  EXPECT_TRUE(constraint->Accept('a').ok());
  // Only one text can follow: its canonical token.
  EXPECT_THAT(AllowedBy(*constraint), ElementsAre('b'));
  EXPECT_TRUE(constraint->Accept('b').ok());
  // The twin of 'b' has the same bytes and the same right.
  EXPECT_THAT(AllowedBy(*constraint), ElementsAre('b', 'c', toy_.twin));
  EXPECT_TRUE(constraint->Accept(toy_.twin).ok());
  EXPECT_TRUE(constraint->Accept('c').ok());
  EXPECT_TRUE(constraint->IsComplete());
  EXPECT_THAT(AllowedBy(*constraint), ElementsAre(toy_.end));
}

TEST_F(Llguidance, CompleteButExtensibleMayEndOrGoOn) {
  const auto constraint = Regex("ab+");
  EXPECT_TRUE(Feeds(*constraint, "ab"));
  EXPECT_TRUE(constraint->IsComplete());
  EXPECT_THAT(AllowedBy(*constraint), ElementsAre('b', toy_.end, toy_.twin));
  EXPECT_TRUE(constraint->Accept(toy_.end).ok());
  EXPECT_TRUE(constraint->IsComplete());
  EXPECT_THAT(AllowedBy(*constraint), ElementsAre(toy_.end));
}

TEST_F(Llguidance, WhatFollowsAStopIsIgnored) {
  const auto constraint = Regex("a");
  EXPECT_TRUE(constraint->Accept('a').ok());
  EXPECT_TRUE(constraint->Accept(toy_.end).ok());
  EXPECT_TRUE(constraint->Accept(toy_.end).ok());
  EXPECT_TRUE(constraint->Accept('z').ok());
  EXPECT_TRUE(constraint->IsComplete());
}

TEST_F(Llguidance, AnIntegerInAnObject) {
  const auto constraint = Schema(
      R"({"type":"object","properties":{"a":{"type":"integer"}},
          "required":["a"],"additionalProperties":false})");
  EXPECT_TRUE(Feeds(*constraint, R"({"a":1)"));
  EXPECT_FALSE(constraint->IsComplete());
  EXPECT_TRUE(Feeds(*constraint, "}"));
  EXPECT_TRUE(constraint->IsComplete());
  EXPECT_THAT(AllowedBy(*constraint), ElementsAre(toy_.end));
  EXPECT_TRUE(Matches(*constraint, R"({ "a" : -20 })"));
  EXPECT_FALSE(Matches(*constraint, R"({"a":1.5})"));
  EXPECT_FALSE(Matches(*constraint, R"({"b":1})"));
}

TEST_F(Llguidance, ForcedTokensAreCanonicalAndAllowed) {
  const auto constraint = Regex("(a|b)cab(x|y)");
  std::vector<TokenId> forced(8);
  EXPECT_EQ(constraint->ForcedTokens(forced), 0);
  EXPECT_TRUE(constraint->Accept('a').ok());
  // "cab" is one token of this vocabulary.
  ASSERT_EQ(constraint->ForcedTokens(forced), 1);
  EXPECT_EQ(forced[0], toy_.cab);
  // The mask says the same, so that a run without drafts writes the same.
  EXPECT_THAT(AllowedBy(*constraint), ElementsAre(toy_.cab));
  EXPECT_TRUE(constraint->Accept(toy_.cab).ok());
  EXPECT_THAT(AllowedBy(*constraint), ElementsAre('x', 'y'));
}

class ForcedSpan : public Llguidance,
                   public ::testing::WithParamInterface<int> {};

TEST_P(ForcedSpan, IsTheMaskAllTheWay) {
  const int length = GetParam();
  const auto constraint = Regex(
      "[pq]" + std::string(static_cast<std::size_t>(length), 'z') + "[pq]");
  EXPECT_TRUE(constraint->Accept('p').ok());
  std::vector<TokenId> forced(64);
  const int count = constraint->ForcedTokens(forced);
  ASSERT_EQ(count, length);
  forced.resize(static_cast<std::size_t>(count));
  EXPECT_EQ(constraint->ValidPrefix(forced), count);
  // Looking ahead changed nothing, and every one of them is the only choice.
  for (const TokenId token : forced) {
    EXPECT_THAT(AllowedBy(*constraint), ElementsAre(token));
    EXPECT_TRUE(constraint->Accept(token).ok());
  }
  EXPECT_THAT(AllowedBy(*constraint), ElementsAre('p', 'q'));
}

INSTANTIATE_TEST_SUITE_P(Lengths, ForcedSpan, ::testing::Values(1, 2, 16, 40));

TEST_F(Llguidance, ForcedTokensKeepToTheRoom) {
  const auto constraint = Regex("zzzzzzzz");
  std::vector<TokenId> forced(3);
  EXPECT_EQ(constraint->ForcedTokens(forced), 3);
  EXPECT_EQ(constraint->ForcedTokens({}), 0);
  EXPECT_TRUE(Feeds(*constraint, "zzzzzzzz"));
  // An end is never drafted.
  EXPECT_EQ(constraint->ForcedTokens(forced), 0);
}

TEST_F(Llguidance, ValidPrefixEndsAtTheFirstWrongToken) {
  const auto constraint = Regex("abcd");
  const std::vector<TokenId> draft = {'a', 'b', 'x', 'd'};
  EXPECT_EQ(constraint->ValidPrefix(draft), 2);
  EXPECT_EQ(constraint->ValidPrefix({}), 0);
  const std::vector<TokenId> wild = {'a', toy_.rows + 5, 'b'};
  EXPECT_EQ(constraint->ValidPrefix(wild), 1);
  const std::vector<TokenId> negative = {-1};
  EXPECT_EQ(constraint->ValidPrefix(negative), 0);
  const std::vector<TokenId> padding = {toy_.unused};
  EXPECT_EQ(constraint->ValidPrefix(padding), 0);
  const std::vector<TokenId> stop = {'a', 'b', 'c', 'd', toy_.end, 'a'};
  EXPECT_EQ(constraint->ValidPrefix(stop), 4);
  // None of it poisoned the matcher or moved it.
  EXPECT_TRUE(Feeds(*constraint, "abcd"));
  EXPECT_TRUE(constraint->IsComplete());
}

TEST_F(Llguidance, ClonesGoTheirOwnWay) {
  const auto first = Regex("a(b|c)d");
  auto second = first->Clone().value();
  EXPECT_TRUE(Feeds(*first, "ab"));
  EXPECT_TRUE(Feeds(*second, "ac"));
  EXPECT_THAT(AllowedBy(*first), ElementsAre('d'));
  EXPECT_TRUE(Feeds(*first, "d"));
  EXPECT_FALSE(second->IsComplete());
  EXPECT_TRUE(Feeds(*second, "d"));
  // A clone outlives what it was made from.
  auto third = second->Clone().value();
  second.reset();
  EXPECT_TRUE(Feeds(*third, "abd"));
}

TEST_F(Llguidance, ResetAfterAFailureWorks) {
  const auto constraint = Regex("ab");
  const absl::Status failed = constraint->Accept('z');
  EXPECT_EQ(failed.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(failed.message()), HasSubstr("constraint failed: "));
  // Failed for good: no mask, no token, no draft.
  std::vector<float> logits(static_cast<std::size_t>(toy_.rows));
  EXPECT_EQ(constraint->Mask(logits), failed);
  EXPECT_EQ(constraint->Accept('a'), failed);
  EXPECT_FALSE(constraint->IsComplete());
  std::vector<TokenId> forced(4);
  EXPECT_EQ(constraint->ForcedTokens(forced), 0);
  EXPECT_EQ(constraint->ValidPrefix(forced), 0);
  EXPECT_TRUE(constraint->Reset().ok());
  EXPECT_TRUE(Matches(*constraint, "ab"));
}

TEST_F(Llguidance, TokensOutsideTheVocabularyAreRefused) {
  for (const TokenId token : {-1, toy_.rows}) {
    const auto constraint = Regex("ab");
    EXPECT_THAT(std::string(constraint->Accept(token).message()),
                HasSubstr("is outside the vocabulary"));
  }
}

TEST_F(Llguidance, FewerLogitsThanTokensAreRefused) {
  const auto constraint = Regex("ab");
  std::vector<float> logits(100);
  EXPECT_THAT(std::string(constraint->Mask(logits).message()),
              HasSubstr("the model has 100 logits and the vocabulary 266"));
}

TEST_F(Llguidance, SpecialTokensAreNeverText) {
  // Anything goes, and still no control, unknown, unused or padding token.
  const auto constraint = Regex("(?s:.*)");
  const std::set<TokenId> allowed = AllowedBy(*constraint);
  for (const TokenId token :
       {toy_.control, toy_.turn, toy_.unknown, toy_.unused, toy_.rows - 1}) {
    EXPECT_THAT(allowed, Not(Contains(token))) << token;
  }
  // Text that a user defined is text.
  EXPECT_THAT(allowed, Contains(toy_.user));
  EXPECT_THAT(allowed, Contains(toy_.end));  // empty is a match
}

TEST_F(Llguidance, AStringThatSpellsAControlTokenIsSpelledOut) {
  for (const char* schema :
       {R"({"const":"<|im_start|>"})",
        R"({"enum":["<|im_start|>","<|turn|>"]})", R"({"const":"<|end|>"})"}) {
    const auto constraint = Schema(schema);
    std::string text;
    std::vector<TokenId> ids;
    for (int i = 0; i < 40; ++i) {
      const std::set<TokenId> allowed = AllowedBy(*constraint);
      for (const TokenId token : {toy_.control, toy_.turn, toy_.unknown}) {
        EXPECT_THAT(allowed, Not(Contains(token))) << schema;
      }
      if (allowed == std::set<TokenId>{toy_.end}) break;
      EXPECT_THAT(allowed, Not(Contains(toy_.end))) << schema;
      ids.push_back(*allowed.begin());
      ASSERT_TRUE(constraint->Accept(ids.back()).ok());
    }
    EXPECT_TRUE(constraint->IsComplete());
    EXPECT_THAT(toy_.tokenizer->Decode(ids), HasSubstr("<|")) << schema;
  }
}

TEST_F(Llguidance, FurtherStopTokensEndAReplyAndAreNoText) {
  // One is a control token, the other an ordinary byte.
  const auto constraint = Make(
      {{"regex", "[a-z]+"}, {"stop_tokens", absl::StrCat(toy_.turn, ",98")}});
  EXPECT_THAT(AllowedBy(*constraint), Not(Contains('b')));
  EXPECT_TRUE(constraint->Accept('a').ok());
  const std::set<TokenId> allowed = AllowedBy(*constraint);
  EXPECT_THAT(allowed, Contains('b'));  // as an end
  EXPECT_THAT(allowed, Contains(toy_.turn));
  EXPECT_THAT(allowed, Contains(toy_.end));
  EXPECT_TRUE(constraint->Accept('b').ok());
  EXPECT_THAT(AllowedBy(*constraint), ElementsAre('b', toy_.end, toy_.turn));
}

TEST_F(Llguidance, WhiteSpaceIsBounded) {
  const auto constraint = Schema(
      R"({"type":"object","properties":{"a":{"type":"null"}},
          "required":["a"]})");
  const std::string most(40, '\n');
  EXPECT_TRUE(Feeds(*constraint, "{" + most));
  EXPECT_THAT(AllowedBy(*constraint), ElementsAre('"'));
  EXPECT_TRUE(Feeds(*constraint, "\"a\"" + most));
  EXPECT_THAT(AllowedBy(*constraint), ElementsAre(':'));
  // No white space in front and none behind.
  EXPECT_FALSE(Matches(*constraint, " {\"a\":null}"));
  EXPECT_FALSE(Matches(*constraint, "{\"a\":null} "));
}

TEST_F(Llguidance, CompactHasNoWhiteSpaceAtAll) {
  const auto constraint =
      Make({{"json_schema", R"({"type":"array","items":{"type":"integer"}})"},
            {"json_compact", "true"}});
  EXPECT_TRUE(Matches(*constraint, "[1,2]"));
  EXPECT_FALSE(Matches(*constraint, "[1, 2]"));
  EXPECT_FALSE(Matches(*constraint, "[ 1]"));
}

TEST_F(Llguidance, BooleanSchemas) {
  const auto constraint = Schema("true");
  EXPECT_TRUE(Matches(*constraint, R"({"a":[1,null]})"));
  const auto refused =
      MakeConstraint(*toy_.tokenizer, {{"json_schema", "false"}});
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("invalid json schema: Unsatisfiable schema"));
}

TEST_F(Llguidance, LarkGrammarsWithEmbeddedSchemas) {
  const auto constraint = Make({{"lark",
                                 "// a call\n"
                                 "start: \"do \" NAME args\n"
                                 "NAME: /[a-z]{1,8}/\n"
                                 "args: %json {\"type\":\"object\","
                                 "\"properties\":{\"n\":{\"type\":\"integer\"}}"
                                 ",\"required\":[\"n\"],"
                                 "\"additionalProperties\":false}\n"}});
  EXPECT_TRUE(Matches(*constraint, R"(do f{"n":1})"));
  EXPECT_FALSE(Matches(*constraint, R"(do f{"n":"1"})"));
  // The embedded schema's white space is bounded too.
  EXPECT_TRUE(constraint->Reset().ok());
  EXPECT_TRUE(Feeds(*constraint, "do f{" + std::string(40, ' ')));
  EXPECT_THAT(AllowedBy(*constraint), ElementsAre('"'));
}

TEST_F(Llguidance, RecursiveGrammarsWork) {
  const auto constraint =
      Make({{"lark", "start: \"(\" start \")\" | \"x\"\n"}});
  EXPECT_TRUE(Matches(*constraint, "((((x))))"));
  EXPECT_FALSE(Matches(*constraint, "((x)"));
  EXPECT_FALSE(Matches(*constraint, "(x))"));
}

TEST_F(Llguidance, VocabulariesThatBeginWithASpace) {
  const auto constraint = Make({{"lark", "start: / ?axb?/\n"}});
  EXPECT_TRUE(Matches(*constraint, " axb"));
  EXPECT_TRUE(Matches(*constraint, "ax"));
}

TEST_F(Llguidance, WithoutAnEndTokenItSaysSo) {
  VocabFile file = VocabFile::WithBytes();
  file.AddMerge("c", "a");
  const auto tokenizer = MustLoad(file);
  const auto refused = MakeConstraint(*tokenizer, {{"regex", "a"}});
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("no end token"));
  // One that the user names will do.
  EXPECT_TRUE(
      MakeConstraint(*tokenizer, {{"regex", "a"}, {"stop_tokens", "10"}}).ok());
}

TEST_F(Llguidance, BadOptionsAreRefused) {
  struct Case {
    std::map<std::string, std::string> options;
    const char* message;
  };
  const Case cases[] = {
      {{}, "no grammar: give json_schema, lark or regex"},
      {{{"regex", "a"}, {"lark", "start: \"a\""}},
       "json_schema, lark and regex are mutually exclusive"},
      {{{"regex", "a"}, {"json_compact", "true"}},
       "json_compact goes with json_schema only"},
      {{{"regex", "a"}, {"stop_tokens", "x"}},
       "stop_tokens: expected token ids, found 'x'"},
      {{{"regex", "a"}, {"stop_tokens", "4711"}},
       "end token 4711 is outside the vocabulary of 266 tokens"},
  };
  for (const Case& c : cases) {
    const auto made = MakeConstraint(*toy_.tokenizer, c.options);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(made.status().message())
                  .substr(0, std::string(c.message).size()),
              c.message);
  }
}

TEST_F(Llguidance, AStepThatIsTooMuchWorkEndsTheReplyWithAnError) {
  // Every item of the row is a rule of its own; the engine's limit of a row is
  // lower. What matters is that no text comes out as if it were fine.
  std::string lark = "start: ";
  for (int i = 0; i < 3000; ++i) {
    absl::StrAppend(&lark, i == 0 ? "" : " | ", "r", i);
  }
  absl::StrAppend(&lark, "\n");
  for (int i = 0; i < 3000; ++i) {
    absl::StrAppend(&lark, "r", i, ": \"x\" r", i, " \"y\" | \"x\" \"z", i,
                    "\"\n");
  }
  auto made = MakeConstraint(*toy_.tokenizer, {{"lark", lark}});
  if (!made.ok()) {
    EXPECT_THAT(std::string(made.status().message()),
                HasSubstr("invalid lark grammar: "));
    return;
  }
  std::vector<float> logits(static_cast<std::size_t>(toy_.rows));
  absl::Status status = (*made)->Mask(logits);
  for (int i = 0; i < 8 && status.ok(); ++i) {
    status.Update((*made)->Accept('x'));
    status.Update((*made)->Mask(logits));
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("constraint failed: "));
  EXPECT_FALSE((*made)->IsComplete());
}

}  // namespace
}  // namespace fucina
