// The suite for drafters: an honest one passes, each lie is found by the
// property that is about it, and our own keep every promise.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fucina/gguf/gguf_writer.h"
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

class DrafterConformance : public ::testing::Test {
 protected:
  // Of the architecture that the lying plugin's own family loads.
  DrafterConformance() {
    GgufWriter writer;
    writer.AddString("general.architecture", "fake");
    const std::uint64_t ne[] = {4, 2};
    writer.AddF32Tensor("token_embd.weight", ne, std::vector<float>(8, 1.0F));
    EXPECT_TRUE(writer.Write(model_).ok());
  }

  // As --kind drafter.
  Outcome Check(const std::string& plugin, const std::string& model,
                const std::string& arguments) {
    return RunConformance(absl::StrCat("--plugin ", plugin, " --model ", model,
                                       " --kind drafter ", arguments));
  }
  std::string TinyModel(const std::string& architecture) {
    testing::TinyModelSpec spec;
    spec.architecture = architecture;
    const std::string path = dir_.File(architecture + ".gguf");
    EXPECT_TRUE(testing::WriteTinyModel(spec, path).ok());
    return path;
  }

  ScratchDir dir_;
  std::string model_ = dir_.File("fake.gguf");
};

TEST_F(DrafterConformance, HonestOnesPass) {
  const std::string plugin = FixturePlugin("drafter_liars");
  for (const char* most : {"1", "8", "64"}) {
    const Outcome outcome = Check(
        plugin, model_, absl::StrCat("--name honest --option most=", most));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_THAT(outcome.output,
                HasSubstr("ok    drafter 'honest': replies are those without "
                          "it\n"));
    EXPECT_THAT(outcome.output,
                HasSubstr("n/a   drafter 'honest': its tap wants the same rows "
                          "throughout: it reads no hidden states\n"));
    EXPECT_THAT(outcome.output, HasSubstr("22 properties, 0 failed\n"));
  }
  const Outcome outcome = Check(plugin, model_, "--name reads_hidden");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, Not(HasSubstr("n/a")));
}

TEST_F(DrafterConformance, EachLieIsFound) {
  const struct {
    const char* lie;
    const char* property;
  } lies[] = {
      {"makes_nothing", "is made with the options given: OK, and no drafter\n"},
      {"makes_one",
       "drafts fit and are tokens of the vocabulary: cannot be made again: "
       "UNIMPLEMENTED: one is enough\n"},
      {"overruns",
       "drafts fit and are tokens of the vocabulary: after 42 tokens: 2 where "
       "there was room for 1\n"},
      {"outside_vocabulary",
       "drafts fit and are tokens of the vocabulary: after 42 tokens: drafts "
       "32, which is no token\n"},
      {"class_outside",
       "classes of drafts are known ones: expected 0 to 15, found 16\n"},
      {"forgetful", "the same history has the same drafts: draft 0: expected "},
      {"pieces_matter",
       "how a prompt is cut into pieces changes no draft: pieces of 2: "},
      {"empty_piece", "how a prompt is cut into pieces changes no draft: "},
      {"cut_is_forgotten",
       "a draft that was cut to nothing leaves no trace: after 20 cut drafts"},
      {"rewind_forgets_all", "a rewind to where it is changes nothing: draft "},
      {"rewind_ignored",
       "after a rewind it drafts as a new one does: rewound to 40 tokens: "
       "drafts 0 tokens, 0 of them right; a new one "},
      {"long_history",
       "a long history does no harm: after 99992 tokens: -1 where there was "
       "room for 8\n"},
      {"tap_writes", "replies are those without it: at temperature 0 they "},
      {"shares", "two drafters in turns do not influence each other: draft 0"},
      {"thread_bound", "two threads on two drafters equal one thread: draft 0"},
      {"wants_too_many",
       "wants a possible number of candidates: wants 33 of 32 tokens\n"},
      {"tap_changes",
       "its tap wants the same rows throughout: layer 0: wants other rows "
       "after a reply than before\n"},
      {"tap_moves",
       "its tap wants the same rows throughout: it has another tap now\n"},
      {"document_is_internal",
       "takes a document or says why not: a document of 120 tokens: expected "},
      {"reports_lines",
       "reports in one line: 7 bytes, control characters in them\n"},
      {"foreign_is_invalid",
       "takes a model of another family or is Unimplemented: expected OK or "
       "Unimplemented, found INVALID_ARGUMENT: not this model\n"},
      {"options_unnamed", "bad options are refused by name: most = '"},
  };
  const Outcome outcome = Check(FixturePlugin("drafter_liars"), model_, "");
  EXPECT_EQ(outcome.exit_code, 1);
  for (const auto& [lie, property] : lies) {
    EXPECT_THAT(outcome.output, HasSubstr(absl::StrCat("FAIL  drafter '", lie,
                                                       "': ", property)));
  }
  EXPECT_THAT(outcome.output, Not(HasSubstr("FAIL  drafter 'honest'")));
  EXPECT_THAT(outcome.output, Not(HasSubstr("FAIL  drafter 'reads_hidden'")));
}

TEST_F(DrafterConformance, OurOwnPass) {
  const std::string qwen3 = TinyModel("qwen3");
  const std::string glm = TinyModel("glm4moe");
  const std::string no_options =
      "n/a   drafter 'recycling': bad options are refused by name: it has no "
      "options\n";
  // The families come from the plugins beside libfucina.
  for (const std::string& model : {qwen3, glm}) {
    const Outcome outcome = Check(OwnPlugin("spec"), model, "");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(no_options));
    EXPECT_THAT(outcome.output, HasSubstr("56 properties, 0 failed\n"));
  }
  for (const char* arguments :
       {"--name suffix --option min_match=1 --option beta=1",
        "--name cascade --option min_match=64 --option max_index_tokens=100"}) {
    const Outcome outcome = Check(OwnPlugin("spec"), qwen3, arguments);
    EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.output;
  }
  for (const char* arguments :
       {"", "--option depth=8 --option p_min=0", "--option depth=1"}) {
    const Outcome outcome = Check(OwnPlugin("glm4moe"), glm, arguments);
    EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.output;
    EXPECT_THAT(outcome.output,
                HasSubstr("ok    drafter 'glm4moe_mtp': its tap wants the same "
                          "rows throughout\n"));
    EXPECT_THAT(outcome.output,
                HasSubstr("n/a   drafter 'glm4moe_mtp': takes a document or "
                          "says why not: it reads no documents\n"));
  }
}

TEST_F(DrafterConformance, WhatIsNotCheckedIsSaid) {
  const std::string qwen3 = TinyModel("qwen3");
  // A drafter of one family, and a model of another.
  const Outcome other = Check(OwnPlugin("glm4moe"), qwen3, "");
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.output,
              HasSubstr("FAIL  drafter 'glm4moe_mtp': is made with the options "
                        "given: drafts with the prediction layer of glm4moe "
                        "models only"));
  // A model that gives it nothing to draft with, not asked for by kind.
  testing::TinyModelSpec bare;
  bare.architecture = "glm4moe";
  bare.num_nextn_layers = 0;
  const std::string model = dir_.File("bare.gguf");
  ASSERT_TRUE(testing::WriteTinyModel(bare, model).ok());
  const Outcome note = RunConformance(
      absl::StrCat("--plugin ", OwnPlugin("glm4moe"), " --model ", model));
  EXPECT_EQ(note.exit_code, 0) << note.output;
  EXPECT_THAT(note.output, HasSubstr("ok    family 'glm4moe': "));
  EXPECT_THAT(note.output,
              HasSubstr("note  drafter 'glm4moe_mtp' was not checked: "));
  // No family for the model at all.
  const Outcome none = Check(OwnPlugin("spec"), model_, "");
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(none.output, HasSubstr("FAIL  model: can be loaded: no family "
                                     "'fake'"));
  const Outcome without = RunConformance(
      absl::StrCat("--plugin ", OwnPlugin("spec"), " --model ", model_));
  EXPECT_EQ(without.exit_code, 0) << without.output;
  EXPECT_THAT(without.output,
              HasSubstr("note  drafters were not checked: no family 'fake'"));
  // Too little context for the texts.
  testing::TinyModelSpec spec;
  spec.context_length = 100;
  ASSERT_TRUE(testing::WriteTinyModel(spec, qwen3).ok());
  const Outcome small = Check(OwnPlugin("spec"), qwen3, "--name suffix");
  EXPECT_EQ(small.exit_code, 1);
  EXPECT_THAT(small.output,
              HasSubstr("the test model must hold 184 tokens of context\n"));
}

}  // namespace
}  // namespace fucina
