#include "plugins/glm4moe/glm4moe_family.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/glm4moe/loaded_glm.h"

namespace fucina {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LoadedGlm;
using testing::SeededFixture;

// Greedy, one state.
std::vector<TokenId> Chain(const Decoder& decoder) {
  const auto state = decoder.NewState(64).value();
  std::vector<TokenId> input = {5, 61, 2, 33, 17};
  std::vector<TokenId> output;
  for (int i = 0; i < 6; ++i) {
    SequenceStep step = {.tokens = input, .state = state.get()};
    EXPECT_TRUE(decoder.Forward({&step, 1}).ok());
    input = {testing::Best({step.logits.row_f32(0), 64})};
    output.push_back(input[0]);
  }
  return output;
}

// The published continuations of the seeded fixtures, with and without head
// norms, on both blocks.
TEST(Glm4MoeFamily, ComputesThePublishedContinuations) {
  for (const char* style : {"fused", "host_reference"}) {
    LoadedGlm air(SeededFixture("G"), {{"block_style", style}});
    ASSERT_TRUE(air.decoder.ok()) << air.decoder.status();
    EXPECT_EQ((*air.decoder)->info().architecture, "glm4moe");
    EXPECT_EQ((*air.decoder)->info().num_layers, 2);
    EXPECT_THAT(Chain(**air.decoder), ElementsAre(32, 55, 16, 34, 32, 16));
    LoadedGlm large(SeededFixture("Gq"), {{"block_style", style}});
    ASSERT_TRUE(large.decoder.ok()) << large.decoder.status();
    EXPECT_THAT(Chain(**large.decoder), ElementsAre(39, 32, 32, 9, 32, 9));
  }
}

TEST(Glm4MoeFamily, RefusesAnotherArchitecture) {
  LoadedGlm wrong(SeededFixture("M"));
  EXPECT_EQ(wrong.decoder.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(wrong.decoder.status().message()),
              AllOf(HasSubstr("model.gguf"), HasSubstr("'qwen3moe'"),
                    HasSubstr("expected 'glm4moe'")));
}

// Announced or not, there or not: the trunk is the same.
TEST(Glm4MoeFamily, ThePredictionLayerNeverStopsALoad) {
  LoadedGlm with(SeededFixture("G"));
  testing::TinyModelSpec spec = SeededFixture("G");
  spec.num_nextn_layers = 0;
  LoadedGlm without(spec);
  ASSERT_TRUE(without.decoder.ok()) << without.decoder.status();
  EXPECT_EQ(Chain(**with.decoder), Chain(**without.decoder));
  EXPECT_LE((*without.decoder)->info().weight_bytes,
            (*with.decoder)->info().weight_bytes);
}

TEST(Glm4MoeFamily, ReadsThePredictionLayerOnlyWhenAsked) {
  LoadedGlm model(SeededFixture("G"));
  testing::TinyModelSpec spec = SeededFixture("G");
  spec.num_nextn_layers = 0;
  LoadedGlm without(spec);
  EXPECT_EQ((*model.decoder)->info().weight_bytes,
            (*without.decoder)->info().weight_bytes);
}

TEST(Glm4MoeFamily, StatesTheAuthorsAdvice) {
  const ChatTraits& chat = *glm4moe::Glm4MoeFamily().chat;
  EXPECT_FLOAT_EQ(chat.thinking.temperature, 0.6F);
  EXPECT_FLOAT_EQ(chat.thinking.top_p, 0.95F);
  EXPECT_FLOAT_EQ(chat.non_thinking.temperature, 0.6F);
  EXPECT_THAT(chat.stop_tokens,
              ElementsAre("<|endoftext|>", "<|user|>", "<|observation|>"));
  EXPECT_EQ(chat.think_open, "<think>");
  EXPECT_EQ(chat.think_close, "</think>");
  EXPECT_THAT(chat.completion_prefix, ElementsAre("[gMASK]", "<sop>"));
}

}  // namespace
}  // namespace fucina
