// fucina-conformance as an author runs it: an honest family passes, and each
// lie is found by the property that is about it.

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "fucina/gguf/gguf_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/registry/scratch_dir.h"
#include "tests/tiny_models/tiny_models.h"

namespace fucina {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Outcome {
  int exit_code = -1;
  std::string output;  // both streams
};

Outcome RunProgram(const std::string& arguments) {
  const std::string command = std::string(FUCINA_BINARY_DIR) +
                              "/bin/fucina-conformance " + arguments + " 2>&1";
  Outcome outcome;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  while (const std::size_t n =
             std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    outcome.output.append(buffer.data(), n);
  }
  outcome.exit_code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

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
    return RunProgram("--plugin " + FixturePlugin("lie_" + lie) + " --model " +
                      model_);
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
      const Outcome outcome = RunProgram(
          "--plugin " + std::string(FUCINA_BINARY_DIR) +
          "/lib/fucina/plugins/libfucina_" + plugin + ".so --model " + model);
      EXPECT_EQ(outcome.exit_code, 0) << Name(dtype) << "\n" << outcome.output;
      EXPECT_THAT(outcome.output, Not(HasSubstr("n/a"))) << outcome.output;
    }
  }
}

TEST_F(Conformance, WithoutAModelItSaysWhatItSkipped) {
  const Outcome outcome = RunProgram("--plugin " + FixturePlugin("sample"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output,
              HasSubstr("note  families were not checked: give --model\n"));
}

TEST_F(Conformance, UnusableInputsAreThree) {
  const Outcome refused = RunProgram("--plugin " + FixturePlugin("wrong_core"));
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.output, HasSubstr("was built for another fucina"));
  const Outcome other =
      RunProgram("--plugin " + FixturePlugin("sample") + " --model " + model_);
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_THAT(other.output,
              HasSubstr("FAIL  model: is of a family of the plugin: no family "
                        "'fake'; known: sample"));
  const Outcome absent = RunProgram("--plugin " + FixturePlugin("lie_knone") +
                                    " --model " + dir_.File("none.gguf"));
  EXPECT_EQ(absent.exit_code, 3);
}

TEST_F(Conformance, WrongUseIsTwo) {
  EXPECT_EQ(RunProgram("").exit_code, 2);
  EXPECT_EQ(RunProgram("--plugn x").exit_code, 2);
  EXPECT_EQ(RunProgram("--plugin").exit_code, 2);
  EXPECT_EQ(RunProgram("--plugin x --kind tea").exit_code, 2);
  const Outcome help = RunProgram("--help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output, StartsWith("usage: fucina-conformance"));
}

}  // namespace
}  // namespace fucina
