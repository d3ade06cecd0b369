// Which sampling values hold, and the start-up line.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "registry/pipeline.h"

namespace fucina {
namespace {

// The author's advice in the file: general.sampling.*; false when it has none.
absl::StatusOr<bool> AdviceOfFile(const GgufFile& file, SamplerConfig& config) {
  bool found = false;
  const auto number = [&](absl::string_view name,
                          double& value) -> absl::Status {
    const std::string key = absl::StrCat("general.sampling.", name);
    FUCINA_ASSIGN_OR_RETURN(const std::optional<double> advice,
                            file.GetFloat(key));
    if (advice.has_value()) {
      value = *advice;
      found = true;
    }
    return absl::OkStatus();
  };
  double top_k = 0;
  FUCINA_RETURN_IF_ERROR(number("temp", config.temperature));
  FUCINA_RETURN_IF_ERROR(number("top_k", top_k));
  FUCINA_RETURN_IF_ERROR(number("top_p", config.top_p));
  FUCINA_RETURN_IF_ERROR(number("min_p", config.min_p));
  if (found) {
    // Validate would judge a value that the cast has already changed.
    if (!(top_k >= 0 && top_k <= 1e9)) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.display_name(), ": key 'general.sampling.top_k': ",
                       "expected an integer, 0 or more, found ", top_k));
    }
    config.top_k = static_cast<int>(top_k);
  }
  return found;
}

void ApplyUserValues(const SamplingConfig& user, SamplerConfig& config) {
  if (user.temperature) config.temperature = *user.temperature;
  if (user.top_k) config.top_k = *user.top_k;
  if (user.top_p) config.top_p = *user.top_p;
  if (user.min_p) config.min_p = *user.min_p;
  config.repeat_penalty = user.repeat_penalty;
  config.frequency_penalty = user.frequency_penalty;
  config.presence_penalty = user.presence_penalty;
  config.penalty_window = user.penalty_window;
  config.seed = user.seed;
}

}  // namespace

absl::StatusOr<SamplerConfig> ChatSampler(const PipelineConfig& config,
                                          const ChatTraits* traits,
                                          const GgufFile& file, bool thinking,
                                          std::string* source) {
  SamplerConfig sampler;
  sampler.temperature = 0.7;
  sampler.top_p = 0.95;
  std::string from = "the program's defaults";
  if (traits != nullptr) {
    const SamplingDefaults& advice =
        thinking ? traits->thinking : traits->non_thinking;
    // Through the shortest decimal, so that 0.6F becomes 0.6.
    const auto widen = [](float value) {
      return std::stod(absl::StrFormat("%.7g", value));
    };
    sampler.temperature = widen(advice.temperature);
    sampler.top_k = advice.top_k;
    sampler.top_p = widen(advice.top_p);
    sampler.min_p = widen(advice.min_p);
    from = thinking ? "the family's advice with thinking"
                    : "the family's advice without thinking";
  } else {
    FUCINA_ASSIGN_OR_RETURN(const bool found, AdviceOfFile(file, sampler));
    if (found) from = "the model file's advice";
  }
  if (absl::Status status = Validate(sampler); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.display_name(), ": ", from, ": ", status.message()));
  }
  ApplyUserValues(config.sampling, sampler);
  if (source != nullptr) *source = from;
  return sampler;
}

SamplerConfig CompletionSampler(const PipelineConfig& config) {
  SamplerConfig sampler;  // greedy
  ApplyUserValues(config.sampling, sampler);
  return sampler;
}

std::string StartupLine(const StartupReport& r) {
  std::vector<std::string> types;
  for (const auto& [name, bytes] : r.weight_types) {
    types.push_back(absl::StrCat(name, " ", HumanBytes(bytes)));
  }
  const SamplerConfig& s = r.sampler;
  return absl::StrCat(
      Printable(r.architecture), " by ", r.plugin, " | file ",
      absl::StrJoin(types, ", "), " | memory: weights ",
      HumanBytes(r.weight_bytes), ", ",
      HumanBytes(r.state_bytes_per_token * 1000), " per 1000 tokens | context ",
      r.context, " of ", r.trained_context, " | threads ", r.threads_reason,
      r.kernel_level.empty() ? "" : absl::StrCat(" | ", r.kernel_level),
      " | template ", Printable(r.chat_template), " | sampling temp ",
      s.temperature, ", top-k ", s.top_k, ", top-p ", s.top_p, ", min-p ",
      s.min_p, ", repeat ", s.repeat_penalty, ", seed ", s.seed, " (",
      r.sampler_source, ")",
      r.constraint.empty()
          ? ""
          : absl::StrFormat(" | constraint %s, compiled in %.1f ms",
                            Printable(r.constraint),
                            r.constraint_seconds * 1e3));
}

}  // namespace fucina
