// The suite for constraints: an honest one passes, each lie is found by the
// property that is about it, and our own keep every promise.

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/registry/conformance_program.h"
#include "tests/registry/scratch_dir.h"
#include "tests/tiny_models/tiny_models.h"

namespace fucina {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using testing::OwnPlugin;
using testing::RunConformance;

class ConstraintConformance : public ::testing::Test {
 protected:
  ConstraintConformance() {
    testing::TinyModelSpec spec;
    spec.with_tokenizer = true;
    EXPECT_TRUE(testing::WriteTinyModel(spec, model_).ok());
  }

  // As --kind constraint, with the model.
  Outcome Check(const std::string& plugin, const std::string& arguments) {
    return RunConformance(absl::StrCat("--plugin ", plugin, " --model ", model_,
                                       " --kind constraint ", arguments));
  }

  ScratchDir dir_;
  std::string model_ = dir_.File("tiny.gguf");
};

TEST_F(ConstraintConformance, AnHonestOnePasses) {
  for (const char* digits : {"1", "4", "9"}) {
    const Outcome outcome =
        Check(FixturePlugin("constraint_liars"),
              absl::StrCat("--name honest --option digits=", digits));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_THAT(outcome.output, Not(HasSubstr("n/a")));
    EXPECT_THAT(outcome.output,
                HasSubstr("ok    constraint 'honest': clones do not influence "
                          "each other\n"));
    EXPECT_THAT(outcome.output, HasSubstr("24 properties, 0 failed\n"));
  }
}

TEST_F(ConstraintConformance, LookAheadsAreNotAsked) {
  const Outcome outcome =
      Check(FixturePlugin("constraint_liars"), "--name looks_not_ahead");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output,
              HasSubstr("n/a   constraint 'looks_not_ahead': forced tokens fit "
                        "and are all that is allowed: no token was ever "
                        "forced\n"));
  EXPECT_THAT(outcome.output,
              HasSubstr("n/a   constraint 'looks_not_ahead': the valid prefix "
                        "is what is accepted: no draft is cut: its answer is "
                        "the number of tokens\n"));
}

TEST_F(ConstraintConformance, EachLieIsFound) {
  const struct {
    const char* lie;
    const char* property;
  } lies[] = {
      {"makes_nothing",
       "is made with the options given: OK, and no constraint\n"},
      {"leaves_nothing",
       "allows replies, token by token: after 3 tokens every one is "
       "forbidden\n"},
      {"rescales", "a mask forbids tokens and changes nothing else: after 0"},
      {"looks_at_logits", "what is forbidden does not depend on the logits"},
      {"mask_moves", "the same state has the same mask: after 3 tokens"},
      {"padding_allowed", "rows that are no tokens are forbidden: row"},
      {"refuses_allowed", "what is allowed is accepted: after 3 tokens"},
      {"complete_at_once",
       "is complete where a stop token may follow and nowhere else: after 0 "
       "tokens a stop token is forbidden and the answer is complete\n"},
      {"never_complete",
       "is complete where a stop token may follow and nowhere else: after 4 "
       "tokens a stop token is allowed and the answer is not complete\n"},
      {"complete_moves", "asking whether it is complete changes nothing"},
      {"forced_moves", "asking for forced tokens changes nothing: after 3"},
      {"forced_guesses", "forced tokens fit and are all that is allowed"},
      {"forced_overruns",
       "forced tokens fit and are all that is allowed: after 0 tokens: 2 where "
       "there was room for 1\n"},
      {"prefix_moves", "asking for the valid prefix changes nothing"},
      {"prefix_too_long", "the valid prefix is what is accepted: after"},
      {"prefix_too_short", "the valid prefix is what is accepted: after"},
      {"garbage_is_valid",
       "ids outside the vocabulary are not valid and do no harm: after 0"},
      {"garbage_poisons",
       "ids outside the vocabulary are not valid and do no harm: Mask: "},
      {"reset_keeps", "a reset begins anew, also after an error: reset after"},
      {"error_sticks",
       "a reset begins anew, also after an error: reset after 0 tokens and an "
       "error: Mask: INTERNAL: failed\n"},
      {"cannot_clone",
       "allows replies, token by token: cannot be cloned: one of a kind\n"},
      {"clones_share", "clones do not influence each other: after"},
      {"thread_bound", "two threads on two clones equal one thread: Mask: "},
      {"makes_another", "the same options make the same constraint: after 3"},
      {"stop_tokens_ignored", "stop tokens that are given end replies: after"},
      {"options_unnamed", "bad options are refused by name: digits = '"},
  };
  const Outcome outcome = Check(FixturePlugin("constraint_liars"), "");
  EXPECT_EQ(outcome.exit_code, 1);
  for (const auto& [lie, property] : lies) {
    EXPECT_THAT(outcome.output, HasSubstr(absl::StrCat("FAIL  constraint '",
                                                       lie, "': ", property)));
  }
  EXPECT_THAT(outcome.output, Not(HasSubstr("FAIL  constraint 'honest'")));
}

TEST_F(ConstraintConformance, WhatIsNotCheckedIsSaid) {
  // Not asked for by kind: a note.
  const Outcome note = RunConformance(
      absl::StrCat("--plugin ", FixturePlugin("constraint_liars")));
  EXPECT_EQ(note.exit_code, 0) << note.output;
  EXPECT_THAT(note.output,
              HasSubstr("note  constraints were not checked: give --model\n"));
  // Asked for: a failure.
  const Outcome refused = Check(FixturePlugin("sample"), "");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output,
              HasSubstr("FAIL  constraint 'sample': is made with the options "
                        "given: sample forbids nothing\n"));
  const Outcome option = Check(FixturePlugin("constraint_liars"),
                               "--name honest --option digit=1");
  EXPECT_EQ(option.exit_code, 1);
  EXPECT_THAT(option.output,
              HasSubstr("FAIL  constraint 'honest': is made with the options "
                        "given: "));
  EXPECT_THAT(option.output, HasSubstr("did you mean 'digits'"));
}

TEST_F(ConstraintConformance, WhatCannotBeCheckedIsThree) {
  const Outcome none = Check(FixturePlugin("lie_knone"), "");
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(none.output,
              HasSubstr("FAIL  plugin: offers a constraint: none\n"));
  const Outcome name =
      Check(FixturePlugin("constraint_liars"), "--name truthful");
  EXPECT_EQ(name.exit_code, 3);
  EXPECT_THAT(name.output,
              HasSubstr("FAIL  plugin: offers a constraint of that "
                        "name: truthful\n"));
  ASSERT_TRUE(testing::WriteTinyModel({}, model_).ok());
  const Outcome text = Check(FixturePlugin("constraint_liars"), "");
  EXPECT_EQ(text.exit_code, 3);
  EXPECT_THAT(text.output, HasSubstr("FAIL  model: has a vocabulary: "));
}

#if FUCINA_HAS_LLGUIDANCE
TEST_F(ConstraintConformance, OurOwnPass) {
  const struct {
    const char* options;
    bool forces;
  } cases[] = {
      {"--option 'regex=[0-9]{3}'", false},
      {"--option 'regex=(yes|no), [a-z ]{0,9}because'", true},
      {"--option 'json_schema={\"type\":\"object\",\"properties\":{\"city\":"
       "{\"type\":\"string\",\"maxLength\":9},\"big\":{\"type\":\"boolean\"}},"
       "\"required\":[\"city\",\"big\"],\"additionalProperties\":false}'",
       true},
      {"--option 'json_schema={}' --option json_compact=true", false},
      {"--option 'lark=start: \"no\" | \"yes\" list\nlist: \" item\"+'", true},
  };
  for (const auto& [options, forces] : cases) {
    const Outcome outcome = Check(OwnPlugin("llguidance"), options);
    EXPECT_EQ(outcome.exit_code, 0) << options << "\n" << outcome.output;
    if (forces) {
      EXPECT_THAT(outcome.output, Not(HasSubstr("n/a"))) << options;
    }
  }
  const Outcome note = RunConformance(
      absl::StrCat("--plugin ", OwnPlugin("llguidance"), " --model ", model_));
  EXPECT_EQ(note.exit_code, 0) << note.output;
  EXPECT_THAT(note.output,
              HasSubstr("note  constraint 'llguidance' was not checked: no "
                        "grammar: give json_schema, lark or regex; give --kind "
                        "constraint and its options\n"));
}
#endif

}  // namespace
}  // namespace fucina
