#ifndef FUCINA_TESTS_CORE_TEXT_REPLY_PIECES_H_
#define FUCINA_TESTS_CORE_TEXT_REPLY_PIECES_H_

// What a splitter makes of a reply, as one text, whole and in pieces.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fucina/text/reply_splitter.h"
#include "gtest/gtest.h"

namespace fucina::testing {

inline constexpr char kTools[] =
    R"([{"type":"function","function":{"name":"get_weather","parameters":)"
    R"({"type":"object","properties":{"city":{"type":"string"},"n":{"type":)"
    R"("integer"},"any":{"type":["string","null"]},"num":{"type":["number",)"
    R"("string"]},"list":{"type":"array"},"free":{}}}}}])";

// Pieces as one text: T(thinking) C(content) F(name arguments), neighbours of
// one kind merged.
class Log {
 public:
  void Add(const std::vector<ReplyPiece>& pieces) {
    for (const ReplyPiece& piece : pieces) {
      if (piece.kind == ReplyPiece::Kind::kToolCall) {
        Close();
        absl::StrAppend(&text_, "F(", piece.tool_call.name, " ",
                        piece.tool_call.arguments, ")");
        continue;
      }
      EXPECT_FALSE(piece.text.empty());
      const char kind = piece.kind == ReplyPiece::Kind::kThinking ? 'T' : 'C';
      if (kind != open_) {
        Close();
        open_ = kind;
        absl::StrAppend(&text_, std::string(1, kind), "(");
      }
      text_ += piece.text;
    }
  }
  std::string Take() {
    Close();
    return text_;
  }

 private:
  void Close() {
    if (open_ != '\0') text_ += ")";
    open_ = '\0';
  }
  std::string text_;
  char open_ = '\0';
};

inline std::unique_ptr<ReplySplitter> Make(
    const ReplySplitterOptions& options) {
  auto out = ReplySplitter::Create(options);
  EXPECT_TRUE(out.ok()) << out.status();
  return *std::move(out);
}

inline std::string Whole(const ReplySplitterOptions& options,
                         const std::string& reply) {
  const auto splitter = Make(options);
  Log log;
  log.Add(splitter->Push(reply));
  log.Add(splitter->Finish());
  return absl::StrCat(
      log.Take(),
      splitter->stopped() ? absl::StrCat("#", splitter->stop_index()) : "");
}

inline std::string InPieces(const ReplySplitterOptions& options,
                            const std::string& reply,
                            const std::vector<std::size_t>& cuts) {
  const auto splitter = Make(options);
  Log log;
  std::size_t at = 0;
  for (const std::size_t cut : cuts) {
    log.Add(splitter->Push(reply.substr(at, cut - at)));
    at = cut;
  }
  log.Add(splitter->Push(reply.substr(at)));
  log.Add(splitter->Finish());
  return absl::StrCat(
      log.Take(),
      splitter->stopped() ? absl::StrCat("#", splitter->stop_index()) : "");
}

inline ReplySplitterOptions Hermes() {
  return {.tool_calls = ToolCallFormat::kHermes, .tools_json = kTools};
}

inline ReplySplitterOptions Glm() {
  return {.tool_calls = ToolCallFormat::kGlm, .tools_json = kTools};
}

struct Case {
  std::string reply;
  std::string want;
};

// Whole, byte by byte, and cut in two anywhere.
inline void ExpectAll(const ReplySplitterOptions& options,
                      const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    EXPECT_EQ(Whole(options, c.reply), c.want) << c.reply;
    std::vector<std::size_t> cuts;
    for (std::size_t i = 1; i < c.reply.size(); ++i) cuts.push_back(i);
    EXPECT_EQ(InPieces(options, c.reply, cuts), c.want) << c.reply;
    const std::size_t step = 1 + c.reply.size() / 1000;  // of long replies less
    for (std::size_t cut = 1; cut < c.reply.size(); cut += step) {
      ASSERT_EQ(InPieces(options, c.reply, {cut}), c.want)
          << c.reply << " cut at " << cut;
    }
  }
}

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_CORE_TEXT_REPLY_PIECES_H_
