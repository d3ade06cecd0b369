// mask_cost MODEL.gguf LIST.json: what a constraint costs per token.
//
// LIST  a list of {"schema": TEXT, "instances": [TEXT, …]}
//
// Walks every instance token by token: a mask over a row as wide as the
// vocabulary, then the token. Prints a table; times are of one thread and
// include applying the mask; "with forced" also asks for forced tokens, as the
// generator does before every mask. Driven by tests/oracles/mask_bench.py.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "fucina/diag/log.h"
#include "plugins/llguidance/compile.h"
#include "plugins/llguidance/llguidance_constraint.h"
#include "tests/core/text/vocab_file.h"

namespace {

using Clock = std::chrono::steady_clock;

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start)
      .count();
}

void Print(const char* what, std::vector<double> us) {
  if (us.empty()) return;
  std::sort(us.begin(), us.end());
  double sum = 0;
  for (const double value : us) sum += value;
  const auto at = [&](double share) {
    return us[std::min(
        us.size() - 1,
        static_cast<std::size_t>(share * static_cast<double>(us.size())))];
  };
  std::printf(
      "%-12s %8zu  avg %8.1f  p50 %8.1f  p90 %8.1f  p99 %8.1f  "
      "max %9.1f us\n",
      what, us.size(), sum / static_cast<double>(us.size()), at(0.5), at(0.9),
      at(0.99), us.back());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: mask_cost MODEL.gguf LIST.json\n");
    return 2;
  }
  using namespace fucina;  // NOLINT(google-build-using-namespace): a main
  SetLogLevel(LogLevel::kSilent);
  const auto file = GgufFile::Open(argv[1]).value();
  const auto tokenizer = Tokenizer::FromGguf(*file).value();
  const auto stops = tokenizer->stop_tokens();
  Clock::time_point start = Clock::now();
  const auto engine =
      llguidance::EngineTokenizer::Make(*tokenizer, stops).value();
  std::printf("vocabulary   %8d tokens, trie built in %.0f ms\n",
              tokenizer->vocab_size(), MicrosecondsSince(start) / 1e3);

  std::ifstream in(argv[2]);
  const auto list = nlohmann::ordered_json::parse(in);
  std::vector<double> compile_us;
  std::vector<double> mask_us;
  std::vector<double> first_us;
  std::vector<double> both_us;
  std::vector<double> accept_us;
  int refused = 0;
  int cut = 0;
  std::size_t forced = 0;
  std::vector<float> logits(static_cast<std::size_t>(tokenizer->vocab_size()));
  std::vector<TokenId> ahead(128);
  for (const auto& entry : list) {
    const auto grammar = llguidance::JsonSchemaGrammar(
        entry.at("schema").get<std::string>(), false);
    if (!grammar.ok()) {
      ++refused;
      continue;
    }
    start = Clock::now();
    auto compiled =
        llguidance::Compile(engine, *grammar, std::chrono::milliseconds(60000));
    const double us = MicrosecondsSince(start);
    if (!compiled.ok()) {
      ++refused;
      continue;
    }
    compile_us.push_back(us);
    llguidance::LlguidanceConstraint constraint(engine,
                                                std::move(compiled->matcher));
    bool first = true;
    for (const auto& instance : entry.at("instances")) {
      if (!constraint.Reset().ok()) return 1;
      std::vector<TokenId> ids =
          tokenizer->Encode(instance.get<std::string>()).value();
      ids.push_back(stops.front());
      std::size_t done = 0;
      for (const TokenId id : ids) {
        std::fill(logits.begin(), logits.end(), 0.0F);
        start = Clock::now();
        const int num_forced = constraint.ForcedTokens(ahead);
        const double ahead_us = MicrosecondsSince(start);
        start = Clock::now();
        const absl::Status status = constraint.Mask(logits);
        const double mask = MicrosecondsSince(start);
        (first ? first_us : mask_us).push_back(mask);
        both_us.push_back(ahead_us + mask);
        first = false;
        // Another spelling than the canonical one, or not in schema order.
        if (!status.ok() || logits[static_cast<std::size_t>(id)] != 0) break;
        if (num_forced > 0) ++forced;
        start = Clock::now();
        if (!constraint.Accept(id).ok()) break;
        accept_us.push_back(MicrosecondsSince(start));
        ++done;
      }
      if (done < ids.size()) ++cut;
    }
  }
  std::printf("schemas      %8zu, refused %d, instances cut short %d\n",
              list.size(), refused, cut);
  Print("compile", compile_us);
  Print("first mask", first_us);
  Print("mask", mask_us);
  Print("with forced", both_us);
  Print("accept", accept_us);
  std::printf(
      "forced       %8.1f %% of the tokens\n",
      100.0 * static_cast<double>(forced) /
          static_cast<double>(std::max<std::size_t>(1, accept_us.size())));
  return 0;
}
