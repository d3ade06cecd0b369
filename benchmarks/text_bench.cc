// Tokenizing: bytes per second by kind of text, loading a vocabulary, the
// longest piece. The committed model's vocabulary by default.
//
//   text_bench --vocab=FILE   another GGUF, such as one made by
//                             tests/oracles/make_vocab_gguf.py
//   text_bench --text=FILE    also BM_Encode/file

#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "fucina/diag/log.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/gguf/gguf_writer.h"
#include "fucina/text/tokenizer.h"

namespace fucina {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// About a mebibyte of `unit` over and over.
std::string Repeated(const std::string& unit) {
  std::string text;
  while (!unit.empty() && text.size() < (1 << 20)) text += unit;
  return text;
}

void BM_Encode(benchmark::State& state, const Tokenizer& tokenizer,
               const std::string& text) {
  std::size_t num_ids = 0;
  for (auto _ : state) {
    const auto ids = tokenizer.Encode(text);
    num_ids = ids.ok() ? ids->size() : 0;
    benchmark::DoNotOptimize(num_ids);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(text.size()));
  state.counters["bytes_per_id"] =
      static_cast<double>(text.size()) / static_cast<double>(num_ids);
}

void BM_Load(benchmark::State& state, const GgufFile& file) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(Tokenizer::FromGguf(file).ok());
  }
}

// As many tokens and merges as a current model has, of random letters.
std::string LargeVocabulary() {
  std::mt19937 random(1);
  std::vector<std::string> tokens;
  std::vector<std::string> merges;
  std::set<std::string> seen;
  for (char c = '!'; c <= '~'; ++c) tokens.emplace_back(1, c);
  while (merges.size() < 151000) {
    const std::string left = tokens[random() % tokens.size()];
    const std::string right = tokens[random() % tokens.size()];
    if (left.size() + right.size() > 16) continue;
    if (!seen.insert(left + right).second) continue;
    merges.push_back(absl::StrCat(left, " ", right));
    tokens.push_back(left + right);
  }
  GgufWriter writer;
  writer.AddString("tokenizer.ggml.model", "gpt2");
  writer.AddString("tokenizer.ggml.pre", "qwen2");
  writer.AddStrings("tokenizer.ggml.tokens", tokens);
  writer.AddStrings("tokenizer.ggml.merges", merges);
  writer.AddI32s("tokenizer.ggml.token_type",
                 std::vector<std::int32_t>(tokens.size(), 1));
  return writer.Serialize().value();
}

int Main(int argc, char** argv) {
  std::string vocab =
      absl::StrCat(FUCINA_SOURCE_DIR, "/models/atlas-6m-q8_0.gguf");
  std::string text_file;
  std::vector<char*> rest;
  for (int i = 0; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--vocab=", 0) == 0) {
      vocab = argument.substr(8);
    } else if (argument.rfind("--text=", 0) == 0) {
      text_file = argument.substr(7);
    } else {
      rest.push_back(argv[i]);
    }
  }
  int count = static_cast<int>(rest.size());
  benchmark::Initialize(&count, rest.data());
  if (benchmark::ReportUnrecognizedArguments(count, rest.data())) return 2;

  const auto file = GgufFile::Open(vocab);
  if (!file.ok()) {
    std::cerr << file.status() << "\n";
    return 3;
  }
  const auto tokenizer = Tokenizer::FromGguf(**file);
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.status() << "\n";
    return 3;
  }
  std::mt19937 random(2);
  std::string letters;
  while (letters.size() < (1 << 20)) {
    letters += static_cast<char>('a' + random() % 26);
  }
  struct Sample {
    std::string name;
    std::string text;
  };
  std::vector<Sample> samples = {
      {"code", Repeated(ReadFile(
                   absl::StrCat(FUCINA_SOURCE_DIR, "/core/text/byte_bpe.cc")))},
      {"mixed", Repeated(ReadFile(absl::StrCat(
                    FUCINA_SOURCE_DIR, "/tests/goldens/tokenizer/atlas.txt")))},
      {"one_letter", std::string(1 << 20, 'a')},
      {"random_letters", letters},
      {"spaces", std::string(1 << 20, ' ')},
      {"openers", Repeated("<|im_start|")},
  };
  if (!text_file.empty()) samples.push_back({"file", ReadFile(text_file)});
  for (const Sample& sample : samples) {
    benchmark::RegisterBenchmark(
        absl::StrCat("BM_Encode/", sample.name).c_str(),
        [&](benchmark::State& state) {
          BM_Encode(state, **tokenizer, sample.text);
        })
        ->Unit(benchmark::kMillisecond);
  }
  const std::string large = LargeVocabulary();
  const auto large_file =
      GgufFile::Parse("large", std::as_bytes(std::span(large)));
  benchmark::RegisterBenchmark("BM_Load/file", [&](benchmark::State& state) {
    BM_Load(state, **file);
  })->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("BM_Load/151k", [&](benchmark::State& state) {
    BM_Load(state, **large_file);
  })->Unit(benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace fucina

int main(int argc, char** argv) { return fucina::Main(argc, argv); }
