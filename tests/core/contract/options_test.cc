#include "fucina/contract/options.h"

#include <map>
#include <string>
#include <vector>

#include "fucina/contract/adapter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fucina {
namespace {

using ::testing::ElementsAre;

constexpr OptionSpec kSpecs[] = {
    {"depth", OptionType::kInt, "2", "draft depth"},
    {"rate", OptionType::kFloat, "0.5", "a rate"},
    {"strict", OptionType::kBool, "false", "refuse more"},
    {"mode", OptionType::kString, "auto", "a word"},
    {"files", OptionType::kStringList, "", "paths"},
};

std::string Message(const std::map<std::string, std::string>& values) {
  return std::string(Options::Make(kSpecs, values).status().message());
}

TEST(Options, DefaultsAndValues) {
  const Options options =
      Options::Make(kSpecs, {{"depth", "7"}, {"files", "a,b"}}).value();
  EXPECT_EQ(options.GetInt("depth"), 7);
  EXPECT_EQ(options.GetFloat("rate"), 0.5);
  EXPECT_FALSE(options.GetBool("strict"));
  EXPECT_EQ(options.GetString("mode"), "auto");
  EXPECT_THAT(options.GetStringList("files"), ElementsAre("a", "b"));
}

TEST(Options, RefusalsNameOptionAndNearest) {
  EXPECT_EQ(Message({{"dpeth", "7"}}),
            "no option 'dpeth'; did you mean 'depth'");
  EXPECT_EQ(Message({{"completely_other", "7"}}),
            "no option 'completely_other'; known: depth, rate, strict, mode, "
            "files");
  EXPECT_EQ(Message({{"depth", "x"}}),
            "option 'depth': expected an integer, found 'x'");
  EXPECT_EQ(Message({{"depth", "99999999999999999999"}}),
            "option 'depth': expected an integer, found "
            "'99999999999999999999'");
  EXPECT_EQ(Message({{"rate", "nan"}}),
            "option 'rate': expected a number, found 'nan'");
  EXPECT_EQ(Message({{"strict", "yes"}}),
            "option 'strict': expected true or false, found 'yes'");
  EXPECT_EQ(std::string(Options::Make({}, {{"a", "1"}}).status().message()),
            "no option 'a'; it has none");
}

TEST(BlameOption, IsKeptBesideTheMessage) {
  const absl::Status wrong = absl::UnimplementedError("no such style");
  EXPECT_EQ(BlamedOption(wrong), "");
  const absl::Status blamed = BlameOption("style", wrong);
  EXPECT_EQ(BlamedOption(blamed), "style");
  EXPECT_EQ(blamed.code(), wrong.code());
  EXPECT_EQ(blamed.message(), wrong.message());
  EXPECT_TRUE(BlameOption("style", absl::OkStatus()).ok());
}

TEST(NearestName, SuggestsOnlyWhatIsNear) {
  const std::vector<std::string> names = {"--temp", "--top-k", "--threads"};
  EXPECT_EQ(NearestName("--tmp", names), "--temp");
  EXPECT_EQ(NearestName("--thread", names), "--threads");
  EXPECT_EQ(NearestName("--chat", {}), "");
  EXPECT_EQ(NearestName("zzzzzzzzzzzz", names), "");
}

TEST(AdapterSet, FindsOnlyWhatIsThere) {
  AdapterSet set;
  EXPECT_EQ(set.Find(0, LinearSite::kQ), nullptr);
  set.layers.resize(2);
  LowRank pair;
  pair.scale = 2;
  set.layers[1][static_cast<int>(LinearSite::kUp)] = pair;
  EXPECT_EQ(set.Find(1, LinearSite::kQ), nullptr);
  ASSERT_NE(set.Find(1, LinearSite::kUp), nullptr);
  EXPECT_EQ(set.Find(1, LinearSite::kUp)->scale, 2.0F);
  EXPECT_EQ(set.Find(2, LinearSite::kUp), nullptr);
  EXPECT_EQ(set.Find(-1, LinearSite::kUp), nullptr);
}

}  // namespace
}  // namespace fucina
