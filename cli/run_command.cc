#include "cli/run_command.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "cli/bench_mode.h"
#include "cli/bench_report.h"
#include "cli/chat_mode.h"
#include "cli/completion_mode.h"
#include "cli/embedded_model.h"
#include "cli/exit_code.h"
#include "cli/file_fault.h"
#include "cli/forward_mode.h"
#include "cli/info_mode.h"
#include "cli/interrupt.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/run_flags.h"
#include "cli/spec_modes.h"
#include "cli/streams_mode.h"
#include "cli/text_input.h"
#include "cli/token_ids.h"
#include "cli/verify_modes.h"
#include "fucina/chat/conversation.h"
#include "fucina/diag/log.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "registry/config_keys.h"
#include "registry/memory_plan.h"
#include "registry/pipeline.h"

namespace fucina::cli {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

// A text file as a message: a byte order mark and Windows line ends mean
// nothing, and neither does the line end at the end of the file.
std::string AsMessage(std::string text) {
  if (absl::StartsWith(text, "\xEF\xBB\xBF")) text.erase(0, 3);
  std::string message;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    message.push_back(text[i]);
  }
  if (absl::EndsWith(message, "\n")) message.pop_back();
  return message;
}

absl::StatusOr<std::string> ChatMessageText(const std::string& argument) {
  std::string message = argument;
  if (argument == "-") {
    FUCINA_ASSIGN_OR_RETURN(message,
                            ReadStandardInput("--chat", kMaxMessageBytes));
    message = AsMessage(std::move(message));
  } else if (absl::StartsWith(argument, "@")) {
    FUCINA_ASSIGN_OR_RETURN(
        message, ReadTextFile(argument.substr(1), "--chat", kMaxMessageBytes));
    message = AsMessage(std::move(message));
  }
  if (absl::StripAsciiWhitespace(message).empty()) {
    return absl::InvalidArgumentError("--chat: empty message");
  }
  return message;
}

absl::Status CheckVocabulary(std::span<const TokenId> ids, int vocab_size) {
  for (const TokenId id : ids) {
    if (id < vocab_size) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("token id ", id, " out of range: the model has ids 0 to ",
                     vocab_size - 1));
  }
  return absl::OkStatus();
}

// The input of the modes that read a prompt: never empty, and one element
// unless streams read several.
absl::StatusOr<std::vector<std::vector<TokenId>>> PromptTokens(
    const RunFlags& flags, const Pipeline& pipeline,
    std::vector<std::vector<TokenId>> ids_of_files) {
  const int vocab_size = pipeline.decoder->info().vocab_size;
  std::vector<std::vector<TokenId>> prompts;
  for (const std::string& text : flags.prompts) {
    FUCINA_RETURN_IF_ERROR(pipeline.tokenizer_status);
    if (text.empty()) {
      return absl::InvalidArgumentError("--prompt: empty prompt");
    }
    FUCINA_ASSIGN_OR_RETURN(
        prompts.emplace_back(),
        pipeline.tokenizer->Encode(text, {.add_special = true}));
  }
  if (!prompts.empty()) return prompts;
  if (flags.token_ids.has_value()) ids_of_files = {*flags.token_ids};
  for (const std::vector<TokenId>& ids : ids_of_files) {
    FUCINA_RETURN_IF_ERROR(CheckVocabulary(ids, vocab_size));
  }
  if (!ids_of_files.empty()) return ids_of_files;
  if (flags.bench_prompt) {
    prompts.push_back(BenchTokens(kBenchPromptTokens, vocab_size));
    return prompts;
  }
  // The family's own short prompt, where this vocabulary has it.
  const auto usual = pipeline.chat_traits().default_prompt;
  std::vector<TokenId> tokens(usual.begin(), usual.end());
  const bool fits =
      !tokens.empty() &&
      *std::max_element(tokens.begin(), tokens.end()) < vocab_size;
  if (fits) return std::vector<std::vector<TokenId>>{tokens};
  if (pipeline.tokenizer != nullptr &&
      pipeline.tokenizer->special().bos.has_value()) {
    prompts.push_back({*pipeline.tokenizer->special().bos});
    return prompts;
  }
  return absl::InvalidArgumentError(
      "no input: give token ids, --ids-file or --prompt TEXT");
}

// A token that the model does not have would never stop anything.
absl::Status CheckStopTokens(const Pipeline& pipeline) {
  const int vocab_size = pipeline.decoder->info().vocab_size;
  for (const int id : pipeline.config.chat.stop_tokens) {
    if (id < vocab_size) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        pipeline.config.Blame("chat.stop_tokens"), "stop token id ", id,
        " out of range: the model has ids 0 to ", vocab_size - 1));
  }
  return absl::OkStatus();
}

// Whether states for what the modes of a prompt will write can be had.
absl::Status CheckLength(const RunFlags& flags, const Pipeline& pipeline,
                         std::span<const std::vector<TokenId>> prompts) {
  absl::string_view what = "the prompt";
  int written = 0;
  const std::pair<absl::string_view, std::optional<int>> lengths[] = {
      {"--gen", flags.generate},
      {"--verify-cache", flags.verify_cache},
      {"--verify-batch", flags.verify_batch},
      {"--verify-spec", flags.verify_spec}};
  for (const auto& [flag, length] : lengths) {
    if (!length.has_value()) continue;
    what = flag;
    written = *length;
  }
  std::size_t longest = 0;
  for (const auto& prompt : prompts) longest = std::max(longest, prompt.size());
  // A context that was asked for bounds --gen and was found to fit.
  const int asked = flags.generate.has_value() ? pipeline.config.context : 0;
  const std::int64_t tokens = asked > 0 ? std::int64_t{asked}
                                        : static_cast<std::int64_t>(longest) +
                                              written + flags.bench_depth;
  const DecoderInfo& info = pipeline.decoder->info();
  // A double has room for the product.
  const double bytes = static_cast<double>(info.state_bytes_per_token) *
                       static_cast<double>(tokens) * flags.streams;
  const AvailableMemory available = ReadAvailableMemory(pipeline.memory);
  // The modes add a few tokens of their own.
  constexpr int kMostTokens = std::numeric_limits<int>::max() - 64;
  if (tokens > kMostTokens || (pipeline.config.memory_check &&
                               bytes > static_cast<double>(available.bytes))) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "%s: %d tokens%s need %.1f GiB for keys and values, %s are available "
        "(%s)",
        what, tokens,
        flags.streams > 1
            ? absl::StrCat(" of each of ", flags.streams, " sequences")
            : "",
        bytes / (1 << 30), HumanBytes(available.bytes), available.reason));
  }
  if (flags.generate.has_value() && asked == 0 &&
      tokens > info.context_length) {
    FUCINA_LOG(WARNING) << what << ": " << tokens
                        << " tokens with the prompt are more than the "
                        << info.context_length
                        << " this model was trained for; expect worse text";
  }
  return absl::OkStatus();
}

// Errors of the configuration end with 2, errors of the model file with 3.
absl::Status Marked(const absl::Status& status) {
  return BlamesModelFile(status) ? WithExitCode(status, ExitCode::kFile)
                                 : status;
}

absl::Status RunConversation(const RunFlags& flags, const Pipeline& pipeline,
                             const std::string& message) {
  if (pipeline.chat_template == nullptr) {
    return WithExitCode(pipeline.chat_template_status, ExitCode::kFile);
  }
  if (!pipeline.tokenizer_status.ok()) {
    return WithExitCode(pipeline.tokenizer_status, ExitCode::kFile);
  }
  FUCINA_ASSIGN_OR_RETURN(const std::unique_ptr<Drafter> drafter,
                          MakeDrafter(pipeline));
  const PipelineConfig& config = pipeline.config;
  ConversationOptions options;
  options.capacity = pipeline.context();
  options.max_tokens = flags.generate.value_or(config.chat.max_tokens);
  options.system = config.chat.system;
  options.enable_thinking = config.chat.thinking;
  options.template_arguments_json = config.chat.template_arguments;
  options.sampling = pipeline.report.sampler;
  options.stop = config.chat.stop;
  options.stop_tokens.assign(config.chat.stop_tokens.begin(),
                             config.chat.stop_tokens.end());
  options.prefill_chunk = config.prefill_chunk;
  options.gate = pipeline.gate;
  if (const absl::Status stop =
          ReplySplitter::Create({.stop = options.stop}).status();
      !stop.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(config.Blame("chat.stop"), stop.message()));
  }
  FUCINA_ASSIGN_OR_RETURN(
      const std::unique_ptr<Conversation> conversation,
      Conversation::Create(
          {.decoder = pipeline.decoder.get(),
           .tokenizer = pipeline.tokenizer.get(),
           .chat_template = pipeline.chat_template.get(),
           .drafter = drafter.get(),
           .constraint = pipeline.constraint.get(),
           .adapter = pipeline.adapter ? &*pipeline.adapter : nullptr},
          std::move(options)));
  const ChatOptions chat = {.quiet = flags.quiet,
                            .show_prompt = flags.show_prompt,
                            .drafter = drafter.get()};
  Interrupt interrupt;
  return flags.repl ? RunRepl(*conversation, chat, interrupt)
                    : RunChat(*conversation, message, chat, interrupt);
}

GenerationOptions GenerationOf(const RunFlags& flags, const Pipeline& pipeline,
                               double load_seconds, Interrupt& interrupt) {
  const PipelineConfig& config = pipeline.config;
  return {.max_tokens = *flags.generate,
          .sampling = CompletionSampler(config),
          .capacity = config.context,
          .prefill_chunk = config.prefill_chunk,
          .load_seconds = load_seconds,
          .gate = pipeline.gate,
          .constraint = pipeline.constraint.get(),
          .cancel = &interrupt.flag()};
}

// Of a completion. A grammar ends with any of the model's end tokens.
std::vector<TokenId> StopTokens(const Pipeline& pipeline) {
  const std::vector<int>& given = pipeline.config.chat.stop_tokens;
  if (pipeline.constraint == nullptr) {
    return given.empty() ? std::vector<TokenId>() : std::vector{given.back()};
  }
  const std::span<const TokenId> own = pipeline.tokenizer->stop_tokens();
  std::vector<TokenId> tokens(own.begin(), own.end());
  tokens.insert(tokens.end(), given.begin(), given.end());
  return tokens;
}

// --gen and --bench with its repetitions or streams.
absl::Status RunMeasured(const RunFlags& flags, const Pipeline& pipeline,
                         std::span<const std::vector<TokenId>> prompts,
                         double load_seconds,
                         std::span<const std::string> args) {
  if (pipeline.drafter_kind != nullptr && flags.streams == 1) {
    FUCINA_LOG(WARNING) << "drafter '" << pipeline.drafter_kind->descriptor.name
                        << "' is not used: --bench does not draft";
  }
  const nlohmann::ordered_json facts = RunFacts(pipeline, args, load_seconds);
  Interrupt interrupt;
  const GenerationOptions generation =
      GenerationOf(flags, pipeline, load_seconds, interrupt);
  if (flags.streams > 1) {
    StreamsOptions options{generation};
    options.num_streams = flags.streams;
    options.repetitions = flags.bench;
    options.stop_tokens = StopTokens(pipeline);
    if (pipeline.drafter_kind != nullptr) {
      options.make_drafter = [&pipeline] { return MakeDrafter(pipeline); };
    }
    options.json_path = flags.bench_json;
    options.facts = &facts;
    return RunStreams(*pipeline.decoder, pipeline.tokenizer.get(), prompts,
                      options, std::cout);
  }
  BenchOptions options{generation};
  options.repetitions = flags.bench;
  options.depth = flags.bench_depth;
  options.profile = flags.profile;
  options.json_path = flags.bench_json;
  options.facts = &facts;
  return RunBench(*pipeline.decoder, pipeline.tokenizer.get(), prompts[0],
                  options, std::cout);
}

absl::Status RunPromptMode(const RunFlags& flags, const Pipeline& pipeline,
                           std::span<const std::vector<TokenId>> prompts,
                           double load_seconds) {
  const std::vector<TokenId>& tokens = prompts[0];
  Decoder& decoder = *pipeline.decoder;
  if (flags.generate.has_value()) {
    Interrupt interrupt;
    CompletionOptions options{
        GenerationOf(flags, pipeline, load_seconds, interrupt)};
    options.stop_tokens = StopTokens(pipeline);
    options.tokens_out = flags.tokens_out;
    options.profile = flags.profile;
    FUCINA_ASSIGN_OR_RETURN(const std::unique_ptr<Drafter> drafter,
                            MakeDrafter(pipeline));
    options.drafter = drafter.get();
    return RunCompletion(decoder, pipeline.tokenizer.get(), tokens, options,
                         std::cout);
  }
  if (pipeline.constraint != nullptr) {
    FUCINA_LOG(WARNING) << "constraint '" << pipeline.config.constraint.kind
                        << "' is not used: there is no reply";
  }
  if (flags.verify_cache.has_value()) {
    return WithExitCode(
        VerifyCache(decoder, tokens, *flags.verify_cache, std::cout),
        ExitCode::kFile);
  }
  if (flags.spec_bench) {
    constexpr int kFewest = 5;
    return RunSpecBench(decoder, tokens, std::max(kFewest, flags.bench),
                        std::cout);
  }
  if (flags.verify_spec.has_value()) {
    return WithExitCode(VerifySpec(
                            decoder, tokens,
                            {.max_tokens = *flags.verify_spec,
                             .max_draft = pipeline.gate.max_draft,
                             .prefill_chunk = pipeline.config.prefill_chunk},
                            [&] { return MakeDrafter(pipeline); }, std::cout),
                        ExitCode::kFile);
  }
  if (flags.verify_batch.has_value()) {
    return WithExitCode(
        VerifyBatch(decoder, tokens, *flags.verify_batch, std::cout),
        ExitCode::kFile);
  }
  return RunForward(decoder, tokens,
                    {.repeat = flags.repeat,
                     .load_seconds = load_seconds,
                     .logits_out = flags.logits_out,
                     .compare_logits = flags.compare_logits,
                     .limits = flags.compare_limits,
                     .profile = flags.profile},
                    std::cout);
}

LogLevel ParseLogLevel(const std::string& name) {
  if (name == "info") return LogLevel::kInfo;
  if (name == "error") return LogLevel::kError;
  if (name == "silent") return LogLevel::kSilent;
  return LogLevel::kWarning;
}

}  // namespace

absl::Status RunRun(std::span<const std::string> args) {
  FUCINA_ASSIGN_OR_RETURN(RunFlags flags, ParseRunFlags(args));
  if (flags.help) {
    std::cout << RunHelp();
    return absl::OkStatus();
  }
  if (flags.dump_config) {
    std::cout << DumpPipeline(flags.config);
    return absl::OkStatus();
  }
  SetLogLevel(ParseLogLevel(flags.config.log_level));
  // What can be refused without a model is refused before one is opened.
  std::string message;
  if (flags.chat.has_value()) {
    FUCINA_ASSIGN_OR_RETURN(message, ChatMessageText(*flags.chat));
  }
  std::optional<std::string> text;
  if (flags.tokenize.has_value()) {
    FUCINA_ASSIGN_OR_RETURN(
        text, ReadTextFile(*flags.tokenize, "--tokenize", kMaxTextBytes));
  }
  std::vector<std::vector<TokenId>> ids_of_files;
  for (const std::string& path : flags.ids_files) {
    FUCINA_ASSIGN_OR_RETURN(ids_of_files.emplace_back(),
                            ReadTokenIds(path, "--ids-file"));
  }
  const std::pair<absl::string_view, const std::string&> outputs[] = {
      {"--tokens-out", flags.tokens_out},
      {"--logits-out", flags.logits_out},
      {"--bench-json", flags.bench_json}};
  for (const auto& [flag, path] : outputs) {
    if (path.empty()) continue;
    FUCINA_RETURN_IF_ERROR(CheckOutputFile(flag, path));
  }
  const bool embedded = flags.config.model.empty();
  if (embedded) {
    FUCINA_ASSIGN_OR_RETURN(flags.config.model, EmbeddedModelPath());
  }

  ReportFileFaults(flags.config.model);
  const PipelineDepth depth = text.has_value() || flags.info
                                  ? PipelineDepth::kFile
                              : flags.check_grammar ? PipelineDepth::kGrammar
                                                    : PipelineDepth::kDecoder;
  const auto start = std::chrono::steady_clock::now();
  Progress progress("loading the model");
  absl::StatusOr<std::unique_ptr<Pipeline>> built =
      BuildPipeline(std::move(flags.config), depth);
  progress.Finish();
  if (!built.ok()) return Marked(built.status());
  const Pipeline& pipeline = **built;
  const double load_seconds = SecondsSince(start);
  if (text.has_value()) return PrintTokens(pipeline, *text, std::cout);
  if (flags.info) return PrintInfo(pipeline, std::cout);
  if (flags.check_grammar) {
    std::cout << "grammar ok\n";
    return absl::OkStatus();
  }

  if (!flags.quiet) {
    StartupReport report = pipeline.report;
    if (!flags.chat.has_value() && !flags.repl) {
      report.sampler = CompletionSampler(pipeline.config);
      report.sampler_source = "greedy unless flags say otherwise";
    }
    std::cerr << "fucina: " << (embedded ? "embedded model, " : "")
              << StartupLine(report) << "\n";
    for (const std::string& note : pipeline.notes) {
      std::cerr << "fucina: note: " << note << "\n";
    }
  }
  FUCINA_RETURN_IF_ERROR(CheckStopTokens(pipeline));
  if (flags.chat.has_value() || flags.repl) {
    return NamePlugin(pipeline, RunConversation(flags, pipeline, message));
  }
  FUCINA_ASSIGN_OR_RETURN(
      const std::vector<std::vector<TokenId>> prompts,
      PromptTokens(flags, pipeline, std::move(ids_of_files)));
  FUCINA_RETURN_IF_ERROR(CheckLength(flags, pipeline, prompts));
  const bool measured = flags.bench > 1 || flags.streams > 1;
  return NamePlugin(
      pipeline, measured
                    ? RunMeasured(flags, pipeline, prompts, load_seconds, args)
                    : RunPromptMode(flags, pipeline, prompts, load_seconds));
}

}  // namespace fucina::cli
