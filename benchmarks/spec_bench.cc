// The drafters of the spec plugin: what a token costs to index and to draft,
// and what an index takes. Text that was made up by default; every figure
// depends on how often text repeats itself, so give your own.
//
//   spec_bench --text=FILE    index this text
//   spec_bench --model=FILE   the GGUF whose tokenizer cuts it

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "fucina/diag/log.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/text/tokenizer.h"
#include "plugins/spec/cascade.h"
#include "plugins/spec/suffix_index.h"

namespace fucina::spec {
namespace {

constexpr int kVocab = 151936;

// Tokens that repeat themselves about as prose and code do: words of one to
// four tokens, frequent ones more often, and now and then a stretch of the text
// so far once more.
std::vector<TokenId> MadeUpText(std::size_t count) {
  std::mt19937 random(7);
  std::vector<std::vector<TokenId>> words(200000);
  for (auto& word : words) {
    word.resize(1 + random() % 4);
    for (TokenId& token : word) token = static_cast<TokenId>(random() % 50000);
  }
  const double most = std::log(static_cast<double>(words.size()));
  std::vector<TokenId> tokens;
  tokens.reserve(count + 200);
  while (tokens.size() < count) {
    if (random() % 40 == 0 && tokens.size() > 1000) {
      const std::size_t start = random() % (tokens.size() - 200);
      const std::size_t length = 4 + random() % 60;
      for (std::size_t i = 0; i < length; ++i) {
        tokens.push_back(tokens[start + i]);
      }
      continue;
    }
    // Zipf's law: the logarithm of the rank is about uniform.
    const double share = std::uniform_real_distribution<>(0, 1)(random);
    const auto rank = static_cast<std::size_t>(std::exp(share * most)) - 1;
    const auto& word = words[std::min(rank, words.size() - 1)];
    tokens.insert(tokens.end(), word.begin(), word.end());
  }
  tokens.resize(count);
  return tokens;
}

void ReportSize(benchmark::State& state, const SuffixIndex& index) {
  const auto tokens = static_cast<double>(index.tokens().size());
  state.counters["bytes/token"] = static_cast<double>(index.bytes()) / tokens;
  state.counters["states/token"] =
      static_cast<double>(index.num_states()) / tokens;
  state.counters["edges/token"] =
      static_cast<double>(index.num_transitions()) / tokens;
}

// A conversation's index, token by token, asked after each one.
void BM_Append(benchmark::State& state, std::span<const TokenId> text) {
  std::unique_ptr<SuffixIndex> index;
  for (auto _ : state) {
    index = std::make_unique<SuffixIndex>();
    for (const TokenId token : text) {
      if (!index->Append(token)) return state.SkipWithError("degraded");
      benchmark::DoNotOptimize(index->match_length());
    }
  }
  ReportSize(state, *index);
  state.counters["us/token"] =
      benchmark::Counter(static_cast<double>(text.size()) / 1e6,
                         benchmark::Counter::kIsIterationInvariantRate |
                             benchmark::Counter::kInvert);
}

// A document's index, whose length is known.
void BM_Reference(benchmark::State& state, std::span<const TokenId> text) {
  std::unique_ptr<SuffixIndex> index;
  for (auto _ : state) {
    index = std::make_unique<SuffixIndex>();
    index->Expect(text.size());
    for (const TokenId token : text) {
      if (!index->Append(token)) return state.SkipWithError("degraded");
    }
  }
  ReportSize(state, *index);
}

// Asking for sixteen tokens behind every thousandth place.
void BM_Continue(benchmark::State& state, std::span<const TokenId> text) {
  std::vector<TokenId> draft(16);
  SuffixIndex index;
  for (const TokenId token : text) index.Append(token);
  for (auto _ : state) {
    benchmark::DoNotOptimize(index.Continue(draft));
    benchmark::ClobberMemory();
  }
}

// A foreign stream followed through a document.
void BM_Advance(benchmark::State& state, std::span<const TokenId> text) {
  SuffixIndex index;
  const std::size_t half = text.size() / 2;
  for (const TokenId token : text.first(half)) index.Append(token);
  SuffixIndex::Cursor cursor;
  std::size_t at = half;
  for (auto _ : state) {
    index.Advance(cursor, text[at]);
    benchmark::DoNotOptimize(cursor.state);
    at = at + 1 < text.size() ? at + 1 : half;
  }
}

// All that drafting adds to a step that commits one token: the guess, the
// token, and what the model thought of.
void BM_CascadeStep(benchmark::State& state, std::span<const TokenId> text) {
  Cascade cascade(kVocab, {});
  if (!cascade.AddReference(text.subspan(text.size() / 2)).ok()) {
    return state.SkipWithError("no reference");
  }
  const std::size_t start = text.size() / 4;
  cascade.Commit(text.first(start));
  std::vector<TokenId> draft(8);
  std::size_t at = start;
  for (auto _ : state) {
    benchmark::DoNotOptimize(cascade.Propose(text.first(at), draft));
    cascade.Commit(text.subspan(at, 1));
    cascade.OnCandidates(text[at - 1], text.subspan(at, 8));
    if (++at + 8 >= text.size()) {
      state.PauseTiming();
      cascade.Rewind(0);
      cascade.Commit(text.first(start));
      at = start;
      state.ResumeTiming();
    }
  }
}

int Main(int argc, char** argv) {
  std::string model =
      absl::StrCat(FUCINA_SOURCE_DIR, "/models/atlas-6m-q8_0.gguf");
  std::string file;
  std::vector<char*> rest;
  for (int i = 0; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--text=", 0) == 0) {
      file = argument.substr(7);
    } else if (argument.rfind("--model=", 0) == 0) {
      model = argument.substr(8);
    } else {
      rest.push_back(argv[i]);
    }
  }
  int count = static_cast<int>(rest.size());
  benchmark::Initialize(&count, rest.data());
  if (benchmark::ReportUnrecognizedArguments(count, rest.data())) return 2;

  constexpr std::size_t kMost = 10'000'000;
  std::vector<TokenId> text;
  if (file.empty()) {
    text = MadeUpText(kMost);
  } else {
    const auto gguf = GgufFile::Open(model);
    if (!gguf.ok()) {
      std::cerr << gguf.status().message() << "\n";
      return 3;
    }
    const auto tokenizer = Tokenizer::FromGguf(**gguf);
    std::ifstream in(file, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    if (!tokenizer.ok() || bytes.empty()) {
      std::cerr << "no tokenizer or no text\n";
      return 3;
    }
    text = (*tokenizer)->Encode(bytes).value_or(std::vector<TokenId>());
    std::cerr << file << ": " << text.size() << " tokens\n";
  }
  const std::span<const TokenId> all(text);
  const auto add = [&](const char* name, auto run, std::size_t tokens,
                       benchmark::TimeUnit unit) {
    if (tokens > all.size()) return;
    benchmark::RegisterBenchmark(
        absl::StrCat(name, "/", tokens).c_str(),
        [=](benchmark::State& state) { run(state, all.first(tokens)); })
        ->Unit(unit);
  };
  for (const std::size_t tokens : {std::size_t{10'000}, std::size_t{100'000},
                                   std::size_t{1'000'000}, kMost}) {
    add("BM_Append", BM_Append, tokens, benchmark::kMillisecond);
  }
  add("BM_Reference", BM_Reference, kMost, benchmark::kMillisecond);
  add("BM_Continue", BM_Continue, 1'000'000, benchmark::kNanosecond);
  add("BM_Advance", BM_Advance, 1'000'000, benchmark::kNanosecond);
  add("BM_CascadeStep", BM_CascadeStep, 1'000'000, benchmark::kNanosecond);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace fucina::spec

int main(int argc, char** argv) { return fucina::spec::Main(argc, argv); }
