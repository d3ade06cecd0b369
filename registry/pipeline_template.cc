#include "registry/pipeline_template.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "registry/plugin_calls.h"
#include "registry/text_file.h"

namespace fucina {
namespace {

absl::StatusOr<std::string> ReadTemplate(const std::string& path) {
  constexpr std::int64_t kMaxBytes = 1 << 20;
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return absl::NotFoundError(
        absl::StrCat("no file '", Printable(path),
                     "' and no built-in template "
                     "of this name; built in: ",
                     absl::StrJoin(ChatTemplate::BuiltInNames(), ", ")));
  }
  if (!S_ISREG(info.st_mode) || info.st_size > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", Printable(path), "' is not a regular file of at most 1 MiB"));
  }
  return ReadTextFile(path, kMaxBytes);
}

// 'enable_thinking' among the arguments is the same switch as chat.thinking:
// the sampling that goes with it follows, and the two may not differ.
absl::Status ReadThinkingArgument(PipelineConfig& config) {
  FUCINA_ASSIGN_OR_RETURN(
      const std::optional<bool> argument,
      ChatTemplate::ThinkingArgument(config.chat.template_arguments));
  if (!argument.has_value()) return absl::OkStatus();
  if (config.chat.thinking.value_or(*argument) != *argument) {
    return absl::InvalidArgumentError(absl::StrCat(
        config.Blame("chat.template_arguments"), "'enable_thinking' is ",
        *argument ? "true" : "false", ", which contradicts ",
        absl::StripSuffix(config.Blame("chat.thinking"), ": "),
        "; give one of them"));
  }
  config.chat.thinking = argument;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadChatTemplate(Pipeline& pipeline) {
  const std::string& wanted = pipeline.config.chat.chat_template;
  if (wanted.empty()) {
    auto chat_template = ChatTemplate::FromGguf(*pipeline.file);
    pipeline.chat_template_status = chat_template.status();
    if (chat_template.ok()) pipeline.chat_template = *std::move(chat_template);
  } else {
    FUCINA_ASSIGN_OR_RETURN(const ChatTokens tokens,
                            ChatTemplate::TokensFromGguf(*pipeline.file));
    const auto names = ChatTemplate::BuiltInNames();
    absl::StatusOr<std::unique_ptr<ChatTemplate>> chat_template;
    if (std::find(names.begin(), names.end(), wanted) != names.end()) {
      chat_template = ChatTemplate::BuiltIn(wanted, tokens);
    } else {
      auto text = ReadTemplate(wanted);
      chat_template = text.ok() ? ChatTemplate::FromText(wanted, *text, tokens)
                                : text.status();
    }
    // Named by the user: nothing else may take its place.
    if (!chat_template.ok()) {
      return Prefixed(pipeline.config.Blame("chat.template"),
                      chat_template.status());
    }
    pipeline.chat_template = *std::move(chat_template);
  }

  pipeline.report.chat_template = pipeline.chat_template != nullptr
                                      ? pipeline.chat_template->name()
                                      : std::string("none");
  if (pipeline.chat_template != nullptr &&
      !pipeline.config.chat.template_arguments.empty()) {
    // Arguments that are no JSON would fail every turn: find out now.
    const ChatMessage probe{.role = "user", .content = "x"};
    ChatRenderOptions options;
    options.arguments_json = pipeline.config.chat.template_arguments;
    const auto prompt = pipeline.chat_template->Render({&probe, 1}, options);
    if (!prompt.ok()) {
      return Prefixed(pipeline.config.Blame("chat.template_arguments"),
                      prompt.status());
    }
    FUCINA_RETURN_IF_ERROR(ReadThinkingArgument(pipeline.config));
  }
  if (pipeline.config.chat.thinking == false &&
      pipeline.chat_template != nullptr &&
      !pipeline.chat_template->supports_thinking_switch()) {
    pipeline.notes.push_back(
        absl::StrCat(pipeline.config.Blame("chat.thinking"),
                     "the chat template has no switch for thinking; the prompt "
                     "is the same with and without"));
  }
  return absl::OkStatus();
}

}  // namespace fucina
