// Drafts, drafters and lockstep change speed and no token: constrained replies
// of the embedded model, plain against all other ways, greedy and sampled.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/plugins/llguidance/atlas_run.h"
#include "tests/plugins/llguidance/toy_constraint.h"

namespace fucina {
namespace {

using testing::Atlas;
using testing::AtlasSequence;
using testing::MakeConstraint;

constexpr int kMaxTokens = 32;

struct GrammarCase {
  std::string kind;
  std::string text;
};

std::string Object(const std::vector<std::pair<std::string, std::string>>& of) {
  std::string properties;
  std::string required;
  for (const auto& [name, schema] : of) {
    absl::StrAppend(&properties, properties.empty() ? "" : ",", "\"", name,
                    "\":", schema);
    absl::StrAppend(&required, required.empty() ? "" : ",", "\"", name, "\"");
  }
  return absl::StrCat(R"({"type":"object","additionalProperties":false,)",
                      R"("properties":{)", properties, R"(},"required":[)",
                      required, "]}");
}

std::vector<GrammarCase> Cases() {
  std::vector<GrammarCase> cases;
  const std::vector<std::string> values = {
      R"({"type":"integer","minimum":0,"maximum":999})",
      R"({"type":"string","maxLength":12})",
      R"({"type":"boolean"})",
      R"({"type":"null"})",
      R"({"type":"number"})",
      R"({"enum":["Europe","Asia","Africa","South America"]})",
      R"({"const":"a value that can only be this one"})",
      R"({"type":"array","items":{"type":"integer"},"maxItems":3})",
      R"({"type":"string","pattern":"^[A-Z][a-z]{2,6}$"})",
      R"({"type":"string","format":"date"})",
      R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":5}]})",
      R"({"prefixItems":[{"type":"boolean"},{"const":7}],"minItems":2})"};
  for (const std::string& value : values) {
    cases.push_back({"json_schema", value});
    cases.push_back({"json_schema", Object({{"country", value}})});
    cases.push_back({"json_schema", Object({{"a_long_property_name", value},
                                            {"capital", values[1]}})});
  }
  for (const char* regex :
       {"[A-Z][a-z]+", "(yes|no|perhaps)", "The capital is [A-Z][a-z]{3,9}\\.",
        "\\d{4}-\\d{2}-\\d{2}", "(ab|cd)*", "[^a-z]{1,8}", ".*", "\\w+ \\w+",
        "(the same text again and again, )+end", "a|ab|abc|abcd"}) {
    cases.push_back({"regex", regex});
  }
  for (const char* lark :
       {"start: \"capital: \" NAME\nNAME: /[A-Z][a-z]+/\n",
        "start: \"(\" start \")\" | \"x\"\n",
        "start: item (\", \" item)*\nitem: /[a-z]{2,5}/ | NUM\nNUM: /[0-9]+/\n",
        "start: \"<answer>\" /[^<]{1,20}/ \"</answer>\"\n",
        "start: \"if \" E \" then \" E\nE: /[a-z]/ | \"(\" /[a-z]/ \")\"\n",
        "start: %json {\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
        "\"integer\"}},\"required\":[\"n\"]} \"!\"\n"}) {
    cases.push_back({"lark", lark});
  }
  return cases;
}

// Says what a list says, or garbage.
class ScriptDrafter : public Drafter {
 public:
  enum class Mode { kPerfect, kGarbage, kHalf, kIllegal };
  ScriptDrafter(Mode mode, std::vector<TokenId> reply, int vocab_size)
      : mode_(mode), reply_(std::move(reply)), vocab_size_(vocab_size) {}

  int Propose(std::span<const TokenId> /*context*/,
              std::span<TokenId> draft) override {
    for (std::size_t i = 0; i < draft.size(); ++i) {
      const std::size_t at = committed_ + i;
      const bool knows =
          mode_ == Mode::kPerfect || (mode_ == Mode::kHalf && at % 4 != 3);
      if (knows && at < reply_.size()) {
        draft[i] = reply_[at];
      } else if (mode_ == Mode::kIllegal) {
        draft[i] = vocab_size_ - 1;  // padding
      } else {
        seed_ = seed_ * 1664525U + 1013904223U;
        draft[i] = static_cast<TokenId>((seed_ >> 8) %
                                        static_cast<unsigned>(vocab_size_));
      }
    }
    return static_cast<int>(draft.size());
  }
  void Commit(std::span<const TokenId> tokens) override {
    // The prompt comes first, at once.
    if (!prompt_seen_) {
      prompt_seen_ = true;
    } else {
      committed_ += tokens.size();
    }
  }
  void Rewind(int /*length*/) override {
    prompt_seen_ = false;
    committed_ = 0;
  }

 private:
  Mode mode_;
  std::vector<TokenId> reply_;
  int vocab_size_;
  bool prompt_seen_ = false;
  std::size_t committed_ = 0;
  std::uint32_t seed_ = 1;
};

class Lossless : public ::testing::Test {
 protected:
  GenerationLimits Limits() const {
    return {.max_tokens = kMaxTokens, .stop_tokens = atlas_.stops};
  }
  static std::unique_ptr<Constraint> Unforced(const Constraint& constraint) {
    return std::make_unique<testing::NoForcing>(constraint.Clone().value());
  }
  SamplerConfig Sampling(bool sampled, std::uint64_t seed) const {
    SamplerConfig sampling;
    if (sampled) {
      sampling = {.temperature = 1, .repeat_penalty = 1.1, .seed = seed};
    }
    return sampling;
  }

  Atlas atlas_{2};
};

TEST_F(Lossless, PlainDraftedAndLockstepWriteTheSame) {
  const std::vector<TokenId> prompt =
      MustEncode(*atlas_.tokenizer, "The capital of Peru is");
  const std::vector<GrammarCase> cases = Cases();
  ASSERT_GE(cases.size() * 2, 100U);
  const Generator generator(*atlas_.decoder);
  const int vocab_size = atlas_.decoder->info().vocab_size;
  const int capacity = static_cast<int>(prompt.size()) + kMaxTokens + 1;
  const auto keep = [](TokenId) { return true; };
  int compared = 0;
  int forced = 0;
  std::size_t index = 0;
  for (const GrammarCase& grammar : cases) {
    ++index;
    const auto made =
        MakeConstraint(*atlas_.tokenizer, {{grammar.kind, grammar.text}});
    ASSERT_TRUE(made.ok()) << grammar.text << ": " << made.status();
    std::vector<std::vector<TokenId>> replies;
    for (const bool sampled : {false, true}) {
      const SamplerConfig sampling = Sampling(sampled, index);
      AtlasSequence plain(atlas_, sampling, capacity, Unforced(**made));
      ASSERT_TRUE(
          generator.Generate(plain.sequence, prompt, Limits(), keep).ok());
      EXPECT_EQ(plain.sequence.stats().drafted, 0);
      const std::vector<TokenId> expected = plain.Generated();
      replies.push_back(expected);

      AtlasSequence drafted(atlas_, sampling, capacity,
                            (*made)->Clone().value());
      ASSERT_TRUE(
          generator.Generate(drafted.sequence, prompt, Limits(), keep).ok());
      EXPECT_EQ(drafted.Generated(), expected) << grammar.text;
      EXPECT_EQ(drafted.constraint->IsComplete(),
                plain.constraint->IsComplete());
      // What is forced is certain, and without a drafter nothing else is.
      EXPECT_EQ(drafted.sequence.stats().accepted,
                drafted.sequence.stats().drafted)
          << grammar.text;
      forced += drafted.sequence.stats().drafted;

      using Mode = ScriptDrafter::Mode;
      const Mode modes[] = {Mode::kPerfect, Mode::kGarbage, Mode::kHalf,
                            Mode::kIllegal};
      for (const Mode mode : {modes[index % 4], modes[(index + 1) % 4]}) {
        ScriptDrafter drafter(mode, expected, vocab_size);
        AtlasSequence guessed(atlas_, sampling, capacity,
                              (*made)->Clone().value(), &drafter, 5);
        ASSERT_TRUE(
            generator.Generate(guessed.sequence, prompt, Limits(), keep).ok());
        EXPECT_EQ(guessed.Generated(), expected)
            << grammar.text << " " << static_cast<int>(mode);
      }
      ++compared;
    }
    // Both at once, with another sequence that is free.
    AtlasSequence greedy(atlas_, Sampling(false, index), capacity,
                         (*made)->Clone().value());
    AtlasSequence sampled(atlas_, Sampling(true, index), capacity,
                          (*made)->Clone().value());
    AtlasSequence free(atlas_, Sampling(true, 9), capacity, nullptr);
    Stream streams[3];
    AtlasSequence* const sequences[] = {&greedy, &free, &sampled};
    for (int i = 0; i < 3; ++i) {
      streams[i].sequence = &sequences[i]->sequence;
      streams[i].prompt = prompt;
      streams[i].limits = Limits();
    }
    generator.Generate(streams);
    for (const Stream& stream : streams) {
      EXPECT_TRUE(stream.status.ok()) << stream.status;
    }
    EXPECT_EQ(greedy.Generated(), replies[0]) << grammar.text;
    EXPECT_EQ(sampled.Generated(), replies[1]) << grammar.text;
  }
  EXPECT_GE(compared, 100);
  EXPECT_GT(forced, 200);
}

TEST_F(Lossless, ALimitInsideAForcedSpanEndsThere) {
  const std::vector<TokenId> prompt = MustEncode(*atlas_.tokenizer, "Peru");
  const Generator generator(*atlas_.decoder);
  for (int limit = 1; limit <= 6; ++limit) {
    auto constraint =
        MakeConstraint(*atlas_.tokenizer, {{"regex", "zzzz1zzzz2zzzz3zzzz4"}});
    ASSERT_TRUE(constraint.ok());
    AtlasSequence run(atlas_, {}, 64, *std::move(constraint));
    GenerationLimits limits = Limits();
    limits.max_tokens = limit;
    ASSERT_TRUE(generator
                    .Generate(run.sequence, prompt, limits,
                              [](TokenId) { return true; })
                    .ok());
    EXPECT_EQ(run.sequence.stats().new_tokens, limit);
    EXPECT_EQ(run.sequence.finish_reason(), FinishReason::kLength);
    EXPECT_FALSE(run.constraint->IsComplete());
  }
}

TEST_F(Lossless, AStopRightBehindAForcedSpanEndsTheReply) {
  const std::vector<TokenId> prompt = MustEncode(*atlas_.tokenizer, "Peru");
  auto constraint =
      MakeConstraint(*atlas_.tokenizer, {{"regex", "zzzz1zzzz2zzzz3"}});
  ASSERT_TRUE(constraint.ok());
  AtlasSequence run(atlas_, {}, 64, *std::move(constraint));
  std::string text;
  ASSERT_TRUE(Generator(*atlas_.decoder)
                  .Generate(run.sequence, prompt, Limits(),
                            [&](TokenId token) {
                              absl::StrAppend(
                                  &text, atlas_.tokenizer->DecodeToken(token));
                              return true;
                            })
                  .ok());
  EXPECT_EQ(text, "zzzz1zzzz2zzzz3");
  EXPECT_EQ(run.sequence.finish_reason(), FinishReason::kStopToken);
  EXPECT_TRUE(run.constraint->IsComplete());
}

}  // namespace
}  // namespace fucina
