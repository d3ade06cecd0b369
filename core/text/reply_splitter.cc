#include "fucina/text/reply_splitter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/text/tool_call_parser.h"
#include "fucina/diag/check.h"
#include "fucina/diag/status_macros.h"

namespace fucina {
namespace {

using absl::string_view;
using Kind = ReplyPiece::Kind;

constexpr std::size_t kMaxStops = 64;
constexpr string_view kCallOpen = "<tool_call>";
constexpr string_view kCallClose = "</tool_call>";

// Length of the longest end of `text` that begins `marker` without being all of
// it.
std::size_t PartialEnd(string_view text, string_view marker) {
  std::size_t size = std::min(text.size(), marker.size() - 1);
  while (size > 0 && !absl::EndsWith(text, marker.substr(0, size))) --size;
  return size;
}

std::size_t LeadingSpace(string_view text) {
  return text.size() - absl::StripLeadingAsciiWhitespace(text).size();
}

std::size_t TrailingSpace(string_view text) {
  return text.size() - absl::StripTrailingAsciiWhitespace(text).size();
}

// --- stop strings -----------------------------------------------------------

// Passes bytes on until a stop string. The match that starts first wins, then
// the one that stands first in the list; so the answer depends on the bytes
// alone, not on how they were cut.
class StopScanner {
 public:
  explicit StopScanner(std::vector<std::string> stops)
      : stops_(std::move(stops)) {}

  // What may pass now. `last` tells that no more bytes come.
  std::string Push(string_view bytes, bool last) {
    if (index_ >= 0) return "";
    held_.append(bytes.data(), bytes.size());
    std::size_t at = 0;
    for (; at < held_.size(); ++at) {
      const string_view rest = string_view(held_).substr(at);
      bool waits = false;
      for (std::size_t i = 0; i < stops_.size() && !waits; ++i) {
        if (absl::StartsWith(rest, stops_[i])) {
          index_ = static_cast<int>(i);
          break;
        }
        waits = !last && absl::StartsWith(stops_[i], rest);
      }
      if (index_ >= 0 || waits) break;
    }
    std::string out = held_.substr(0, at);
    held_.erase(0, index_ >= 0 ? std::string::npos : at);
    return out;
  }

  int index() const { return index_; }

 private:
  const std::vector<std::string> stops_;
  std::string held_;
  int index_ = -1;
};

}  // namespace

struct ReplySplitter::Impl {
  enum class State {
    kDetect,      // before anything but white space
    kThinking,    // inside the block
    kAfterBlock,  // white space after it
    kContent,
  };
  enum class Scan {
    kStart,    // of the content: may be a bare JSON call
    kText,     // of content, looking for a call
    kCapture,  // inside a call
  };

  Impl(ReplySplitterOptions given, ToolCallParser tool_parser)
      : options(std::move(given)),
        stops(options.stop),
        parser(std::move(tool_parser)) {
    if (options.raw) return;
    const bool marked =
        !options.think_open.empty() && !options.think_close.empty();
    if (!marked) {
      state = State::kContent;
    } else if (options.thinking == PromptThinking::kOpen) {
      state = State::kThinking;
    }
    finds_calls =
        options.tool_calls != ToolCallFormat::kNone && parser.has_tools();
  }

  void Emit(Kind kind, string_view text) {
    if (text.empty()) return;
    if (out.empty() || out.back().kind != kind) {
      out.emplace_back();
      out.back().kind = kind;
    }
    out.back().text.append(text.data(), text.size());
  }

  void EmitCall(ToolCall call) {
    out.emplace_back();
    out.back().kind = Kind::kToolCall;
    out.back().tool_call = std::move(call);
    has_call = true;
    after_call = true;
  }

  // --- thinking and answer --------------------------------------------------

  // Moves what is decided from `held` to the channels.
  void Route(bool last) {
    for (bool more = true; more;) {
      switch (state) {
        case State::kDetect:
          more = Detect(last);
          break;
        case State::kThinking:
          more = Think(last);
          break;
        case State::kAfterBlock:
          held.erase(0, LeadingSpace(held));
          more = !held.empty();
          if (more) state = State::kContent;
          break;
        case State::kContent:
          content += held;
          held.clear();
          more = false;
          break;
      }
    }
    ScanContent(last);
  }

  // Returns whether the state changed.
  bool Detect(bool last) {
    const string_view text = string_view(held).substr(LeadingSpace(held));
    const std::string& open = options.think_open;
    const std::string& close = options.think_close;
    const bool may_open = options.thinking == PromptThinking::kUndecided;
    if (may_open && absl::StartsWith(text, open)) {
      held = std::string(text.substr(open.size()));
      state = State::kThinking;
      return true;
    }
    if (absl::StartsWith(text, close)) {
      held = std::string(text.substr(close.size()));
      state = State::kAfterBlock;
      return true;
    }
    const bool undecided = (may_open && absl::StartsWith(open, text)) ||
                           absl::StartsWith(close, text);
    if (!last && undecided) return false;
    // The template closed the block; models of GLM's kind write the line end
    // that belongs behind it themselves.
    if (options.thinking == PromptThinking::kClosed) {
      held.erase(0, std::min(held.find_first_not_of("\r\n"), held.size()));
    }
    state = State::kContent;
    return true;
  }

  bool Think(bool last) {
    const std::string& close = options.think_close;
    // Newlines at both ends of the block belong to its spelling.
    if (!thinking_started) {
      const std::size_t text = held.find_first_not_of("\r\n");
      if (text == std::string::npos) {
        held.clear();
        return false;
      }
      held.erase(0, text);
    }
    const std::size_t end = held.find(close);
    const bool closed = end != std::string::npos;
    std::size_t keep = closed ? end : held.size();
    if (!closed && !last) keep -= PartialEnd(held, close);
    while (keep > 0 && (held[keep - 1] == '\n' || held[keep - 1] == '\r')) {
      --keep;
    }
    if (keep > 0) thinking_started = true;
    Emit(Kind::kThinking, string_view(held).substr(0, keep));
    if (closed) {
      held.erase(0, end + close.size());
      state = State::kAfterBlock;
      return true;
    }
    held.erase(0, last ? std::string::npos : keep);
    return false;
  }

  // --- tool calls -----------------------------------------------------------

  void ScanContent(bool last) {
    if (!finds_calls) {
      Emit(Kind::kContent, content);
      content.clear();
      return;
    }
    for (bool more = true; more;) {
      switch (scan) {
        case Scan::kStart:
          more = ScanStart(last);
          break;
        case Scan::kText:
          more = ScanText(last);
          break;
        case Scan::kCapture:
          more = ScanCapture(last);
          break;
      }
    }
  }

  // A model whose family uses tags may still answer with the bare object
  // {"name": …}: such a beginning waits for the end.
  bool ScanStart(bool last) {
    static constexpr string_view kKey = "\"name\"";
    string_view text = absl::StripLeadingAsciiWhitespace(content);
    bool possible = text.empty();
    if (absl::StartsWith(text, "{")) {
      text = absl::StripLeadingAsciiWhitespace(text.substr(1));
      possible = absl::StartsWith(text, kKey) || absl::StartsWith(kKey, text);
    }
    if (possible && !last) return false;
    if (possible) {
      if (auto call = parser.ParseBare(content)) {
        content.clear();
        EmitCall(*std::move(call));
      }
    }
    scan = Scan::kText;
    return true;
  }

  bool ScanText(bool last) {
    if (after_call) content.erase(0, LeadingSpace(content));
    if (content.empty()) return false;
    const string_view text = content;
    const std::size_t open = text.find(kCallOpen);
    if (open != std::string::npos) {
      // White space before a call is the template's, not the answer's.
      call_lead =
          std::string(text.substr(open - TrailingSpace(text.substr(0, open)),
                                  TrailingSpace(text.substr(0, open))));
      if (open > call_lead.size()) after_call = false;
      Emit(Kind::kContent, text.substr(0, open - call_lead.size()));
      content.erase(0, open + kCallOpen.size());
      scan = Scan::kCapture;
      return true;
    }
    std::size_t keep = text.size();
    if (!last) {
      keep -= PartialEnd(text, kCallOpen);
      keep -= TrailingSpace(text.substr(0, keep));
    }
    if (keep > 0) after_call = false;
    Emit(Kind::kContent, text.substr(0, keep));
    content.erase(0, keep);
    return false;
  }

  bool ScanCapture(bool last) {
    // Looks from where the last search could not decide, so a long call costs
    // linear time.
    const std::size_t from =
        searched > kCallClose.size() ? searched - kCallClose.size() : 0;
    const std::size_t close = string_view(content).find(kCallClose, from);
    searched = content.size();
    if (close == std::string::npos && !last) return false;
    searched = 0;
    scan = Scan::kText;
    if (close == std::string::npos) {  // cut: plain text after all
      Emit(Kind::kContent, absl::StrCat(call_lead, kCallOpen, content));
      content.clear();
      return false;
    }
    const std::size_t end = close + kCallClose.size();
    if (auto call = parser.Parse(string_view(content).substr(0, close))) {
      EmitCall(*std::move(call));
    } else {
      Emit(Kind::kContent, absl::StrCat(call_lead, kCallOpen,
                                        string_view(content).substr(0, end)));
      after_call = false;
    }
    content.erase(0, end);
    return true;
  }

  std::vector<ReplyPiece> Take(string_view bytes, bool last) {
    const std::string passed = stops.Push(bytes, last);
    const bool ends = last || stops.index() >= 0;
    if (options.raw) {
      Emit(Kind::kContent, passed);
    } else {
      held += passed;
      Route(ends);
    }
    return std::exchange(out, {});
  }

  const ReplySplitterOptions options;
  StopScanner stops;
  const ToolCallParser parser;
  bool finds_calls = false;
  State state = State::kDetect;
  Scan scan = Scan::kStart;
  std::string held;               // passed the stop strings, not yet routed
  std::string content;            // routed, not yet scanned for calls
  std::string call_lead;          // white space before the call in capture
  std::size_t searched = 0;       // bytes of a capture without its end
  bool thinking_started = false;  // past the block's leading newlines
  bool after_call = false;        // only white space since the last call
  bool has_call = false;
  bool finished = false;
  std::vector<ReplyPiece> out;
};

ReplySplitter::ReplySplitter(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
ReplySplitter::~ReplySplitter() = default;

absl::StatusOr<std::unique_ptr<ReplySplitter>> ReplySplitter::Create(
    ReplySplitterOptions options) {
  if (options.stop.size() > kMaxStops) {
    return absl::InvalidArgumentError(absl::StrCat(
        "stop: at most ", kMaxStops, " strings, found ", options.stop.size()));
  }
  for (const std::string& stop : options.stop) {
    if (stop.empty()) {
      return absl::InvalidArgumentError("stop: an empty string stops nothing");
    }
  }
  FUCINA_ASSIGN_OR_RETURN(
      ToolCallParser parser,
      ToolCallParser::Create(options.tool_calls, options.tools_json));
  return std::unique_ptr<ReplySplitter>(new ReplySplitter(
      std::make_unique<Impl>(std::move(options), std::move(parser))));
}

ReplySplitterOptions ReplySplitter::OptionsFor(
    const ChatTemplate& chat_template, const RenderedPrompt& prompt) {
  ReplySplitterOptions out;
  out.thinking = prompt.thinking;
  out.think_open = chat_template.think_open();
  out.think_close = chat_template.think_close();
  out.tool_calls = chat_template.tool_call_format();
  return out;
}

std::vector<ReplyPiece> ReplySplitter::Push(string_view bytes) {
  FUCINA_CHECK(!impl_->finished) << "Push after Finish";
  if (stopped()) return {};
  return impl_->Take(bytes, /*last=*/false);
}

std::vector<ReplyPiece> ReplySplitter::Finish() {
  FUCINA_CHECK(!impl_->finished) << "Finish called twice";
  impl_->finished = true;
  if (stopped()) return {};
  return impl_->Take("", /*last=*/true);
}

int ReplySplitter::stop_index() const { return impl_->stops.index(); }

bool ReplySplitter::in_thinking() const {
  return !impl_->options.raw && impl_->state == Impl::State::kThinking;
}

bool ReplySplitter::has_tool_call() const { return impl_->has_call; }

}  // namespace fucina
