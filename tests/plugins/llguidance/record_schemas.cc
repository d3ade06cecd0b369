// record_schemas IN.json OUT.json: what the plugin makes of JSON schemas.
//
// IN   a list of {"schema": TEXT, "instances": [TEXT, …], "samples": N,
//      "draws": M, "prompts": [TEXT, …]}
// OUT  a list of {"refused": MESSAGE} or {"accepts": [BOOL, …], "samples":
//      [TEXT, …], "incomplete": N}: which instances are replies, and the first
//      N complete ones of at most M replies of the embedded model to each
//      prompt, 50 of each in turn, at temperature 1, seeds 0 to M - 1, at most
//      160 tokens each; how many before the last of them were not complete
//
// Driven by tests/oracles/json_schema_suite.py.

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/plugins/llguidance/atlas_run.h"
#include "tests/plugins/llguidance/schema_instances.h"
#include "tests/plugins/llguidance/toy_constraint.h"

namespace {

using fucina::testing::Atlas;
using fucina::testing::AtlasSequence;

constexpr int kMaxTokens = 160;
constexpr int kTogether = 50;

void Sample(const Atlas& atlas, const fucina::Constraint& constraint,
            std::span<const fucina::TokenId> prompt, int first, int count,
            std::size_t wanted, nlohmann::ordered_json& record) {
  std::vector<std::unique_ptr<AtlasSequence>> sequences;
  std::vector<fucina::Stream> streams(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    sequences.push_back(std::make_unique<AtlasSequence>(
        atlas,
        fucina::SamplerConfig{.temperature = 1,
                              .seed = static_cast<std::uint64_t>(first + i)},
        static_cast<int>(prompt.size()) + kMaxTokens,
        constraint.Clone().value()));
    fucina::Stream& stream = streams[static_cast<std::size_t>(i)];
    stream.sequence = &sequences.back()->sequence;
    stream.prompt = prompt;
    stream.limits = {.max_tokens = kMaxTokens, .stop_tokens = atlas.stops};
  }
  fucina::Generator(*atlas.decoder).Generate(streams);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (record["samples"].size() == wanted) return;
    FUCINA_CHECK(streams[i].status.ok()) << streams[i].status;
    if (!sequences[i]->constraint->IsComplete()) {
      record["incomplete"] = record["incomplete"].get<int>() + 1;
      continue;
    }
    record["samples"].push_back(
        atlas.tokenizer->Decode(sequences[i]->Generated()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: record_schemas IN.json OUT.json\n");
    return 2;
  }
  std::ifstream in(argv[1]);
  const auto schemas = nlohmann::ordered_json::parse(in);
  const Atlas atlas(2);
  auto records = nlohmann::ordered_json::array();
  for (const auto& entry : schemas) {
    nlohmann::ordered_json record;
    const auto made = fucina::testing::MakeConstraint(
        *atlas.tokenizer,
        {{"json_schema", entry.at("schema").get<std::string>()}});
    if (!made.ok()) {
      record["refused"] = std::string(made.status().message());
    } else {
      record["accepts"] = nlohmann::ordered_json::array();
      for (const auto& instance : entry.at("instances")) {
        record["accepts"].push_back(fucina::testing::Accepts(
            **made, *atlas.tokenizer, instance.get<std::string>()));
      }
      record["samples"] = nlohmann::ordered_json::array();
      record["incomplete"] = 0;
      const auto wanted = entry.at("samples").get<std::size_t>();
      const int draws = entry.at("draws").get<int>();
      std::vector<std::vector<fucina::TokenId>> prompts;
      for (const auto& text : entry.at("prompts")) {
        prompts.push_back(
            atlas.tokenizer->Encode(text.get<std::string>()).value());
      }
      for (int first = 0; first < draws; first += kTogether) {
        for (const auto& prompt : prompts) {
          if (record["samples"].size() == wanted) break;
          Sample(atlas, **made, prompt, first,
                 std::min(kTogether, draws - first), wanted, record);
        }
      }
    }
    records.push_back(std::move(record));
    std::fprintf(stderr, "\r%zu/%zu", records.size(), schemas.size());
  }
  std::fprintf(stderr, "\n");
  std::ofstream out(argv[2]);
  out << records.dump(-1, ' ', false,
                      nlohmann::ordered_json::error_handler_t::replace);
  return out.good() ? 0 : 1;
}
