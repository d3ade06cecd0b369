// `fucina run` on model files that load and then turn out to be bad, and the
// switches that must not be lost on the way to the template.

#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fucina/gguf/gguf_file.h"
#include "fucina/gguf/gguf_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/program.h"

namespace fucina {
namespace {

using ::testing::AllOf;
using testing::EmbeddedModel;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramResult;
using testing::RunFucina;
using testing::TemporaryDirectory;
using testing::WriteFile;

constexpr char kTemplateKey[] = "tokenizer.chat_template";

// A copy of the embedded model with another text under `changed_key`, or with
// `value` as one element of its last norm.
std::string Changed(const std::string& changed_key, const std::string& text,
                    std::optional<float> value = {}) {
  const auto file = GgufFile::Open(EmbeddedModel()).value();
  GgufWriter writer;
  for (const absl::string_view key : file->keys()) {
    if (key == changed_key) {
      writer.AddString(key, text);
    } else {
      writer.AddValue(key, *file->Find(key));
    }
  }
  for (const GgufTensorInfo& info : file->tensors()) {
    const std::span<const std::uint64_t> ne(
        info.ne, static_cast<std::size_t>(info.rank));
    if (value.has_value() && info.name == "output_norm.weight") {
      const float* old = GgufFile::View(info).row_f32(0);
      std::vector<float> norm(old, old + ne[0]);
      norm[5] = *value;
      writer.AddF32Tensor(info.name, ne, norm);
    } else {
      writer.AddTensor(info.name, info.dtype, ne,
                       std::span(info.data, info.size_bytes));
    }
  }
  const std::string path = TemporaryDirectory() + "/changed.gguf";
  EXPECT_TRUE(writer.Write(path).ok());
  return path;
}

// SAMP-1 from end to end: not a token comes out.
TEST(ModelFaults, NumbersThatAreNoneAreAnErrorInEveryMode) {
  for (const float value : {std::nanf(""), HUGE_VALF}) {
    const std::string model = Changed("", "", value);
    const std::vector<std::vector<std::string>> modes = {
        {"--chat", "Hello", "--no-think", "--quiet"},
        {"--chat", "Hello", "--temp", "1", "--quiet"},
        {"--prompt", "Hello", "--gen", "5"},
        {"--prompt", "Hello"},
        {"--prompt", "Hello", "--verify-cache", "2"},
        {"--prompt", "Hello", "--verify-batch", "4"}};
    for (const std::vector<std::string>& mode : modes) {
      std::vector<std::string> args = {"run", model};
      args.insert(args.end(), mode.begin(), mode.end());
      const ProgramResult result = RunFucina(args);
      EXPECT_NE(result.exit_code, 0) << mode[0];
      EXPECT_LT(result.exit_code, 128) << mode[0];
      EXPECT_THAT(result.err, HasSubstr("fucina: error: numeric error at "
                                        "position "))
          << mode[0];
      EXPECT_THAT(result.out,
                  AllOf(Not(HasSubstr("generated")), Not(HasSubstr("PASS"))))
          << mode[0];
      if (mode[0] == "--chat") {
        EXPECT_EQ(result.out, "");
      }
    }
  }
}

// LOAD-18.
TEST(ModelFaults, AnArchitectureWithoutAPluginIsNamedWithWhatThereIs) {
  const ProgramResult result = RunFucina(
      {"run", Changed("general.architecture", "qwen99"), "--chat", "Hello"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(
      result.err,
      AllOf(HasSubstr("changed.gguf: no family 'qwen99'; known: "),
            HasSubstr("qwen3moe"), HasSubstr("plugins are looked for in /")));
}

// CHAT-2.
TEST(ModelFaults, ATemplateThatCannotBeUsedStopsChatsAndNothingElse) {
  const std::string model =
      Changed(kTemplateKey, "{# <|im_start|> #}\n  {% include 'other' %}");
  const ProgramResult chat = RunFucina({"run", model, "--chat", "Hello"});
  EXPECT_EQ(chat.exit_code, 3);
  EXPECT_EQ(chat.out, "");
  EXPECT_THAT(
      chat.err,
      HasSubstr("changed.gguf: tokenizer.chat_template, line 2, column 6: "
                "unsupported statement 'include'; name a template file, or the "
                "built-in format 'chatml', which its markers suggest"));
  const ProgramResult raw = RunFucina(
      {"run", model, "--prompt", "The capital of Peru is", "--gen", "3"});
  EXPECT_EQ(raw.exit_code, 0) << raw.err;
  EXPECT_THAT(raw.out, HasSubstr("The capital of Peru is Lima."));
  const ProgramResult named =
      RunFucina({"run", model, "--chat", "What is the capital of Peru?",
                 "--chat-template", "chatml", "--temp", "0", "--quiet"});
  EXPECT_EQ(named.exit_code, 0) << named.err;
  EXPECT_NE(named.out, "");
}

// CHAT-9: a template of the file that never ends, or writes without end.
TEST(ModelFaults, ATemplateWithoutEndIsStopped) {
  for (const char* text :
       {"{% for a in range(9999) %}{% for b in range(9999) %}"
        "{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}",
        "{% for a in range(9999) %}{{ 'x' * 99999 }}{% endfor %}",
        "{% macro again(n) %}{{ again(n + 1) }}{% endmacro %}{{ again(0) }}"}) {
    const ProgramResult result =
        RunFucina({"run", Changed(kTemplateKey, text), "--chat", "Hello"});
    EXPECT_NE(result.exit_code, 0) << text;
    EXPECT_LT(result.exit_code, 128) << text;
    EXPECT_THAT(result.err, HasSubstr("fucina: error: ")) << text;
    EXPECT_EQ(result.out, "") << text;
  }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // takes terabytes of addresses
#else
constexpr bool kSanitized = false;
#endif

// CPU-8, R-1: memory that ends at any moment is exit code 4, never a signal.
TEST(Limits, MemoryThatEndsIsExitCode4) {
  int refused = 0;
  for (int kib = 13000; kib < 60000 && !kSanitized; kib += 3700) {
    const ProgramResult result = testing::RunShell(
        "ulimit -v " + std::to_string(kib) + "; exec fucina run --chat " +
        "'What is the capital of Peru?' --no-think --temp 0 --threads 2 "
        "--quiet");
    if (result.exit_code == 0) {
      EXPECT_EQ(result.out, "The capital of Peru is Lima.\n");
      continue;
    }
    if (result.exit_code == 127) continue;  // too little for the libraries
    EXPECT_EQ(result.exit_code, 4) << kib << "\n" << result.err;
    EXPECT_THAT(result.err, HasSubstr("fucina: error: ")) << kib;
    ++refused;
  }
  if (!kSanitized) {
    EXPECT_GT(refused, 2);
  }
}

// CTX-2 and CHAT-6: an end that is no end says so, and what to do.
TEST(Limits, AReplyThatWasCutSaysWhy) {
  const std::vector<std::string> ask = {
      "run", "--chat", "What is the capital of Peru?", "--temp", "0"};
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args = ask;
    args.insert(args.end(), more.begin(), more.end());
    const ProgramResult result = RunFucina(args);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.err;
  };
  EXPECT_THAT(run({"--gen", "3"}),
              AllOf(HasSubstr("the reply reached its limit while thinking; "
                              "raise --gen or use --no-think"),
                    HasSubstr("thinking "), HasSubstr("ended by length")));
  EXPECT_THAT(run({"--gen", "3", "--no-think"}),
              AllOf(HasSubstr("the reply reached its limit; raise --gen"),
                    HasSubstr("[3 tokens"), HasSubstr("ended by length")));
  EXPECT_THAT(run({"--ctx", "22", "--no-think"}),
              HasSubstr("the reply filled the context; raise --ctx"));
}

// The ids that --show-prompt prints.
std::string PromptIds(const std::vector<std::string>& more,
                      std::string* err = nullptr) {
  std::vector<std::string> args = {"run", "--chat",        "Hi",    "--temp",
                                   "0",   "--show-prompt", "--gen", "1"};
  args.insert(args.end(), more.begin(), more.end());
  const ProgramResult result = RunFucina(args);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  if (err != nullptr) *err = result.err;
  const std::string mark = "--- ids ---\n";
  const std::size_t begin = result.err.find(mark) + mark.size();
  return result.err.substr(begin, result.err.find("\n---\n", begin) - begin);
}

// CHAT-3: the flag, the same in YAML, and the template's argument.
TEST(NoThink, EveryWayToSayItReachesThePrompt) {
  std::string err;
  const std::string flag = PromptIds({"--no-think"}, &err);
  EXPECT_THAT(err, HasSubstr("<|im_start|>assistant\n<think>\n\n</think>\n\n"
                             "\n--- ids ---"));
  const std::string folder = TemporaryDirectory();
  WriteFile(folder + "/key.yaml", "version: 1\nchat: {thinking: false}\n");
  WriteFile(folder + "/argument.yaml",
            "version: 1\nchat:\n  template_arguments: "
            "'{\"enable_thinking\": false}'\n");
  EXPECT_EQ(PromptIds({"--config", folder + "/key.yaml"}), flag);
  EXPECT_EQ(PromptIds({"--config", folder + "/argument.yaml"}), flag);
  EXPECT_EQ(
      PromptIds({"--template-arguments", R"({"enable_thinking": false})"}),
      flag);
  const std::string on = PromptIds({}, &err);
  EXPECT_NE(on, flag);
  EXPECT_THAT(err, HasSubstr("<|im_start|>assistant\n\n--- ids ---"));
}

TEST(NoThink, AnArgumentThatNobodyReadsIsReported) {
  std::string err;
  PromptIds({"--template-arguments", R"({"mood": 1})"}, &err);
  EXPECT_THAT(err, HasSubstr("never reads the argument 'mood'"));
}

}  // namespace
}  // namespace fucina
