// Typed access to metadata: what is accepted whatever its width, and what is
// refused by name.

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fucina/gguf/gguf_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/gguf/raw_gguf.h"

namespace fucina {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

class Values : public ::testing::Test {
 protected:
  void SetUp() override {
    bytes_ =
        RawFile{
            .key_values =
                {RawKeyValue("u8", kRawU8, Raw<std::uint8_t>(200)),
                 RawKeyValue("i8", kRawI8, Raw<std::int8_t>(-5)),
                 RawKeyValue("u16", kRawU16, Raw<std::uint16_t>(60000)),
                 RawKeyValue("i16", kRawI16, Raw<std::int16_t>(-5)),
                 RawKeyValue("u32", kRawU32, Raw<std::uint32_t>(1)),
                 RawKeyValue("i32", kRawI32, Raw<std::int32_t>(-5)),
                 RawKeyValue("u64", kRawU64, Raw<std::uint64_t>(7)),
                 RawKeyValue("u64.top", kRawU64,
                             Raw(std::numeric_limits<std::uint64_t>::max())),
                 RawKeyValue("i64", kRawI64, Raw(kMin)),
                 RawKeyValue("f32", kRawF32, Raw(1.5f)),
                 RawKeyValue("f64", kRawF64, Raw(0.1)),
                 RawKeyValue("yes", kRawBool, "\x01"),
                 RawKeyValue("no", kRawBool, std::string(1, '\0')),
                 RawKeyValue("text", kRawString, RawString("gpt2\n")),
                 RawKeyValue("ints", kRawArray,
                             RawArrayValue(kRawI16, 2,
                                           Raw<std::int16_t>(-1) +
                                               Raw<std::int16_t>(300))),
                 RawKeyValue(
                     "top.ints", kRawArray,
                     RawArrayValue(
                         kRawU64, 1,
                         Raw(std::numeric_limits<std::uint64_t>::max()))),
                 RawKeyValue("floats", kRawArray,
                             RawArrayValue(kRawF64, 2, Raw(0.5) + Raw(-2.0))),
                 RawKeyValue("bools", kRawArray,
                             RawArrayValue(kRawBool, 1, "\x01")),
                 RawKeyValue(
                     "strings", kRawArray,
                     RawArrayValue(
                         kRawString, 3,
                         RawString("") +
                             RawString(absl::string_view("\xff\0x", 3)) +
                             RawString("b"))),
                 RawKeyValue("none", kRawArray,
                             RawArrayValue(kRawString, 0, ""))}}
            .Bytes();
    auto file = ParseRaw(bytes_);
    ASSERT_TRUE(file.ok()) << file.status();
    file_ = *std::move(file);
  }

  // The text of an error, which must be about content.
  template <typename T>
  static std::string ErrorOf(const absl::StatusOr<T>& result, GgufError error) {
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(FindGgufError(result.status()), error) << result.status();
    EXPECT_THAT(std::string(result.status().message()),
                StartsWith("model.gguf: key '"));
    return std::string(result.status().message());
  }

  std::string bytes_;
  std::unique_ptr<GgufFile> file_;
};

TEST_F(Values, IntegersOfEveryWidthAreIntegers) {
  EXPECT_EQ(file_->GetInt("u8", 0, 255).value(), 200);
  EXPECT_EQ(file_->GetInt("i8", kMin, kMax).value(), -5);
  EXPECT_EQ(file_->GetInt("u16", kMin, kMax).value(), 60000);
  EXPECT_EQ(file_->GetInt("i16", kMin, kMax).value(), -5);
  EXPECT_EQ(file_->GetInt("u32", 1, 1).value(), 1);
  EXPECT_EQ(file_->GetInt("i32", kMin, kMax).value(), -5);
  EXPECT_EQ(file_->GetInt("u64", kMin, kMax).value(), 7);
  EXPECT_EQ(file_->GetInt("i64", kMin, kMax).value(), kMin);
}

TEST_F(Values, AbsentKeysAreNoErrors) {
  EXPECT_FALSE(file_->Has("absent"));
  EXPECT_EQ(file_->Find("absent"), nullptr);
  EXPECT_EQ(file_->GetInt("absent", 0, 1).value(), std::nullopt);
  EXPECT_EQ(file_->GetFloat("absent").value(), std::nullopt);
  EXPECT_EQ(file_->GetBool("absent").value(), std::nullopt);
  EXPECT_EQ(file_->GetString("absent").value(), std::nullopt);
  EXPECT_EQ(file_->GetInts("absent").value(), std::nullopt);
  EXPECT_EQ(file_->GetFloats("absent").value(), std::nullopt);
  EXPECT_EQ(file_->GetStrings("absent").value(), std::nullopt);
}

TEST_F(Values, IntegersOutOfRangeAreNamedWithTheRange) {
  EXPECT_THAT(ErrorOf(file_->GetInt("u16", 1, 512), GgufError::kValueRange),
              HasSubstr("key 'u16': expected an integer from 1 to 512, found "
                        "u16 60000"));
  EXPECT_THAT(ErrorOf(file_->GetInt("i32", 0, 10), GgufError::kValueRange),
              HasSubstr("found i32 -5"));
  EXPECT_THAT(
      ErrorOf(file_->GetInt("u64.top", kMin, kMax), GgufError::kValueRange),
      HasSubstr("found u64 18446744073709551615"));
}

TEST_F(Values, TheWrongClassIsNamedNotDefaulted) {
  EXPECT_THAT(ErrorOf(file_->GetInt("text", 0, 10), GgufError::kBadValueType),
              HasSubstr("key 'text': expected an integer, found string "
                        "\"gpt2\\n\""));
  EXPECT_THAT(ErrorOf(file_->GetInt("f32", 0, 10), GgufError::kBadValueType),
              HasSubstr("found f32 1.5"));
  EXPECT_THAT(ErrorOf(file_->GetInt("yes", 0, 10), GgufError::kBadValueType),
              HasSubstr("found bool true"));
  EXPECT_THAT(ErrorOf(file_->GetFloat("text"), GgufError::kBadValueType),
              HasSubstr("expected a number"));
  EXPECT_THAT(ErrorOf(file_->GetFloat("ints"), GgufError::kBadValueType),
              HasSubstr("found array of 2 i16"));
  EXPECT_THAT(ErrorOf(file_->GetString("u32"), GgufError::kBadValueType),
              HasSubstr("expected a string, found u32 1"));
  EXPECT_THAT(ErrorOf(file_->GetBool("u8"), GgufError::kBadValueType),
              HasSubstr("expected a bool (or the integer 0 or 1), found u8"));
  EXPECT_THAT(ErrorOf(file_->GetInts("floats"), GgufError::kBadValueType),
              HasSubstr("expected an array of integers, found array of 2 f64"));
  EXPECT_THAT(ErrorOf(file_->GetInts("u32"), GgufError::kBadValueType),
              HasSubstr("found u32 1"));
  EXPECT_THAT(ErrorOf(file_->GetFloats("strings"), GgufError::kBadValueType),
              HasSubstr("expected an array of numbers"));
  EXPECT_THAT(ErrorOf(file_->GetStrings("ints"), GgufError::kBadValueType),
              HasSubstr("expected an array of strings, found array of 2 i16"));
  EXPECT_THAT(ErrorOf(file_->GetStrings("text"), GgufError::kBadValueType),
              HasSubstr("found string"));
  EXPECT_THAT(ErrorOf(file_->GetInts("top.ints"), GgufError::kValueRange),
              HasSubstr("element 0 is 18446744073709551615"));
}

TEST_F(Values, FloatsAcceptBothWidthsAndIntegers) {
  EXPECT_EQ(file_->GetFloat("f32").value(), 1.5);
  EXPECT_EQ(file_->GetFloat("f64").value(), 0.1);
  EXPECT_EQ(file_->GetFloat("i8").value(), -5.0);
  EXPECT_EQ(file_->GetFloat("u64.top").value(), 18446744073709551616.0);
}

TEST_F(Values, BoolsAcceptZeroAndOne) {
  EXPECT_EQ(file_->GetBool("yes").value(), true);
  EXPECT_EQ(file_->GetBool("no").value(), false);
  EXPECT_EQ(file_->GetBool("u32").value(), true);
}

TEST_F(Values, ListsAreCopiedAndStringsAreViews) {
  EXPECT_THAT(*file_->GetInts("ints").value(), ElementsAre(-1, 300));
  EXPECT_THAT(*file_->GetFloats("floats").value(), ElementsAre(0.5f, -2.0f));
  EXPECT_THAT(*file_->GetFloats("ints").value(), ElementsAre(-1.0f, 300.0f));
  const auto strings = file_->GetStrings("strings").value();
  ASSERT_TRUE(strings.has_value());
  EXPECT_THAT(*strings, ElementsAre("", absl::string_view("\xff\0x", 3), "b"));
  EXPECT_GE((*strings)[2].data(), bytes_.data());
  EXPECT_LT((*strings)[2].data(), bytes_.data() + bytes_.size());
  EXPECT_TRUE(file_->GetStrings("none").value()->empty());
}

TEST_F(Values, KeysKeepTheirOrder) {
  ASSERT_EQ(file_->keys().size(), 20u);
  EXPECT_EQ(file_->keys()[0], "u8");
  EXPECT_EQ(file_->keys()[19], "none");
  EXPECT_EQ(file_->Find("ints")->type, GgufType::kArray);
  EXPECT_EQ(file_->Find("ints")->element_type, GgufType::kI16);
  EXPECT_EQ(file_->Find("ints")->count, 2u);
  EXPECT_EQ(Name(GgufType::kI16), "i16");
}

// A list that would copy more than any vocabulary has is refused by the getter,
// although the file is sound.
TEST(LongLists, AreRefusedByTheGetters) {
  const std::uint64_t count = (std::uint64_t{1} << 24) + 1;
  const std::string bytes = FileWithKey(
      RawKeyValue("long.list", kRawArray,
                  RawArrayValue(kRawU8, count, std::string(count, '\x01'))));
  const auto file = ParseRaw(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto list = (*file)->GetInts("long.list");
  EXPECT_EQ(FindGgufError(list.status()), GgufError::kArrayLimit);
  EXPECT_THAT(std::string(list.status().message()),
              HasSubstr("16777217 elements are more than the 16777216"));
}

// A vocabulary of 150 000 tokens is read in a few milliseconds; the bound is
// generous because the machine may be busy.
TEST(LongLists, VocabulariesAreReadQuickly) {
  constexpr std::uint64_t kTokens = 150000;
  std::string elements;
  for (std::uint64_t i = 0; i < kTokens; ++i) {
    elements += RawString("token " + std::to_string(i));
  }
  const std::string bytes =
      FileWithKey(RawKeyValue("tokenizer.ggml.tokens", kRawArray,
                              RawArrayValue(kRawString, kTokens, elements)));
  const auto begin = std::chrono::steady_clock::now();
  const auto file = ParseRaw(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto tokens = (*file)->GetStrings("tokenizer.ggml.tokens").value();
  const auto elapsed = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(tokens.has_value());
  ASSERT_EQ(tokens->size(), kTokens);
  EXPECT_EQ((*tokens)[149999], "token 149999");
  EXPECT_LT(elapsed, std::chrono::seconds(1));
}

}  // namespace
}  // namespace fucina
