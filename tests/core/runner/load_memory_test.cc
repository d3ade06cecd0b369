// How much memory loading takes at its peak: packed weights replace the pages
// of the file as they go, so there is never a second copy of the model.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "fucina/gguf/gguf_file.h"
#include "gtest/gtest.h"
#include "tests/core/gguf/temp_folder.h"
#include "tests/core/runner/loaded_model.h"
#include "tests/tiny_models/tiny_models.h"

namespace fucina {
namespace {

using testing::RulesFor;
using testing::TinyModelSpec;
using testing::TinyWeightTypes;

// A sanitizer keeps notes about all memory and never gives any back; what is
// measured is then not the loader.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kMostOfFile = 3.0;
#else
constexpr double kMostOfFile = 1.15;
#endif

// Largest resident set so far, in bytes.
std::int64_t PeakResident() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    std::int64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  }
  return -1;
}

// What the peak grows by while the model is loaded and, so that nothing is
// counted that nobody needed, one state is made. Runs in a child process, which
// starts with the peak at what it holds.
std::int64_t PeakOfLoading(const std::string& path,
                           const std::string& architecture) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    std::int64_t grown = -1;
    const std::int64_t before = PeakResident();
    const auto file = GgufFile::Open(path);
    if (file.ok()) {
      auto descriptor = Descriptor::FromGguf(**file, RulesFor(architecture));
      ThreadPool pool(2);
      const auto runner =
          Runner::Load(**file, *std::move(descriptor), pool, {});
      if (runner.ok() && (*runner)->NewState(64).ok()) {
        grown = PeakResident() - before;
      }
    }
    const bool told = write(ends[1], &grown, sizeof grown) == sizeof grown;
    _exit(told ? 0 : 1);
  }
  std::int64_t grown = -1;
  close(ends[1]);
  const bool heard =
      child > 0 && read(ends[0], &grown, sizeof grown) == sizeof grown;
  close(ends[0]);
  int exit_status = 0;
  if (child > 0) waitpid(child, &exit_status, 0);
  return heard && exit_status == 0 ? grown : -1;
}

void ExpectLittleMoreThanFile(const TinyModelSpec& spec) {
  const TempFolder folder;
  const std::string path = folder.File("model.gguf");
  ASSERT_TRUE(testing::WriteTinyModel(spec, path).ok());
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok());
  const auto file_bytes = static_cast<double>((*file)->file_bytes());
  // Some megabytes do not depend on the model: code, and what is in flight.
  EXPECT_GT(file_bytes, 80e6);
  const auto peak = static_cast<double>(PeakOfLoading(path, spec.architecture));
  // Less would mean that something else was measured.
  EXPECT_GT(peak, 0.9 * file_bytes) << spec.architecture;
  EXPECT_LT(peak, kMostOfFile * file_bytes) << spec.architecture;
}

TEST(LoadMemory, PeakOfADenseModelIsNearTheFile) {
  ExpectLittleMoreThanFile({.vocab_size = 16384,
                            .hidden_size = 1024,
                            .num_layers = 5,
                            .num_heads = 16,
                            .num_kv_heads = 8,
                            .head_dim = 128,
                            .ffn_size = 3072,
                            .tied_output = true,
                            .types = TinyWeightTypes::All(DType::kQ8_0)});
}

TEST(LoadMemory, PeakOfAMixtureIsNearTheFile) {
  ExpectLittleMoreThanFile({.architecture = "qwen3moe",
                            .vocab_size = 512,
                            .hidden_size = 512,
                            .num_layers = 6,
                            .num_heads = 8,
                            .num_kv_heads = 2,
                            .head_dim = 64,
                            .num_experts = 64,
                            .num_experts_used = 4,
                            .expert_ffn_size = 256,
                            .types = TinyWeightTypes::All(DType::kQ4_0)});
}

}  // namespace
}  // namespace fucina
