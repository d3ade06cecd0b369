#include "plugins/qwen3/qwen3_family.h"

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fucina/gguf/gguf_file.h"
#include "fucina/parallel/thread_pool.h"
#include "fucina/runner/runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tiny_models/tiny_models.h"

namespace fucina {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::SeededFixture;

struct LoadedFamily {
  LoadedFamily(const Family& family, const testing::TinyModelSpec& spec,
               const std::map<std::string, std::string>& values = {})
      : bytes(testing::TinyModelBytes(spec)),
        file(GgufFile::Parse("model.gguf", std::as_bytes(std::span(
                                               bytes.data(), bytes.size())))
                 .value()),
        decoder(family.load(*file, pool,
                            Options::Make(family.options, values).value())) {}

  std::string bytes;
  std::unique_ptr<GgufFile> file;
  ThreadPool pool{2};
  absl::StatusOr<std::unique_ptr<Decoder>> decoder;
};

TEST(Qwen3Family, LoadsBothArchitectures) {
  LoadedFamily dense(qwen3::DenseFamily(), SeededFixture("D"));
  ASSERT_TRUE(dense.decoder.ok()) << dense.decoder.status();
  EXPECT_EQ((*dense.decoder)->info().architecture, "qwen3");
  LoadedFamily experts(qwen3::ExpertsFamily(), SeededFixture("M"));
  ASSERT_TRUE(experts.decoder.ok()) << experts.decoder.status();
  EXPECT_EQ((*experts.decoder)->info().architecture, "qwen3moe");
}

// The published continuations of the seeded fixtures D and M.
TEST(Qwen3Family, ComputesThePublishedContinuations) {
  const auto chain = [](LoadedFamily& family) {
    const auto state = (*family.decoder)->NewState(64).value();
    std::vector<TokenId> input = {5, 61, 2, 33, 17};
    std::vector<TokenId> output;
    for (int i = 0; i < 6; ++i) {
      SequenceStep step = {.tokens = input, .state = state.get()};
      EXPECT_TRUE((*family.decoder)->Forward({&step, 1}).ok());
      const float* row = step.logits.row_f32(0);
      input = {static_cast<TokenId>(std::max_element(row, row + 64) - row)};
      output.push_back(input[0]);
    }
    return output;
  };
  LoadedFamily dense(qwen3::DenseFamily(), SeededFixture("D"));
  EXPECT_THAT(chain(dense), ElementsAre(27, 25, 16, 16, 16, 34));
  LoadedFamily experts(qwen3::ExpertsFamily(), SeededFixture("M"));
  EXPECT_THAT(chain(experts), ElementsAre(11, 25, 34, 25, 16, 23));
}

TEST(Qwen3Family, RefusesAnotherArchitecture) {
  LoadedFamily wrong(qwen3::DenseFamily(), SeededFixture("M"));
  EXPECT_EQ(wrong.decoder.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(wrong.decoder.status().message()),
              AllOf(HasSubstr("model.gguf"), HasSubstr("'qwen3moe'"),
                    HasSubstr("expected 'qwen3'")));
}

TEST(Qwen3Family, PassesItsOptionsOn) {
  LoadedFamily family(
      qwen3::DenseFamily(), SeededFixture("D"),
      {{"block_style", "host_reference"}, {"kernel_level", "scalar"}});
  ASSERT_TRUE(family.decoder.ok()) << family.decoder.status();
  const auto* runner = dynamic_cast<const Runner*>(family.decoder->get());
  ASSERT_NE(runner, nullptr);
  EXPECT_EQ(runner->block_style(), BlockStyle::kHostReference);
  EXPECT_EQ(runner->kernel_level(), KernelLevel::kScalar);
  LoadedFamily wrong(qwen3::DenseFamily(), SeededFixture("D"),
                     {{"block_style", "quick"}});
  EXPECT_EQ(wrong.decoder.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Qwen3Family, StatesTheAuthorsAdvice) {
  for (const Family* family :
       {&qwen3::DenseFamily(), &qwen3::ExpertsFamily()}) {
    ASSERT_NE(family->chat, nullptr);
    const ChatTraits& chat = *family->chat;
    EXPECT_FLOAT_EQ(chat.thinking.temperature, 0.6F);
    EXPECT_EQ(chat.thinking.top_k, 20);
    EXPECT_FLOAT_EQ(chat.thinking.top_p, 0.95F);
    EXPECT_EQ(chat.thinking.min_p, 0);
    EXPECT_FLOAT_EQ(chat.non_thinking.temperature, 0.7F);
    EXPECT_EQ(chat.non_thinking.top_k, 20);
    EXPECT_FLOAT_EQ(chat.non_thinking.top_p, 0.8F);
    EXPECT_THAT(chat.stop_tokens,
                ElementsAre("<|im_end|>", "<|endoftext|>", "<|fim_pad|>",
                            "<|repo_name|>", "<|file_sep|>"));
    EXPECT_EQ(chat.think_open, "<think>");
    EXPECT_EQ(chat.think_close, "</think>");
    EXPECT_THAT(chat.default_prompt, ElementsAre(151644, 872, 198, 9707));
  }
}

}  // namespace
}  // namespace fucina
