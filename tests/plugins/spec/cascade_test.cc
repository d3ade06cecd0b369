#include "plugins/spec/cascade.h"

#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fucina::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Tokens = std::vector<TokenId>;

// A cascade and the stream that it was told.
class Fed {
 public:
  explicit Fed(const CascadeOptions& options = {.recycling = false})
      : cascade(1000, options) {}
  void Commit(const Tokens& tokens) {
    stream.insert(stream.end(), tokens.begin(), tokens.end());
    cascade.Commit(tokens);
  }
  Tokens Propose(std::size_t cap = 16) {
    Tokens draft(cap);
    draft.resize(static_cast<std::size_t>(cascade.Propose(stream, draft)));
    return draft;
  }
  Cascade cascade;
  Tokens stream;
};

TEST(CascadeTest, TheLongestMatchSpeaks) {
  Fed fed;
  ASSERT_TRUE(
      fed.cascade.AddReference(Tokens{4, 7, 5, 6, 200, 201, 202, 203}).ok());
  fed.Commit({5, 6, 100, 7, 5, 6});
  EXPECT_THAT(fed.Propose(), ElementsAre(200, 201, 202, 203));
  // A tie goes to the conversation.
  fed.Commit({100, 7, 9, 5, 6});
  EXPECT_EQ(fed.Propose().front(), 100);
}

TEST(CascadeTest, AReferenceAddedLateCatchesUp) {
  Fed fed;
  fed.Commit({5, 6, 100, 7, 5, 6});
  ASSERT_TRUE(
      fed.cascade.AddReference(Tokens{4, 7, 5, 6, 200, 201, 202, 203}).ok());
  EXPECT_THAT(fed.Propose(), ElementsAre(200, 201, 202, 203));
}

TEST(CascadeTest, TheMatchBoundsTheDraft) {
  Fed fed;
  fed.Commit({1, 2, 3, 4, 5, 6, 1, 2});
  EXPECT_THAT(fed.Propose(), ElementsAre(3, 4, 5, 6, 1, 2));
  fed.Commit({3, 4, 99});
  EXPECT_THAT(fed.cascade.Report(), HasSubstr("conversation 2/6"));

  for (const int beta : {2, 3}) {
    Fed other(CascadeOptions{.recycling = false, .beta = beta});
    other.Commit({10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 30, 10, 11});
    EXPECT_THAT(other.Propose(), SizeIs(3 * beta));
  }
}

TEST(CascadeTest, ASourceThatIsWrongIsMuted) {
  Fed fed;
  fed.Commit({10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 10, 11, 12, 13});
  TokenId fresh = 100;
  for (int i = 0; i < 16; ++i) {
    ASSERT_FALSE(fed.cascade.conversation_record().muted()) << i;
    ASSERT_THAT(fed.Propose(4), SizeIs(4)) << i;
    fed.Commit({fresh++});
    if (i == 15) break;
    // Back to a match; nothing was proposed, so nothing is judged.
    fed.Commit({10, 11, 12, 13});
  }
  EXPECT_EQ(fed.cascade.conversation_record().mute_left(), 127);
  for (int i = 0; i < 126; ++i) fed.Commit({static_cast<TokenId>(10 + i % 4)});
  EXPECT_THAT(fed.Propose(), IsEmpty());
  fed.Commit({10});
  EXPECT_FALSE(fed.cascade.conversation_record().muted());
}

TEST(CascadeTest, RecyclingSpeaksWithoutAMatch) {
  Fed fed(CascadeOptions{});
  EXPECT_EQ(fed.cascade.wants_candidates(), 8);
  fed.Commit({5, 9});
  fed.cascade.OnCandidates(5, Tokens{7, 8});
  fed.cascade.OnCandidates(9, Tokens{6, 4});
  EXPECT_THAT(fed.Propose(1), ElementsAre(6));
  // What followed 5 stays in front of what the model thought of.
  fed.Commit({5});
  EXPECT_THAT(fed.Propose(2), ElementsAre(9, 5));
}

// Pairs across two calls, and rows of tokens that no longer are the newest.
TEST(CascadeTest, RecyclingLearnsWhatFollowedWhat) {
  Fed fed(CascadeOptions{.conversation = false});
  fed.Commit({5});
  fed.Commit({9, 3});
  fed.Commit({3, 5});
  EXPECT_THAT(fed.Propose(3), ElementsAre(9, 3, 5));
  // The model's candidates replace a row; what followed goes first again.
  fed.cascade.OnCandidates(3, Tokens{40, 41, 42});
  fed.Commit({3});
  EXPECT_THAT(fed.Propose(2), ElementsAre(5, 3));
  // At most eight in a row, however much is asked for.
  for (TokenId token = 100; token < 140; ++token) fed.Commit({token});
  fed.Commit({100});
  EXPECT_THAT(fed.Propose(16),
              ElementsAre(101, 102, 103, 104, 105, 106, 107, 108));
}

TEST(CascadeTest, ADocumentFollowsTheStreamWhileItIsMuted) {
  Fed fed(CascadeOptions{.conversation = false, .recycling = false});
  Tokens document;
  for (TokenId token = 100; token < 400; ++token) document.push_back(token);
  ASSERT_TRUE(fed.cascade.AddReference(document).ok());
  // Sixteen drafts of four, all wrong: muted for 128 tokens, one of them gone.
  TokenId fresh = 500;
  for (int i = 0; i < 16; ++i) {
    fed.Commit({100, 101});
    ASSERT_THAT(fed.Propose(4), ElementsAre(102, 103, 104, 105)) << i;
    fed.Commit({fresh++});
  }
  EXPECT_THAT(fed.cascade.Report(), HasSubstr("reference 1 0/64 muted"));
  fed.Commit(Tokens(document.begin(), document.begin() + 126));
  EXPECT_THAT(fed.Propose(4), IsEmpty());
  fed.Commit({document[126]});
  EXPECT_THAT(fed.Propose(4), ElementsAre(227, 228, 229, 230));
  // Right now: it takes another 64 drafts to mute it.
  fed.Commit({227, 228, 229, 230, 231});
  EXPECT_THAT(fed.cascade.Report(), HasSubstr("reference 1 4/68"));
}

TEST(CascadeTest, OnlyTheDraftThatWasAskedForLastIsJudged) {
  Fed fed;
  fed.Commit({1, 2, 3, 4, 1, 2});
  ASSERT_THAT(fed.Propose(2), ElementsAre(3, 4));
  ASSERT_THAT(fed.Propose(1), ElementsAre(3));
  fed.Commit({3});
  EXPECT_THAT(fed.cascade.Report(), HasSubstr("conversation 1/1"));
  ASSERT_THAT(fed.Propose(2), ElementsAre(4, 1));
  fed.cascade.Rewind(7);
  fed.Commit({9});
  EXPECT_THAT(fed.cascade.Report(), HasSubstr("conversation 1/1"));
}

// What the decoder does not verify is nobody's mistake.
TEST(CascadeTest, JudgesOnlyWhatIsVerified) {
  Fed fed;
  fed.Commit({1, 2, 3, 4, 5, 6, 1, 2});
  ASSERT_THAT(fed.Propose(4), ElementsAre(3, 4, 5, 6));
  fed.cascade.Cut(2);
  fed.Commit({3, 9});
  EXPECT_THAT(fed.cascade.Report(), HasSubstr("conversation 1/2"));
  fed.Commit({1, 2});
  ASSERT_THAT(fed.Propose(4), SizeIs(4));
  fed.cascade.Cut(0);
  fed.Commit({8});
  EXPECT_THAT(fed.cascade.Report(), HasSubstr("conversation 1/2"));
  fed.Commit({1, 2});
  ASSERT_THAT(fed.Propose(4), ElementsAre(8, 1, 2));
  fed.cascade.Cut(100);  // more than there are
  fed.Commit({7});
  EXPECT_THAT(fed.cascade.Report(), HasSubstr("conversation 1/5"));
}

// Sources, and matches of different length, are different classes.
TEST(CascadeTest, SaysHowReliableADraftIs) {
  Fed fed(CascadeOptions{});
  ASSERT_TRUE(fed.cascade.AddReference(Tokens{50, 51, 52, 53}).ok());
  const auto class_of_next = [&] {
    EXPECT_THAT(fed.Propose(4), Not(IsEmpty()));
    const int draft_class = fed.cascade.draft_class();
    EXPECT_GE(draft_class, 0);
    EXPECT_LT(draft_class, kMaxDraftClasses);
    return draft_class;
  };
  Tokens passage;
  for (TokenId token = 100; token < 140; ++token) passage.push_back(token);
  fed.Commit(passage);
  std::set<int> classes;
  fed.Commit({100, 101});
  classes.insert(class_of_next());  // a short match
  fed.Commit(Tokens(passage.begin() + 2, passage.begin() + 20));
  classes.insert(class_of_next());  // a long one
  fed.Commit({50, 51});
  classes.insert(class_of_next());  // of the document
  fed.Commit({117});
  classes.insert(class_of_next());  // what followed this token alone
  EXPECT_EQ(classes.size(), 4U);
}

TEST(CascadeTest, ForgetsWhatIsTakenBack) {
  Fed fed;
  fed.Commit({1, 2, 3, 4, 5, 6, 1, 2});
  fed.cascade.Rewind(4);
  fed.stream.resize(4);
  EXPECT_THAT(fed.Propose(), IsEmpty());
  fed.Commit({8, 1, 2});
  EXPECT_THAT(fed.Propose(), ElementsAre(3, 4, 8, 1, 2));
  fed.cascade.Rewind(7);  // all that there is
  EXPECT_THAT(fed.Propose(), ElementsAre(3, 4, 8, 1, 2));
  fed.cascade.Rewind(0);
  fed.stream.clear();
  EXPECT_THAT(fed.Propose(), IsEmpty());
}

TEST(CascadeTest, AStreamThatItDoesNotKnowGetsNoDraft) {
  Fed fed;
  fed.Commit({1, 2, 3, 1, 2});
  fed.stream.back() = 7;
  EXPECT_THAT(fed.Propose(), IsEmpty());
  fed.stream.clear();
  EXPECT_THAT(fed.Propose(), IsEmpty());
}

TEST(CascadeTest, GoesOnWhenTheIndexIsFull) {
  Fed fed(CascadeOptions{.recycling = false, .max_index_tokens = 4});
  fed.Commit({1, 2, 1, 2, 1, 2});
  EXPECT_THAT(fed.Propose(), IsEmpty());
  EXPECT_THAT(fed.cascade.Report(), HasSubstr("index full"));
  fed.cascade.Rewind(3);
  fed.stream.resize(3);
  EXPECT_THAT(fed.Propose(), IsEmpty());
  fed.Commit({2});
  EXPECT_THAT(fed.Propose(2), ElementsAre(1, 2));
}

TEST(CascadeTest, RefusesReferencesItCannotUse) {
  Fed fed;
  EXPECT_EQ(fed.cascade.AddReference({}).message(), "the document is empty");
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(fed.cascade.AddReference(Tokens{1, 2}).ok());
  }
  EXPECT_EQ(fed.cascade.AddReference(Tokens{1, 2}).message(),
            "too many reference documents (max 8)");
}

}  // namespace
}  // namespace fucina::spec
