#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "fucina/diag/status_macros.h"
#include "fucina/runner/runner.h"

namespace fucina {
namespace {

constexpr OptionSpec kSpecs[] = {
    {"block_style", OptionType::kString, "auto",
     "auto, fused (fast) or host_reference (plain f32 loops)"},
    {"kernel_level", OptionType::kString, "auto",
     "auto, scalar, avx2, avx-vnni or avx512-vnni"},
    {"cache_type", OptionType::kString, "f16",
     "storage of keys and values: f16 or f32"},
    {"strict", OptionType::kBool, "false",
     "refuse a file with tensors that the model does not use"},
    {"expert_top_p", OptionType::kFloat, "1.0",
     "share of the routing weight that is kept, above 0 up to 1 (off)"},
};

absl::Status Error(absl::string_view option, absl::string_view found,
                   absl::string_view expected) {
  return BlameOption(option, absl::InvalidArgumentError(absl::StrCat(
                                 "option '", option, "' is '", found,
                                 "'; expected ", expected)));
}

absl::StatusOr<std::optional<KernelLevel>> ParseLevel(const std::string& text) {
  std::optional<KernelLevel> level;
  if (text == "auto") return level;
  // Option words are usually written with underscores.
  level = ParseKernelLevel(absl::StrReplaceAll(text, {{"_", "-"}}));
  if (!level.has_value()) {
    std::string names = "auto";
    for (KernelLevel known : kAllKernelLevels) {
      absl::StrAppend(&names, ", ", Name(known));
    }
    return Error("kernel_level", text, absl::StrCat("one of ", names));
  }
  if (KernelsFor(*level) == nullptr) {
    std::string names;
    for (KernelLevel known : kAllKernelLevels) {
      if (KernelsFor(known) == nullptr) continue;
      absl::StrAppend(&names, names.empty() ? "" : ", ", Name(known));
    }
    return BlameOption(
        "kernel_level",
        absl::FailedPreconditionError(absl::StrCat(
            "option 'kernel_level' is '", text,
            "', which this processor does not support; it has ", names)));
  }
  return level;
}

}  // namespace

std::span<const OptionSpec> RunnerOptionSpecs() { return kSpecs; }

absl::StatusOr<RunnerOptions> ParseRunnerOptions(const Options& options) {
  RunnerOptions parsed;
  const std::string& style = options.GetString("block_style");
  if (style == Name(BlockStyle::kFused)) {
    parsed.block_style = BlockStyle::kFused;
  } else if (style == Name(BlockStyle::kHostReference)) {
    parsed.block_style = BlockStyle::kHostReference;
  } else if (style != "auto") {
    return Error("block_style", style, "auto, fused or host_reference");
  }
  FUCINA_ASSIGN_OR_RETURN(parsed.kernel_level,
                          ParseLevel(options.GetString("kernel_level")));

  const std::string& cache = options.GetString("cache_type");
  if (cache == "f16") {
    parsed.cache_type = DType::kF16;
  } else if (cache == "f32") {
    parsed.cache_type = DType::kF32;
  } else if (cache == "q8_0") {
    return BlameOption(
        "cache_type",
        absl::UnimplementedError(
            "option 'cache_type' is 'q8_0', which this runner does not have "
            "yet; use f16 or f32"));
  } else {
    return Error("cache_type", cache, "f16 or f32");
  }
  parsed.strict = options.GetBool("strict");
  parsed.expert_top_p = options.GetFloat("expert_top_p");
  if (!(parsed.expert_top_p > 0 && parsed.expert_top_p <= 1)) {
    return Error("expert_top_p", absl::StrCat(parsed.expert_top_p),
                 "a number above 0 and at most 1");
  }
  return parsed;
}

}  // namespace fucina
