// How long it takes until a model can run: finding, checking and loading the
// plugins of this build, and building a pipeline over the committed model.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "registry/pipeline.h"
#include "registry/plugin_path.h"
#include "registry/registry.h"

namespace fucina {
namespace {

void BM_LoadPlugins(benchmark::State& state) {
  const auto directories = DefaultPluginDirectories();
  if (!directories.ok()) return state.SkipWithError("no plugin directories");
  for (auto _ : state) {
    Registry registry;
    if (!registry.LoadFound(*directories).ok() || registry.families().empty()) {
      return state.SkipWithError("no plugin was loaded");
    }
  }
}
BENCHMARK(BM_LoadPlugins)->Unit(benchmark::kMicrosecond);

void BuildOf(benchmark::State& state, PipelineDepth depth) {
  for (auto _ : state) {
    PipelineConfig config;
    config.model =
        absl::StrCat(FUCINA_SOURCE_DIR, "/models/atlas-6m-q8_0.gguf");
    const auto pipeline = BuildPipeline(std::move(config), depth);
    if (!pipeline.ok()) return state.SkipWithError("no pipeline");
    benchmark::DoNotOptimize(pipeline->get());
  }
}

void BM_OpenFile(benchmark::State& state) {
  BuildOf(state, PipelineDepth::kFile);
}
BENCHMARK(BM_OpenFile)->Unit(benchmark::kMillisecond);

void BM_BuildPipeline(benchmark::State& state) {
  BuildOf(state, PipelineDepth::kDecoder);
}
BENCHMARK(BM_BuildPipeline)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace fucina

BENCHMARK_MAIN();
