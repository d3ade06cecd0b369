#ifndef FUCINA_TESTS_PLUGINS_GLM4MOE_LOADED_GLM_H_
#define FUCINA_TESTS_PLUGINS_GLM4MOE_LOADED_GLM_H_

// A small random GLM model, loaded by the family, and the loops that tests
// need.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fucina/contract/decoder.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/parallel/thread_pool.h"
#include "plugins/glm4moe/glm4moe_decoder.h"
#include "plugins/glm4moe/glm4moe_family.h"
#include "tests/tiny_models/tiny_models.h"

namespace fucina::testing {

struct LoadedGlm {
  explicit LoadedGlm(const TinyModelSpec& spec,
                     const std::map<std::string, std::string>& values = {},
                     int threads = 2)
      : LoadedGlm(TinyModelBytes(spec), values, threads) {}
  explicit LoadedGlm(std::string model,
                     const std::map<std::string, std::string>& values = {},
                     int threads = 2)
      : bytes(std::move(model)),
        file(GgufFile::Parse("model.gguf", std::as_bytes(std::span(
                                               bytes.data(), bytes.size())))
                 .value()),
        pool(threads),
        decoder(glm4moe::Glm4MoeFamily().load(
            *file, pool,
            Options::Make(glm4moe::Glm4MoeFamily().options, values).value())) {}

  const glm4moe::Glm4MoeDecoder& glm() const {
    return static_cast<const glm4moe::Glm4MoeDecoder&>(**decoder);
  }

  std::string bytes;
  std::unique_ptr<GgufFile> file;
  ThreadPool pool;
  absl::StatusOr<std::unique_ptr<Decoder>> decoder;
};

inline TokenId Best(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) -
                              logits.begin());
}

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_PLUGINS_GLM4MOE_LOADED_GLM_H_
