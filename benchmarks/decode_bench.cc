// The generator over a whole model: reading a prompt, writing token by token
// from an empty and from a filled context, several streams together. The
// committed model by default; tok/s are all streams together. Of a dense model
// that no cache holds, bytes/s are weights, keys and values read per step, and
// roof% is their share of what memory gives now.
//
//   decode_bench --model=FILE   another GGUF

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "benchmarks/roofline.h"
#include "fucina/decode/generator.h"
#include "fucina/decode/random.h"
#include "registry/pipeline.h"

namespace fucina {
namespace {

// Larger weights than the caches of any processor hold.
constexpr std::int64_t kStreamedBytes = std::int64_t{256} << 20;

bool GoOn(TokenId) { return true; }

std::vector<TokenId> RandomTokens(int count, int vocab_size) {
  Random random(1);
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  for (TokenId& token : tokens) {
    token = static_cast<TokenId>(random.NextBits() %
                                 static_cast<std::uint64_t>(vocab_size));
  }
  return tokens;
}

// One sequence and what it borrows.
struct Writer {
  Writer(const Decoder& decoder, int capacity)
      : state(decoder.NewState(capacity).value()),
        sampler({}, decoder.info().vocab_size),
        sequence(decoder, {.state = state.get(), .sampler = &sampler}) {}

  std::unique_ptr<DecodeState> state;
  Sampler sampler;
  Sequence sequence;
};

void BM_Prefill(benchmark::State& state, const Pipeline& pipeline, int tokens) {
  const Decoder& decoder = *pipeline.decoder;
  Writer writer(decoder, tokens + 1);
  const std::vector<TokenId> prompt =
      RandomTokens(tokens, decoder.info().vocab_size);
  for (auto _ : state) {
    if (!writer.sequence.Truncate(0).ok() ||
        !Generator(decoder)
             .Generate(writer.sequence, prompt, {.max_tokens = 1}, GoOn)
             .ok()) {
      return state.SkipWithError("generation failed");
    }
  }
  state.counters["tok/s"] =
      benchmark::Counter(tokens, benchmark::Counter::kIsIterationInvariantRate);
}

// Steps of `streams` sequences in lockstep, each behind `depth` tokens.
void BM_Decode(benchmark::State& state, const Pipeline& pipeline, int streams,
               int depth) {
  constexpr int kSteps = 32;
  const Decoder& decoder = *pipeline.decoder;
  const DecoderInfo& info = decoder.info();
  const std::vector<TokenId> prompt = RandomTokens(depth, info.vocab_size);
  std::vector<std::unique_ptr<Writer>> writers;
  std::vector<Stream> all;
  for (int i = 0; i < streams; ++i) {
    writers.push_back(std::make_unique<Writer>(decoder, depth + kSteps + 1));
    all.push_back({.sequence = &writers.back()->sequence,
                   .prompt = prompt,
                   .limits = {.max_tokens = kSteps + 1}});
  }
  double seconds = 0;
  for (auto _ : state) {
    // What is there of the prompt stays; its last token is read again.
    Generator(decoder).Generate(all);
    double ms = 0;
    for (const Stream& stream : all) {
      if (!stream.status.ok()) return state.SkipWithError("generation failed");
      ms = std::max(ms, stream.sequence->stats().decode_ms);
    }
    state.SetIterationTime(ms * 1e-3);
    seconds += ms * 1e-3;
  }
  state.counters["tok/s"] = benchmark::Counter(
      kSteps * streams, benchmark::Counter::kIsIterationInvariantRate);
  const bool dense =
      info.sites[static_cast<std::size_t>(LinearSite::kGate)].in > 0;
  if (!dense || info.weight_bytes < kStreamedBytes) return;
  const double bytes =
      static_cast<double>(info.weight_bytes) +
      static_cast<double>(info.state_bytes_per_token) * streams * depth;
  ThreadPool& pool = *pipeline.pool;
  roofline::Report(state, seconds, "bytes/s", bytes * kSteps, [&] {
    return roofline::DramRead(pool, roofline::DramBytes(pool.num_threads()), 2);
  });
}

int Main(int argc, char** argv) {
  std::string model =
      absl::StrCat(FUCINA_SOURCE_DIR, "/models/atlas-6m-q8_0.gguf");
  std::vector<char*> rest;
  for (int i = 0; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--model=", 0) == 0) {
      model = argument.substr(8);
    } else {
      rest.push_back(argv[i]);
    }
  }
  int count = static_cast<int>(rest.size());
  benchmark::Initialize(&count, rest.data());
  if (benchmark::ReportUnrecognizedArguments(count, rest.data())) return 2;

  PipelineConfig config;
  config.model = model;
  const auto pipeline =
      BuildPipeline(std::move(config), PipelineDepth::kDecoder);
  if (!pipeline.ok()) {
    std::cerr << pipeline.status().message() << "\n";
    return 3;
  }
  std::cerr << StartupLine((*pipeline)->report) << "\n";
  for (const int tokens : {1, 16, 128, 512}) {
    benchmark::RegisterBenchmark(absl::StrCat("BM_Prefill/", tokens).c_str(),
                                 [&, tokens](benchmark::State& state) {
                                   BM_Prefill(state, **pipeline, tokens);
                                 })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
  struct Case {
    int streams;
    int depth;
  };
  for (const Case& c : {Case{1, 1}, Case{1, 512}, Case{1, 4096}, Case{2, 1},
                        Case{4, 1}, Case{8, 1}, Case{16, 1}, Case{4, 512}}) {
    benchmark::RegisterBenchmark(
        absl::StrCat("BM_Decode/streams:", c.streams, "/depth:", c.depth)
            .c_str(),
        [&, c](benchmark::State& state) {
          BM_Decode(state, **pipeline, c.streams, c.depth);
        })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace fucina

int main(int argc, char** argv) { return fucina::Main(argc, argv); }
