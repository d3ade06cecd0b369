// fucina-conformance as an author runs it: an honest family passes, and each
// lie is found by the property that is about it.

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
using testing::RunConformance;
using ::testing::StartsWith;

class Conformance : public ::testing::Test {
 protected:
  Conformance() {
    GgufWriter writer;
    writer.AddString("general.architecture", "fake");
    const std::uint64_t ne[] = {4, 2};
    writer.AddF32Tensor("token_embd.weight", ne, std::vector<float>(8, 1.0F));
    EXPECT_TRUE(writer.Write(model_).ok());
  }

  Outcome Check(const std::string& lie) {
    return RunConformance("--plugin " + FixturePlugin("lie_" + lie) +
                          " --model " + model_);
  }

  ScratchDir dir_;
  std::string model_ = dir_.File("fake.gguf");
};

TEST_F(Conformance, AnHonestFamilyPasses) {
  const Outcome outcome = Check("knone");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, Not(HasSubstr("FAIL")));
  EXPECT_THAT(outcome.output, HasSubstr("ok    plugin: exports one symbol\n"));
  EXPECT_THAT(outcome.output,
              HasSubstr("ok    family 'fake': n tokens at once equal n tokens "
                        "one by one, bit for bit\n"));
  EXPECT_THAT(outcome.output,
              HasSubstr("n/a   family 'fake': an adapter of zeros equals no "
                        "adapter: no site takes an adapter\n"));
  EXPECT_THAT(outcome.output, HasSubstr(" properties, 0 failed\n"));
}

TEST_F(Conformance, EachLieIsFound) {
  const struct {
    const char* lie;
    const char* property;
  } lies[] = {
      {"krowsdependonbatch", "n tokens at once equal n tokens one by one"},
      {"ktruncateisforgotten", "truncating and appending equals a fresh state"},
      {"ksharedstate", "two states interleaved do not influence each other"},
      {"kcapacityignored", "past the capacity is OutOfRange"},
      {"ktapskipslayer",
       "a tap sees every layer once, in order: expected 2 "
       "calls, found 1"},
      {"ktapseestoomuch",
       "a tap sees only what it wants: expected one call, for layer 1, found "
       "calls for layers 0, 1"},
      {"knamesnotensor",
       "names a tensor that is missing: without "
       "'token_embd.weight' the message is: something is "
       "missing"},
      {"kgrows", "1,000 decode steps do not grow the heap: the heap grew by "},
  };
  for (const auto& [lie, property] : lies) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    // Sanitizers replace the allocator whose statistics this property reads.
    if (std::string(lie) == "kgrows") continue;
#endif
    const Outcome outcome = Check(lie);
    EXPECT_EQ(outcome.exit_code, 1) << lie << "\n" << outcome.output;
    EXPECT_THAT(outcome.output,
                HasSubstr("FAIL  family 'fake': " + std::string(property)));
  }
}

// The families of this tree keep every promise, quantised weights included.
TEST_F(Conformance, OurOwnFamiliesPass) {
  const std::pair<std::string, std::string> families[] = {
      {"qwen3", "qwen3"}, {"qwen3", "qwen3moe"}, {"glm4moe", "glm4moe"}};
  for (const auto& [plugin, architecture] : families) {
    for (const DType dtype : {DType::kF32, DType::kQ8_0}) {
      testing::TinyModelSpec spec;
      spec.architecture = architecture;
      spec.types = testing::TinyWeightTypes::All(dtype);
      const std::string model = dir_.File(architecture + ".gguf");
      ASSERT_TRUE(testing::WriteTinyModel(spec, model).ok());
      const Outcome outcome =
          RunConformance("--plugin " + testing::OwnPlugin(plugin) +
                         " --model " + model + " --kind family");
      EXPECT_EQ(outcome.exit_code, 0) << Name(dtype) << "\n" << outcome.output;
      EXPECT_THAT(outcome.output, Not(HasSubstr("n/a"))) << outcome.output;
    }
  }
}

TEST_F(Conformance, WithoutAModelItSaysWhatItSkipped) {
  const Outcome outcome = RunConformance("--plugin " + FixturePlugin("sample"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output,
              HasSubstr("note  families were not checked: give --model\n"));
}

TEST_F(Conformance, UnusableInputsAreThree) {
  const Outcome refused =
      RunConformance("--plugin " + FixturePlugin("wrong_core"));
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.output, HasSubstr("was built for another fucina"));
  const Outcome other = RunConformance("--plugin " + FixturePlugin("sample") +
                                       " --model " + model_);
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_THAT(other.output,
              HasSubstr("FAIL  model: is of a family of the plugin: no family "
                        "'fake'; known: sample"));
  const Outcome absent =
      RunConformance("--plugin " + FixturePlugin("lie_knone") + " --model " +
                     dir_.File("none.gguf"));
  EXPECT_EQ(absent.exit_code, 3);
}

TEST_F(Conformance, WrongUseIsTwo) {
  EXPECT_EQ(RunConformance("").exit_code, 2);
  for (const std::string twice :
       {"--plugin x --plugin y", "--model x --model y",
        "--option a=1 --option a=2", "--plugin ''"}) {
    EXPECT_EQ(RunConformance(twice).exit_code, 2) << twice;
  }
  EXPECT_EQ(RunConformance("-h").output, RunConformance("--help").output);
  EXPECT_EQ(RunConformance("--plugn x").exit_code, 2);
  EXPECT_EQ(RunConformance("--plugin").exit_code, 2);
  EXPECT_EQ(RunConformance("--plugin x --kind tea").exit_code, 2);
  for (const auto& [arguments, message] :
       {std::pair{"--kind family", "--kind needs --model"},
        std::pair{"--name a", "--name and --option need --kind"},
        std::pair{"--option a=b", "--name and --option need --kind"},
        std::pair{"--option ab", "--option: expected key=value, found 'ab'"},
        std::pair{"--option =b", "--option: expected key=value, found '=b'"}}) {
    const Outcome wrong =
        RunConformance(absl::StrCat("--plugin x ", arguments));
    EXPECT_EQ(wrong.exit_code, 2) << arguments;
    EXPECT_THAT(wrong.output, HasSubstr(message));
  }
  // Its lines are its result.
  EXPECT_EQ(
      RunConformance("--plugin " + FixturePlugin("sample") + " > /dev/full")
          .exit_code,
      4);
  const Outcome help = RunConformance("--help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output, StartsWith("usage: fucina-conformance"));
}

}  // namespace
}  // namespace fucina
