#include "registry/pipeline.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "fucina/contract/checked_forward.h"
#include "fucina/diag/log.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "fucina/parallel/thread_plan.h"
#include "registry/config_keys.h"
#include "registry/draft_costs.h"
#include "registry/drafter_references.h"
#include "registry/pipeline_template.h"
#include "registry/plugin_calls.h"
#include "registry/unbuilt_plugins.h"

namespace fucina {
namespace {

constexpr char kModelFilePayload[] = "fucina.model_file";

// Marks an error as the model file's fault.
absl::Status BlameFile(absl::Status status) {
  if (!status.ok()) status.SetPayload(kModelFilePayload, absl::Cord());
  return status;
}

// Steps of BuildPipeline, in order; each fills a part of the pipeline.
class Builder {
 public:
  Builder(Pipeline& pipeline, const MemorySources& memory)
      : p_(pipeline), memory_(memory) {}

  absl::Status OpenFile();
  absl::Status ReadText();
  absl::Status ChooseFamily();
  absl::Status CheckOptions();
  absl::Status CompileConstraint();
  absl::Status CheckMemory();
  absl::Status StartThreads();
  absl::Status LoadDecoder();
  absl::Status PlanContext();
  absl::Status MakeAdapterAndDrafter();
  absl::Status ChooseSampler();

 private:
  absl::Status ReadReferences();
  absl::Status ReadGate();
  // Hands a key of the pipeline to the family as its option of that name.
  absl::Status PassOn(absl::string_view name, const std::string& value,
                      OptionTexts& options);

  Pipeline& p_;
  const MemorySources& memory_;
  OptionTexts family_texts_;  // as given
  Options family_options_;
  const Registered<AdapterSource>* adapter_ = nullptr;
  Options adapter_options_;
};

absl::Status Builder::OpenFile() {
  const std::string& model = p_.config.model;
  if (model.empty()) {
    return absl::InvalidArgumentError(
        "no model: give a GGUF file as argument or as 'model:' in the "
        "pipeline file");
  }
  auto file = GgufFile::Open(model);
  if (!file.ok()) {
    // The message begins with the path; a flag's name adds nothing to it.
    const auto origin = p_.config.origins.find("model");
    const bool from_file = origin != p_.config.origins.end() &&
                           origin->second.kind == Origin::Kind::kFile;
    return BlameFile(
        Prefixed(from_file ? p_.config.Blame("model") : "", file.status()));
  }
  p_.file = *std::move(file);
  p_.report.model = p_.file->display_name();

  std::map<std::string, std::int64_t> bytes;
  for (const GgufTensorInfo& tensor : p_.file->tensors()) {
    bytes[std::string(Name(tensor.dtype))] +=
        static_cast<std::int64_t>(tensor.size_bytes);
  }
  p_.report.weight_types.assign(bytes.begin(), bytes.end());
  std::stable_sort(
      p_.report.weight_types.begin(), p_.report.weight_types.end(),
      [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const std::string& note : p_.file->notes()) p_.notes.push_back(note);

  FUCINA_ASSIGN_OR_RETURN(const auto architecture,
                          p_.file->GetString("general.architecture"));
  if (!architecture.has_value()) {
    return BlameFile(absl::InvalidArgumentError(
        absl::StrCat(p_.file->display_name(),
                     ": no key 'general.architecture'; not a model")));
  }
  p_.report.architecture = std::string(*architecture);
  return absl::OkStatus();
}

absl::Status Builder::ReadText() {
  TokenizerOptions options;
  options.pre = p_.config.pre_tokenizer;
  auto tokenizer = Tokenizer::FromGguf(*p_.file, options);
  if (tokenizer.ok()) {
    p_.tokenizer = *std::move(tokenizer);
    p_.tokenizer_status = p_.tokenizer->text_status();
    for (const std::string& note : p_.tokenizer->notes()) {
      p_.notes.push_back(note);
    }
  } else if (absl::IsNotFound(tokenizer.status()) ||
             absl::IsUnimplemented(tokenizer.status())) {
    // Token ids work without one.
    p_.tokenizer_status = tokenizer.status();
  } else {
    return p_.config.pre_tokenizer.empty()
               ? BlameFile(tokenizer.status())
               : Prefixed(p_.config.Blame("pre_tokenizer"), tokenizer.status());
  }
  return ReadChatTemplate(p_);
}

absl::Status Builder::ChooseFamily() {
  const std::string& architecture = p_.report.architecture;
  const std::string& wanted = p_.config.family;
  auto family = p_.registry->FindFamily(architecture);
  if (!wanted.empty() && wanted != architecture) {
    // A family's name may stand for its siblings in the same plugin: qwen3 for
    // a file of qwen3moe.
    auto named = p_.registry->FindFamily(wanted);
    if (!named.ok()) {
      return Prefixed(p_.config.Blame("family"), named.status());
    }
    if (!family.ok() || (*family)->plugin != (*named)->plugin) {
      return absl::InvalidArgumentError(absl::StrCat(
          p_.config.Blame("family"), "family '", Printable(wanted),
          "' cannot run ", p_.file->display_name(), ": its architecture is '",
          Printable(architecture), "', expected '", Printable(wanted), "'"));
    }
  }
  if (!family.ok()) {
    return BlameFile(
        Prefixed(absl::StrCat(p_.file->display_name(), ": "), family.status()));
  }
  p_.family = *family;
  p_.report.plugin = absl::StrCat(Printable(p_.family->plugin->file), " ",
                                  Printable(p_.family->plugin->version));
  return absl::OkStatus();
}

absl::Status Builder::PassOn(absl::string_view name, const std::string& value,
                             OptionTexts& options) {
  if (value == "auto") return absl::OkStatus();
  const Family& family = p_.family->descriptor;
  const bool declared =
      std::any_of(family.options.begin(), family.options.end(),
                  [name](const OptionSpec& s) { return s.name == name; });
  if (!declared) {
    return absl::InvalidArgumentError(
        absl::StrCat(p_.config.Blame(name), "family '", family.name,
                     "' has no option '", name, "'; only 'auto' is possible"));
  }
  const auto it = p_.config.origins.find(std::string(name));
  const Origin origin = it == p_.config.origins.end() ? Origin{} : it->second;
  const auto [entry, inserted] =
      options.emplace(std::string(name), OptionText{value, origin});
  if (!inserted && entry->second.text != value) {
    return absl::InvalidArgumentError(absl::StrCat(
        p_.config.Blame(name), "'", value, "' contradicts 'options.", name,
        "', which is '", Printable(entry->second.text), "'"));
  }
  return absl::OkStatus();
}

absl::Status Builder::CheckOptions() {
  const Family& family = p_.family->descriptor;
  OptionTexts& options = family_texts_;
  options = p_.config.options;
  FUCINA_RETURN_IF_ERROR(
      PassOn(kCacheTypeOption, p_.config.cache_type, options));
  FUCINA_RETURN_IF_ERROR(
      PassOn("kernel_level", p_.config.kernel_level, options));
  FUCINA_ASSIGN_OR_RETURN(
      family_options_,
      ResolveOptions(absl::StrCat("family '", family.name, "'"), family.options,
                     options));

  const auto check_empty = [&](absl::string_view section,
                               const PluginSection& plugin) -> absl::Status {
    if (!plugin.kind.empty() || plugin.options.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(plugin.options.begin()->second.origin.place, ": ", section,
                     " has options but no 'kind'"));
  };
  FUCINA_RETURN_IF_ERROR(check_empty("adapter", p_.config.adapter));
  FUCINA_RETURN_IF_ERROR(check_empty("drafter", p_.config.drafter));
  FUCINA_RETURN_IF_ERROR(check_empty("constraint", p_.config.constraint));

  if (const PluginSection& wanted = p_.config.adapter; !wanted.kind.empty()) {
    auto found = p_.registry->FindAdapter(wanted.kind);
    if (!found.ok()) {
      return Prefixed(p_.config.Blame("adapter.kind"), found.status());
    }
    adapter_ = *found;
    FUCINA_ASSIGN_OR_RETURN(
        adapter_options_,
        ResolveOptions(absl::StrCat("adapter '", wanted.kind, "'"),
                       adapter_->descriptor.options, wanted.options));
    if (p_.tokenizer == nullptr) return p_.tokenizer_status;
  }
  if (const auto& files = p_.config.drafter_references; !files.empty()) {
    const std::string blame = p_.config.Blame("drafter.references");
    constexpr std::size_t kMaxReferences = 8;
    if (files.size() > kMaxReferences) {
      return absl::InvalidArgumentError(
          absl::StrCat(blame, "too many files (max ", kMaxReferences,
                       "), found ", files.size()));
    }
    if (p_.config.drafter.kind.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          blame, "nobody drafts from it; give --spec or 'drafter.kind' too"));
    }
    for (const std::string& file : files) {
      FUCINA_RETURN_IF_ERROR(Prefixed(blame, CheckReference(file)));
    }
    FUCINA_RETURN_IF_ERROR(Prefixed(blame, p_.tokenizer_status));
  }
  FUCINA_RETURN_IF_ERROR(ReadGate());
  if (const PluginSection& wanted = p_.config.drafter; !wanted.kind.empty()) {
    auto found = p_.registry->FindDrafter(wanted.kind);
    if (!found.ok()) {
      return Prefixed(p_.config.Blame("drafter.kind"), found.status());
    }
    p_.drafter_kind = *found;
    FUCINA_ASSIGN_OR_RETURN(
        p_.drafter_options,
        ResolveOptions(absl::StrCat("drafter '", wanted.kind, "'"),
                       p_.drafter_kind->descriptor.options, wanted.options));
  }
  return absl::OkStatus();
}

absl::Status Builder::CompileConstraint() {
  const PluginSection& wanted = p_.config.constraint;
  if (wanted.kind.empty()) return absl::OkStatus();
  auto found = p_.registry->FindConstraint(wanted.kind);
  if (!found.ok()) {
    const absl::string_view why = WhyNotBuilt(wanted.kind);
    if (why.empty()) {
      return Prefixed(p_.config.Blame("constraint.kind"), found.status());
    }
    return absl::NotFoundError(absl::StrCat(
        p_.config.Blame("constraint.kind"), "constrained decoding needs the ",
        wanted.kind, " plugin (not built: ", why, ")"));
  }
  if (p_.tokenizer == nullptr) {
    return Prefixed("constrained decoding needs a tokenizer: ",
                    p_.tokenizer_status);
  }
  const std::string what = absl::StrCat("constraint '", wanted.kind, "'");
  const ConstraintKind& kind = (*found)->descriptor;
  OptionTexts texts = wanted.options;
  // What ends a reply besides the model's own tokens.
  const std::vector<int>& stops = p_.config.chat.stop_tokens;
  const bool takes_stops = std::any_of(
      kind.options.begin(), kind.options.end(),
      [](const OptionSpec& spec) { return spec.name == kStopTokensOption; });
  if (takes_stops && !stops.empty()) {
    texts.emplace(std::string(kStopTokensOption),
                  OptionText{absl::StrJoin(stops, ","),
                             p_.config.origins["chat.stop_tokens"]});
  }
  FUCINA_ASSIGN_OR_RETURN(const Options options,
                          ResolveOptions(what, kind.options, texts));
  const auto start = std::chrono::steady_clock::now();
  auto constraint = Guarded(*(*found)->plugin, what,
                            [&] { return kind.make(*p_.tokenizer, options); });
  if (!constraint.ok()) {
    return Prefixed(p_.config.Blame("constraint.kind"), constraint.status());
  }
  if (*constraint == nullptr) {
    return BrokeContract(*(*found)->plugin, "it made no constraint");
  }
  p_.constraint = *std::move(constraint);
  p_.report.constraint = wanted.kind;
  p_.report.constraint_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return absl::OkStatus();
}

absl::Status Builder::CheckMemory() {
  // What is read and kept: all tensors but an embedding that is no head as
  // well; its rows are looked up in the mapped file.
  const bool tied = p_.file->FindTensor("output.weight") == nullptr;
  std::int64_t needed = 0;
  for (const GgufTensorInfo& tensor : p_.file->tensors()) {
    if (tensor.name == "token_embd.weight" && !tied) continue;
    needed += static_cast<std::int64_t>(tensor.size_bytes);
  }
  const AvailableMemory available = ReadAvailableMemory(memory_);
  if (p_.config.memory_check && needed > available.bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        p_.file->display_name(), ": needs ", HumanBytes(needed), " (", needed,
        " bytes) for weights, ", HumanBytes(available.bytes), " (",
        available.bytes, " bytes) are available (", available.reason,
        "); --no-memory-check tries all the same"));
  }
  return absl::OkStatus();
}

absl::Status Builder::StartThreads() {
  const ThreadPlan plan = PlanThreads(p_.config.threads);
  p_.report.num_threads = plan.num_threads;
  p_.report.threads_reason = plan.reason;
  p_.pool = std::make_unique<ThreadPool>(plan.num_threads);
  return absl::OkStatus();
}

absl::Status Builder::LoadDecoder() {
  const PluginRecord& plugin = *p_.family->plugin;
  const Family& family = p_.family->descriptor;
  const std::string what = absl::StrCat("family '", family.name, "'");
  auto decoder = Guarded(plugin, what, [&] {
    return family.load(*p_.file, *p_.pool, family_options_);
  });
  if (const std::string option = BlamedOption(decoder.status());
      !option.empty()) {
    const auto text = family_texts_.find(option);
    return absl::InvalidArgumentError(absl::StrCat(
        text == family_texts_.end() ? std::string()
                                    : text->second.origin.Text() + ": ",
        decoder.status().message()));
  }
  if (!decoder.ok()) return BlameFile(decoder.status());
  if (*decoder == nullptr) return BrokeContract(plugin, "it made no decoder");
  p_.decoder = *std::move(decoder);

  const DecoderInfo& info = p_.decoder->info();
  if (info.architecture != p_.report.architecture || info.vocab_size < 1 ||
      info.hidden_size < 1 || info.num_layers < 1 || info.context_length < 1 ||
      info.weight_bytes < 0 || info.state_bytes_per_token < 0) {
    return BrokeContract(
        plugin, absl::StrFormat("its decoder calls itself '%s' with %d layers "
                                "of width %d, %d logits, %d context",
                                Printable(info.architecture), info.num_layers,
                                info.hidden_size, info.vocab_size,
                                info.context_length));
  }
  p_.report.weight_bytes = info.weight_bytes;
  p_.report.state_bytes_per_token = info.state_bytes_per_token;
  p_.report.trained_context = info.context_length;
  p_.report.kernel_level = info.kernel_level;
  return absl::OkStatus();
}

absl::Status Builder::PlanContext() {
  const DecoderInfo& info = p_.decoder->info();
  const int asked = p_.config.context;
  const std::int64_t per_token =
      std::max<std::int64_t>(1, info.state_bytes_per_token);
  const AvailableMemory available = ReadAvailableMemory(memory_);
  const std::int64_t fits = p_.config.memory_check
                                ? available.bytes / per_token
                                : std::numeric_limits<std::int64_t>::max();
  const int wanted = asked > 0 ? asked : info.context_length;
  p_.report.context = static_cast<int>(std::min<std::int64_t>(wanted, fits));
  // Too little to be of use counts as nothing.
  constexpr int kSmallestContext = 64;
  const bool too_small = p_.report.context < std::min(wanted, kSmallestContext);
  if ((asked > 0 && fits < asked) || too_small) {
    return absl::ResourceExhaustedError(absl::StrCat(
        p_.config.Blame("context"), "a context of ", wanted, " tokens needs ",
        HumanBytes(per_token * wanted), " (", per_token * wanted, " bytes), ",
        HumanBytes(available.bytes), " (", available.bytes,
        " bytes) are available (", available.reason, "); a context of ", fits,
        " would fit"));
  }
  if (asked > info.context_length) {
    FUCINA_LOG(WARNING) << p_.config.Blame("context") << "a context of "
                        << asked << " tokens is more than the "
                        << info.context_length
                        << " this model was trained for; expect worse replies";
  }
  if (asked == 0 && p_.report.context < info.context_length) {
    p_.notes.push_back(absl::StrCat(
        "the context is ", p_.report.context, " tokens, not the trained ",
        info.context_length, ": no more fits into ",
        HumanBytes(available.bytes), " (", available.reason, ")"));
  }
  return absl::OkStatus();
}

absl::Status Builder::MakeAdapterAndDrafter() {
  if (adapter_ != nullptr) {
    auto adapter =
        Guarded(*adapter_->plugin,
                absl::StrCat("adapter '", p_.config.adapter.kind, "'"), [&] {
                  return adapter_->descriptor.make(*p_.decoder, *p_.tokenizer,
                                                   *p_.pool, adapter_options_);
                });
    if (!adapter.ok()) {
      return Prefixed(p_.config.Blame("adapter.kind"), adapter.status());
    }
    if (adapter->layers.size() >
        static_cast<std::size_t>(p_.decoder->info().num_layers)) {
      return BrokeContract(*adapter_->plugin,
                           "its adapter has more layers than the model");
    }
    p_.adapter = *std::move(adapter);
  }
  // One drafter is made and dropped, to find out now whether it can be.
  const absl::Status made = MakeDrafter(p_).status();
  // A drafter of another family is a wrong configuration.
  if (absl::IsUnimplemented(made)) {
    return absl::InvalidArgumentError(made.message());
  }
  if (made.ok()) return ReadReferences();
  if (!absl::IsFailedPrecondition(made)) {
    // What is read from the model for it may be damaged there.
    const bool of_file = absl::StartsWith(
        made.message(), absl::StrCat(p_.config.Blame("drafter.kind"),
                                     p_.file->display_name(), ": "));
    return of_file ? BlameFile(made) : made;
  }
  FUCINA_LOG(WARNING) << made.message() << "; decoding goes on without it";
  p_.drafter_kind = nullptr;
  return absl::OkStatus();
}

absl::Status Builder::ReadGate() {
  const PipelineConfig& config = p_.config;
  const PipelineConfig initial;
  const std::pair<const char*, bool> asked_for[] = {
      {"drafter.max_draft", config.max_draft != initial.max_draft},
      {"drafter.costs", config.draft_costs != initial.draft_costs},
      {"drafter.gate", config.draft_gate != initial.draft_gate}};
  for (const auto& [key, changed] : asked_for) {
    // A dumped file holds the initial values too; a flag is always a wish.
    const auto origin = config.origins.find(key);
    const bool flag = origin != config.origins.end() &&
                      origin->second.kind == Origin::Kind::kFlag;
    if (!(changed || flag) || !config.drafter.kind.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        config.Blame(key), "nobody drafts; give --spec or 'drafter.kind' too"));
  }
  p_.gate.max_draft = config.max_draft;
  p_.gate.always_on = !config.draft_gate;
  if (config.draft_costs.empty()) return absl::OkStatus();
  auto costs = ParseDraftCosts(config.draft_costs);
  if (!costs.ok()) {
    return Prefixed(config.Blame("drafter.costs"), costs.status());
  }
  p_.gate.cost_table = *std::move(costs);
  return absl::OkStatus();
}

absl::Status Builder::ReadReferences() {
  const std::vector<std::string>& files = p_.config.drafter_references;
  if (files.empty()) return absl::OkStatus();
  const std::string blame = p_.config.Blame("drafter.references");
  for (const std::string& file : files) {
    const auto text = ReadReference(file);
    if (!text.ok()) return Prefixed(blame, text.status());
    // As it is: no tokens that only begin or end a prompt.
    auto tokens = p_.tokenizer->Encode(*text, {.add_special = false});
    if (!tokens.ok()) {
      return Prefixed(absl::StrCat(blame, "'", Printable(file), "': "),
                      tokens.status());
    }
    p_.notes.push_back(absl::StrCat("spec ref: ", Printable(file), " (",
                                    tokens->size(), " tokens)"));
    p_.drafter_references.emplace_back(file, *std::move(tokens));
    // Before the next one is read.
    FUCINA_RETURN_IF_ERROR(CheckReferenceMemory(p_));
  }
  return absl::OkStatus();
}

absl::Status Builder::ChooseSampler() {
  const bool thinking = MayThink(p_);
  // Only advice of the family or the file can be wrong here.
  auto sampler = ChatSampler(p_.config, p_.family->descriptor.chat, *p_.file,
                             thinking, &p_.report.sampler_source);
  if (!sampler.ok()) return BlameFile(sampler.status());
  p_.report.sampler = *sampler;
  if (thinking && p_.report.sampler.temperature == 0) {
    p_.notes.push_back(
        "greedy sampling while the model thinks tends to repeat itself");
  }
  return absl::OkStatus();
}

}  // namespace

const ChatTraits& Pipeline::chat_traits() const {
  static constexpr ChatTraits kNone;
  return family == nullptr || family->descriptor.chat == nullptr
             ? kNone
             : *family->descriptor.chat;
}

bool BlamesModelFile(const absl::Status& status) {
  return status.GetPayload(kModelFilePayload).has_value();
}

absl::Status NamePlugin(const Pipeline& pipeline, const absl::Status& status) {
  if (pipeline.family == nullptr || !BlamesDecoder(status)) return status;
  return Prefixed(absl::StrCat(Printable(pipeline.family->plugin->file), ": "),
                  status);
}

absl::StatusOr<std::unique_ptr<Registry>> LoadPlugins(
    const PipelineConfig& config) {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<PluginDirectory> directories,
                          DefaultPluginDirectories());
  auto registry = std::make_unique<Registry>();
  FUCINA_RETURN_IF_ERROR(config.plugins.has_value()
                             ? registry->LoadNamed(*config.plugins, directories)
                             : registry->LoadFound(directories));
  return registry;
}

absl::StatusOr<std::unique_ptr<Pipeline>> BuildPipeline(
    PipelineConfig config, PipelineDepth depth,
    std::unique_ptr<Registry> registry, const MemorySources& memory) {
  auto pipeline = std::make_unique<Pipeline>();
  pipeline->config = std::move(config);
  pipeline->memory = memory;
  Builder builder(*pipeline, memory);
  // A plugin or family that is named is looked up even where it is not needed.
  const bool finds_family = depth != PipelineDepth::kFile ||
                            pipeline->config.plugins.has_value() ||
                            !pipeline->config.family.empty();
  if (finds_family) {
    pipeline->registry = std::move(registry);
    if (pipeline->registry == nullptr) {
      FUCINA_ASSIGN_OR_RETURN(pipeline->registry,
                              LoadPlugins(pipeline->config));
    }
  }
  FUCINA_RETURN_IF_ERROR(builder.OpenFile());
  if (finds_family) FUCINA_RETURN_IF_ERROR(builder.ChooseFamily());
  FUCINA_RETURN_IF_ERROR(builder.ReadText());
  if (depth == PipelineDepth::kFile) return pipeline;

  FUCINA_RETURN_IF_ERROR(builder.CheckOptions());
  FUCINA_RETURN_IF_ERROR(builder.CompileConstraint());
  if (depth == PipelineDepth::kGrammar) return pipeline;
  FUCINA_RETURN_IF_ERROR(builder.ChooseSampler());
  FUCINA_RETURN_IF_ERROR(builder.CheckMemory());
  FUCINA_RETURN_IF_ERROR(builder.StartThreads());
  FUCINA_RETURN_IF_ERROR(builder.LoadDecoder());
  FUCINA_RETURN_IF_ERROR(builder.PlanContext());
  FUCINA_RETURN_IF_ERROR(builder.MakeAdapterAndDrafter());
  return pipeline;
}

bool MayThink(const Pipeline& pipeline) {
  if (pipeline.config.chat.thinking.has_value()) {
    return *pipeline.config.chat.thinking;
  }
  // A template that knows the marks belongs to a model that thinks.
  return pipeline.chat_template != nullptr &&
         !pipeline.chat_template->think_open().empty();
}

}  // namespace fucina
