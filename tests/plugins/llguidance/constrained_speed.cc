// constrained_speed MODEL.gguf [ROUNDS]: tokens per second with and without a
// constraint, and with and without forced tokens as drafts.
//
// Four arms in turns, each round beginning with another: free; every text
// allowed, so that only the mask is added; a function call in JSON without
// drafts; the same with forced tokens as drafts. Prints the median of the
// speeds, and that of the ratios to the free arm of the same round. MODEL is of
// the qwen3 family.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "fucina/diag/check.h"
#include "tests/plugins/llguidance/atlas_run.h"
#include "tests/plugins/llguidance/toy_constraint.h"

namespace {

using fucina::testing::Atlas;
using fucina::testing::AtlasSequence;

constexpr char kCall[] =
    R"({"type":"object","additionalProperties":false,
        "x-guidance":{"whitespace_flexible":false},
        "properties":{
          "name":{"const":"create_calendar_event"},
          "arguments":{"type":"object","additionalProperties":false,
            "properties":{
              "event_title":{"type":"string","maxLength":24},
              "start_date":{"type":"string","format":"date"},
              "duration_minutes":{"type":"integer","minimum":5,"maximum":480},
              "send_notifications":{"type":"boolean"},
              "visibility":{"enum":["public","private","confidential"]}},
            "required":["event_title","start_date","duration_minutes",
                        "send_notifications","visibility"]}},
        "required":["name","arguments"]})";

struct Arm {
  const char* name;
  const fucina::Constraint* constraint;
  bool drafts;
  int tokens = 0;
  std::vector<double> rates = {};
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc == 3 ? std::atoi(argv[2]) : 5;
  if (argc < 2 || argc > 3 || rounds < 1) {
    std::fprintf(stderr, "usage: constrained_speed MODEL.gguf [ROUNDS]\n");
    return 2;
  }
  const Atlas model(2, argv[1]);
  const std::vector<fucina::TokenId> prompt =
      model.tokenizer->Encode("Put lunch with Ada into my calendar:").value();
  const auto any =
      fucina::testing::MakeConstraint(*model.tokenizer, {{"regex", "(?s:.*)"}})
          .value();
  const auto call = fucina::testing::MakeConstraint(*model.tokenizer,
                                                    {{"json_schema", kCall}})
                        .value();
  Arm arms[] = {{"free", nullptr, false},
                {"any text", any.get(), false},
                {"json, no drafts", call.get(), false},
                {"json, forced drafts", call.get(), true}};
  // About as long as the call is.
  constexpr int kTokens = 50;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < std::size(arms); ++turn) {
      Arm& arm =
          arms[(static_cast<std::size_t>(round) + turn) % std::size(arms)];
      std::unique_ptr<fucina::Constraint> constraint;
      if (arm.constraint != nullptr) {
        constraint = arm.constraint->Clone().value();
        if (!arm.drafts) {
          constraint = std::make_unique<fucina::testing::NoForcing>(
              std::move(constraint));
        }
      }
      AtlasSequence run(model, {},
                        static_cast<int>(prompt.size()) + kTokens + 1,
                        std::move(constraint));
      fucina::GenerationLimits limits = {.max_tokens = kTokens};
      // A free run must be as long as the others.
      if (arm.constraint == call.get()) limits.stop_tokens = model.stops;
      const absl::Status status =
          fucina::Generator(*model.decoder)
              .Generate(run.sequence, prompt, limits,
                        [](fucina::TokenId) { return true; });
      FUCINA_CHECK(status.ok()) << status;
      const fucina::GenerationStats& stats = run.sequence.stats();
      arm.tokens = stats.new_tokens;
      arm.rates.push_back((stats.new_tokens - 1) * 1e3 / stats.decode_ms);
    }
  }
  const std::vector<double> free_rates = arms[0].rates;
  for (Arm& arm : arms) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < arm.rates.size(); ++round) {
      ratios.push_back(arm.rates[round] / free_rates[round]);
    }
    std::printf("%-20s %3d tokens  %7.2f tok/s  (min %.2f, max %.2f)  %.3fx\n",
                arm.name, arm.tokens, Median(arm.rates),
                *std::min_element(arm.rates.begin(), arm.rates.end()),
                *std::max_element(arm.rates.begin(), arm.rates.end()),
                Median(ratios));
  }
  return 0;
}
