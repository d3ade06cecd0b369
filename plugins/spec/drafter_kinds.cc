#include "drafter_kinds.h"

#include <new>

#include "absl/strings/str_cat.h"
#include "cascade.h"
#include "fucina/diag/status_macros.h"

namespace fucina::spec {
namespace {

constexpr std::int64_t kMaxIndexTokens = std::int64_t{1} << 29;

constexpr OptionSpec kOptions[] = {
    {.name = "min_match",
     .type = OptionType::kInt,
     .default_value = "2",
     .doc = "tokens that must recur before their continuation is drafted; 1 to "
            "64"},
    {.name = "beta",
     .type = OptionType::kInt,
     .default_value = "4",
     .doc = "draft up to beta * (1 + matched tokens); 1 to 64"},
    {.name = "max_index_tokens",
     .type = OptionType::kInt,
     .default_value = "4194304",
     .doc = "tokens of the conversation that are indexed, 64 bytes each; 1 to "
            "536870912"}};

absl::StatusOr<std::int64_t> InRange(const Options& options,
                                     absl::string_view name,
                                     std::int64_t most) {
  const std::int64_t value = options.GetInt(name);
  if (value >= 1 && value <= most) return value;
  return absl::InvalidArgumentError(absl::StrCat(
      "option '", name, "': expected 1 to ", most, ", found ", value));
}

absl::StatusOr<std::unique_ptr<Drafter>> Make(const Decoder& target,
                                              const CascadeOptions& options) {
  try {
    return std::make_unique<Cascade>(target.info().vocab_size, options);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("no memory for the recycling table");
  }
}

absl::Status ReadMatching(const Options& options, CascadeOptions& out) {
  FUCINA_ASSIGN_OR_RETURN(const std::int64_t min_match,
                          InRange(options, "min_match", 64));
  FUCINA_ASSIGN_OR_RETURN(const std::int64_t beta,
                          InRange(options, "beta", 64));
  FUCINA_ASSIGN_OR_RETURN(
      const std::int64_t max_tokens,
      InRange(options, "max_index_tokens", kMaxIndexTokens));
  out.min_match = static_cast<int>(min_match);
  out.beta = static_cast<int>(beta);
  out.max_index_tokens = static_cast<std::size_t>(max_tokens);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Drafter>> MakeSuffix(const Decoder& target,
                                                    const Options& options) {
  CascadeOptions cascade = {.recycling = false};
  FUCINA_RETURN_IF_ERROR(ReadMatching(options, cascade));
  return Make(target, cascade);
}

absl::StatusOr<std::unique_ptr<Drafter>> MakeRecycling(const Decoder& target,
                                                       const Options&) {
  return Make(target, {.conversation = false});
}

absl::StatusOr<std::unique_ptr<Drafter>> MakeCascade(const Decoder& target,
                                                     const Options& options) {
  CascadeOptions cascade;
  FUCINA_RETURN_IF_ERROR(ReadMatching(options, cascade));
  return Make(target, cascade);
}

}  // namespace

const DrafterKind& SuffixKind() {
  static const DrafterKind kind = {
      .name = "suffix",
      .summary = "repeats what followed the longest match in the text so far",
      .options = kOptions,
      .make = &MakeSuffix};
  return kind;
}

const DrafterKind& RecyclingKind() {
  static const DrafterKind kind = {
      .name = "recycling",
      .summary = "what the model thought likely after each token",
      .make = &MakeRecycling};
  return kind;
}

const DrafterKind& CascadeKind() {
  static const DrafterKind kind = {
      .name = "cascade",
      .summary = "suffix with reference documents, then recycling",
      .options = kOptions,
      .make = &MakeCascade};
  return kind;
}

}  // namespace fucina::spec
